#include "interpreter/values/tensor_index.h"

#include "core/ops/indexing.h"
#include "core/tensor/turned.h"
#include "interpreter/values/table_tensor.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr std::string_view kWhere = "index";

// x[i], the common case, without an Index.
Tensor row(const Tensor& t, int64_t i) {
    check_indexable(t.shape());
    const int64_t n = t.dim(0);
    check_index(i, 0, n);
    return part_of(t, 0, i < 0 ? i + n : i);
}

bool has_metatable(lua_State* L, int index, const char* name) {
    luaL_checkstack(L, 2, "index");
    if (!lua_getmetatable(L, index)) return false;
    luaL_getmetatable(L, name);
    const bool same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

std::optional<int64_t> bound(lua_State* L, int index, const char* name) {
    std::optional<int64_t> result;
    if (push_option(L, index, name)) {
        result = integer_at(L, lua_gettop(L), "slice", name);
        lua_pop(L, 1);
    }
    return result;
}

void add_item(lua_State* L, int index, Index& result, bool nested) {
    switch (lua_type(L, index)) {
        case LUA_TNUMBER:
            result.items.push_back(IndexItem::at(integer_at(L, index, kWhere, "the position")));
            return;
        case LUA_TSTRING: {
            size_t size = 0;
            const char* text = lua_tolstring(L, index, &size);
            const Index parsed = parse_index(kWhere, {text, size});
            result.items.insert(result.items.end(), parsed.items.begin(), parsed.items.end());
            return;
        }
        case LUA_TUSERDATA:
            if (const Tensor* t = tensor_at(L, index)) {
                if (!is_integer(t->dtype()) && t->dtype() != DType::boolean)
                    throw dtype_error(kWhere,
                                      str("an index tensor must hold integers or bools, got ", name_of(t->dtype())));
                result.items.push_back(IndexItem::positions(Value(*t)));
                return;
            }
            break;
        case LUA_TTABLE:
            if (is_slice(L, index)) {
                const int64_t step = bound(L, index, "step").value_or(1);
                result.items.push_back(IndexItem::slice(bound(L, index, "start"), bound(L, index, "stop"), step));
                return;
            }
            if (is_new_axis(L, index)) {
                result.items.push_back(IndexItem::of(IndexItem::Kind::new_axis));
                return;
            }
            if (nested) {
                // x[{{0, 2}, 1}]: rows 0 and 2.
                const Tensor t = tensor_from(L, index, std::nullopt, kWhere);
                if (t.size() > 0 && !is_integer(t.dtype()) && t.dtype() != DType::boolean)
                    throw dtype_error(kWhere, "a table of positions must hold integers or booleans");
                result.items.push_back(IndexItem::positions(Value(t.size() > 0 ? t : t.cast(DType::i64))));
                return;
            }
            for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
                lua_rawgeti(L, index, i);
                add_item(L, lua_gettop(L), result, true);
                lua_pop(L, 1);
            }
            return;
        default:
            break;
    }
    throw index_error(kWhere,
                      str("an index is an integer, a text such as \"1:3, ::2\", a slice, a tensor of integers or "
                          "bools, or a table of these; got ",
                          describe(L, index)));
}

}  // namespace

bool is_slice(lua_State* L, int index) { return has_metatable(L, index, "lunaria.slice"); }
bool is_new_axis(lua_State* L, int index) { return has_metatable(L, index, "lunaria.newaxis"); }

Index index_at(lua_State* L, int index) {
    Index result;
    luaL_checkstack(L, 6, "index");
    add_item(L, index, result, false);
    return result;
}

Tensor index_tensor(lua_State* L, const Tensor& tensor, int index) {
    if (lua_isinteger(L, index)) return row(tensor, lua_tointeger(L, index));
    return index_get(eager_builder(), Value(tensor), index_at(L, index)).tensor();
}

void set_by_index(lua_State* L, int handle, int index, int value) {
    const Index where = index_at(L, index);
    Value source;
    if (lua_isinteger(L, value))
        source = Value(static_cast<int64_t>(lua_tointeger(L, value)));
    else if (lua_type(L, value) == LUA_TNUMBER)
        source = Value(static_cast<double>(lua_tonumber(L, value)));
    else
        source = Value(tensor_from(L, value, std::nullopt, kWhere));
    // The handle's own tensor is written to, not a copy of it.
    index_set(reinterpret_cast<Tensor&>(*tensor_place(L, handle)), where, source);
}

}  // namespace lunaria
