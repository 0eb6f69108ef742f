#include "interpreter/saving/lua_known.h"

#include "interpreter/values/lua_reference.h"
#include "interpreter/values/tensor_index.h"
#include "interpreter/values/values.h"

namespace lunaria {

std::optional<std::vector<Value>> LuaKnown::called(const Value& f, const std::vector<Value>& args) {
    const int base = lua_gettop(host_.lua());
    try {
        if (vm::object_as<vm::Closure>(f)) return host_.run(host_.lua(), f, args).vector();
        return host_.call(f, args).vector();
    } catch (const Error&) {
        lua_settop(host_.lua(), base);
        return std::nullopt;
    }
}

std::optional<DType> dtype_of(LuaHost& host, const Value& object) {
    lua_State* L = host.lua();
    luaL_checkstack(L, 2, "dtype");
    host.push(L, object);
    std::optional<DType> dtype;
    try {
        if (lua_isuserdata(L, -1)) dtype = dtype_at(L, -1, "dtype");
    } catch (const Error&) {
        // The entry belongs to another object.
    }
    lua_pop(L, 1);
    return dtype;
}

Known::Content LuaKnown::content_of(const Value& table) {
    Content content;
    lua_State* L = host_.lua();
    luaL_checkstack(L, 6, "tables");
    const int base = lua_gettop(L);
    host_.push(L, table);
    if (lua_getmetatable(L, -1)) content.plain = false;
    lua_settop(L, base + 1);
    lua_pushnil(L);
    while (lua_next(L, base + 1)) {
        content.keys.push_back(host_.to_value(L, -2));
        content.values.push_back(host_.to_value(L, -1));
        content.plain &= is_plain(content.keys.back());
        lua_pop(L, 1);
    }
    lua_settop(L, base);
    return content;
}

namespace {

// The function on top of the stack as what ms.grad and its kin made.
void read_transformed(LuaHost& host, Known::Made& made) {
    lua_State* L = host.lua();
    const int function = lua_gettop(L);
    // The table exists once lunaria/transforms.lua has run.
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "lunaria.autodiff") != LUA_TTABLE || lua_getfield(L, -1, "transformed") != LUA_TTABLE)
        return;
    lua_pushvalue(L, function);
    if (lua_rawget(L, -2) != LUA_TTABLE) return;
    lua_getfield(L, -1, "order");
    made.name = std::string("ms.") + lua_tostring(L, -1);
    lua_getfield(L, -2, "f");
    lua_getfield(L, -1, "n");
    for (lua_Integer i = 1, n = lua_tointeger(L, -1); i <= n; ++i) {
        lua_rawgeti(L, -2, i);
        made.args.push_back(host.to_value(L, -1));
        lua_pop(L, 1);
    }
}

void read_slice(LuaHost& host, Known::Made& made) {
    lua_State* L = host.lua();
    made.name = "ms.slice";
    for (const char* name : {"start", "stop", "step"}) {
        lua_getfield(L, -1, name);
        made.args.push_back(host.to_value(L, -1));
        lua_pop(L, 1);
    }
}

}  // namespace

Known::Made LuaKnown::made_by(const Value& object) {
    auto* r = vm::object_as<LuaReference>(object);
    if (!r) return {};
    lua_State* L = host_.lua();
    luaL_checkstack(L, 8, "what made an object");
    const int base = lua_gettop(L);
    Made made;
    r->push(L);
    if (r->type == LUA_TFUNCTION) read_transformed(host_, made);
    if (r->type == LUA_TTABLE && is_slice(L, -1)) read_slice(host_, made);
    lua_settop(L, base);
    return made;
}

std::optional<Known::Named> LuaKnown::named(const Value& object) {
    if (auto* r = vm::object_as<LuaReference>(object); r && r->type == LUA_TTABLE) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 1, "names");
        r->push(L);
        const bool is_named = is_new_axis(L, -1);
        lua_pop(L, 1);
        return is_named ? std::optional(Named{std::string(kNewAxisName), Saved::called, true}) : std::nullopt;
    }
    const FunctionNames::Entry* entry = names_.find(object);
    if (!entry) return std::nullopt;
    return Named{entry->name, entry->row->saved, entry->row->reads};
}

}  // namespace lunaria
