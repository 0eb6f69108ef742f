#include "interpreter/saving/lua_known.h"

#include "interpreter/values/lua_reference.h"
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

Known::Transformed LuaKnown::transformed(const Value& f) {
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return {};
    lua_State* L = host_.lua();
    luaL_checkstack(L, 8, "transforms");
    const int base = lua_gettop(L);
    Transformed found;
    // The table exists once lunaria/transforms.lua has run.
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "lunaria.autodiff") == LUA_TTABLE && lua_getfield(L, -1, "transformed") == LUA_TTABLE) {
        r->push(L);
        if (lua_rawget(L, -2) == LUA_TTABLE) {
            lua_getfield(L, -1, "order");
            found.name = std::string("ms.") + lua_tostring(L, -1);
            lua_getfield(L, -2, "f");
            lua_getfield(L, -1, "n");
            for (lua_Integer i = 1, n = lua_tointeger(L, -1); i <= n; ++i) {
                lua_rawgeti(L, -2, i);
                found.args.push_back(host_.to_value(L, -1));
                lua_pop(L, 1);
            }
        }
    }
    lua_settop(L, base);
    return found;
}

std::optional<Known::Named> LuaKnown::named(const Value& f) {
    const FunctionNames::Entry* entry = names_.find(f);
    if (!entry) return std::nullopt;
    return Named{entry->name, entry->row->saved, entry->row->reads};
}

}  // namespace lunaria
