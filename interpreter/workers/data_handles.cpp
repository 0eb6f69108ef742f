#include "interpreter/workers/data_handles.h"

#include "core/base/error.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"

namespace lunaria {

using namespace data;

std::string text_at(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

Names names_at(lua_State* L, int index) {
    luaL_checktype(L, index, LUA_TTABLE);
    Names names;
    for (lua_Integer i = 1; lua_geti(L, index, i) != LUA_TNIL; ++i) {
        names.push_back(text_at(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return names;
}

// Positions counted from 0, below `count`.
std::vector<size_t> positions_at(lua_State* L, int index, size_t count) {
    std::vector<size_t> list;
    for (int64_t at : integers_at(L, index, "dataset", "positions")) {
        if (at < 0 || static_cast<size_t>(at) >= count) throw index_error("dataset", "a position is out of range");
        list.push_back(static_cast<size_t>(at));
    }
    if (list.empty()) throw argument_error("dataset", "there are no columns");
    return list;
}

int64_t least_at(lua_State* L, int index, int64_t least) {
    const lua_Integer value = luaL_checkinteger(L, index);
    if (value < least) throw argument_error("dataset", str("a number must be at least ", least, ", got ", value));
    return value;
}

void make_handle_type(lua_State* L, const char* name, lua_CFunction release) {
    luaL_newmetatable(L, name);
    lua_pushstring(L, name);
    lua_pushcclosure(L, release, 1);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

Value data_value_of(const Tensor& tensor) { return Value(tensor.device() ? tensor.to_host() : tensor.apart()); }

Value data_value_at(lua_State* L, int index, std::string_view where, std::string_view what) {
    if (const Tensor* tensor = tensor_at(L, index)) return data_value_of(*tensor);
    switch (lua_type(L, index)) {
        case LUA_TTABLE:
            if (lua_geti(L, index, 1) == LUA_TSTRING) {
                lua_pop(L, 1);
                std::vector<Value> list;
                for (const std::string& text : names_at(L, index)) list.emplace_back(std::string_view(text));
                return Value::list(std::move(list));
            }
            lua_pop(L, 1);
            [[fallthrough]];
        case LUA_TNUMBER:
        case LUA_TBOOLEAN:
            return Value(tensor_from(L, index, std::nullopt, where).to_host());
        case LUA_TSTRING: {
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            return Value(std::string_view(text, size));
        }
        default:
            throw argument_error(
                where, str(what, " must be a tensor, a number, a text or a table of them, got ", describe(L, index)));
    }
}

}  // namespace lunaria
