#include "interpreter/saving/known.h"

#include "interpreter/bindings/values.h"
#include "interpreter/host/lua_reference.h"

namespace lunaria {

bool is_plain(const Value& v) { return v.kind() < Value::Kind::node || v.kind() == Value::Kind::string; }

std::optional<Value> computed(LuaHost& host, const Op& primitive, const std::vector<Value>& operands) {
    ir::Graph graph("known");
    std::vector<Value> nodes;
    for (size_t i = 0; i < operands.size(); ++i) nodes.emplace_back(graph.add_parameter("", {}));
    graph.result = Value::list({Value(graph.add_call(primitive, nodes, {}))});
    const Value f =
        vm::make_object<vm::Closure>(vm::function_of(graph), std::shared_ptr<const void>(), std::vector<Value>());
    const std::optional<std::vector<Value>> results = called(host, f, operands);
    return results ? std::optional((*results)[0]) : std::nullopt;
}

std::optional<std::vector<Value>> called(LuaHost& host, const Value& f, const std::vector<Value>& args) {
    const int base = lua_gettop(host.lua());
    try {
        if (vm::object_as<vm::Closure>(f)) return host.run(host.lua(), f, args).vector();
        return host.call(f, args).vector();
    } catch (const Error&) {
        lua_settop(host.lua(), base);
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
        // It is another object.
    }
    lua_pop(L, 1);
    return dtype;
}

TableContent content_of(LuaHost& host, const Value& table) {
    TableContent content;
    lua_State* L = host.lua();
    luaL_checkstack(L, 6, "tables");
    const int base = lua_gettop(L);
    host.push(L, table);
    if (lua_getmetatable(L, -1)) content.plain = false;
    lua_settop(L, base + 1);
    lua_pushnil(L);
    while (lua_next(L, base + 1)) {
        content.keys.push_back(host.to_value(L, -2));
        content.values.push_back(host.to_value(L, -1));
        content.plain &= is_plain(content.keys.back());
        lua_pop(L, 1);
    }
    lua_settop(L, base);
    return content;
}

Transformed transformed(LuaHost& host, const Value& f) {
    auto* r = vm::object_as<LuaReference>(f);
    if (!r || r->type != LUA_TFUNCTION) return {};
    lua_State* L = host.lua();
    luaL_checkstack(L, 8, "transforms");
    const int base = lua_gettop(L);
    Transformed found;
    // The table is there once lunaria/transforms.lua has run.
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
                found.args.push_back(host.to_value(L, -1));
                lua_pop(L, 1);
            }
        }
    }
    lua_settop(L, base);
    return found;
}

}  // namespace lunaria
