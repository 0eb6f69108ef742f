// The module "lunaria.custom_ops", with which lunaria/op.lua defines operators.
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/formula_trace.h"
#include "jit/graph/custom.h"

namespace lunaria {

namespace {

std::vector<std::string> texts_at(lua_State* L, int index) {
    std::vector<std::string> texts;
    index = lua_absindex(L, index);
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
        lua_rawgeti(L, index, i);
        texts.emplace_back(luaL_checkstring(L, -1));
        lua_pop(L, 1);
    }
    return texts;
}

// For each axis a table {offset, index, factor, index, factor, ...}.
std::vector<IndexAccess> accesses_at(lua_State* L, int index) {
    std::vector<IndexAccess> axes;
    index = lua_absindex(L, index);
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, index)); i <= n; ++i) {
        lua_rawgeti(L, index, i);
        luaL_checktype(L, -1, LUA_TTABLE);
        const int axis = lua_gettop(L);
        IndexAccess access;
        lua_rawgeti(L, axis, 1);
        access.offset = luaL_checkinteger(L, -1);
        for (lua_Integer k = 2, m = static_cast<lua_Integer>(lua_rawlen(L, axis)); k < m; k += 2) {
            lua_rawgeti(L, axis, k);
            lua_rawgeti(L, axis, k + 1);
            access.terms.push_back({luaL_checkstring(L, -2), luaL_checkinteger(L, -1)});
            lua_pop(L, 2);
        }
        axes.push_back(std::move(access));
        lua_settop(L, axis - 1);
    }
    return axes;
}

// define(name, doc, names of inputs, which of them are masks, f[, output, accesses of the inputs, reduce, {index, size,
// ...}, outside])
int define(lua_State* L) {
    const std::string name = luaL_checkstring(L, 1), doc = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_checktype(L, 4, LUA_TTABLE);
    luaL_checktype(L, 5, LUA_TFUNCTION);
    std::vector<CustomOp::Input> inputs;
    for (std::string& input : texts_at(L, 3)) inputs.push_back({std::move(input), false});
    for (size_t i = 0; i < inputs.size(); ++i) {
        lua_rawgeti(L, 4, static_cast<lua_Integer>(i) + 1);
        inputs[i].mask = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    if (registry().find(name)) throw argument_error("op", str("there is an operator '", name, "' in ms.ops"));
    const auto formula = trace_formula(L, LuaHost::of(L).to_value(L, 5), inputs);
    if (lua_isnoneornil(L, 6)) {
        push_operator(L, CustomOp::define(name, doc, std::move(inputs), *formula));
        return 1;
    }
    IndexRule rule;
    rule.output = texts_at(L, 6);
    luaL_checktype(L, 7, LUA_TTABLE);
    for (size_t i = 0; i < inputs.size(); ++i) {
        lua_rawgeti(L, 7, static_cast<lua_Integer>(i) + 1);
        rule.inputs.push_back(accesses_at(L, -1));
        lua_pop(L, 1);
    }
    rule.reduce = luaL_optstring(L, 8, "");
    luaL_checktype(L, 9, LUA_TTABLE);
    for (lua_Integer i = 1, n = static_cast<lua_Integer>(lua_rawlen(L, 9)); i < n; i += 2) {
        lua_rawgeti(L, 9, i);
        lua_rawgeti(L, 9, i + 1);
        rule.sizes.emplace_back(luaL_checkstring(L, -2), luaL_checkinteger(L, -1));
        lua_pop(L, 2);
    }
    if (!lua_isnoneornil(L, 10)) rule.outside = luaL_checknumber(L, 10);
    push_operator(L, CustomOp::define(name, doc, std::move(inputs), *formula, std::move(rule)));
    return 1;
}

}  // namespace

int open_custom_ops(lua_State* L) {
    set_custom_kernel(graph::run_custom);
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, protect<define>);
    lua_setfield(L, -2, "define");
    lua_pushcfunction(L, protect<define_foreign_op>);
    lua_setfield(L, -2, "define_foreign");
    return 1;
}

}  // namespace lunaria
