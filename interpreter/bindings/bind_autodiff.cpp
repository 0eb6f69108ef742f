// Functions behind the transforms in lunaria/transforms.lua: one reverse derivative, access to shadows, and the table
// of functions that replace those of the standard library in derivatives.
#include <algorithm>

#include "core/random/random.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/bindings/swap.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/library/library_functions.h"
#include "interpreter/protect.h"
#include "interpreter/values/tensor_methods.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/batching.h"
#include "jit/language.h"
#include "jit/vm/machine.h"
#include "jit/vm/split_rule.h"

namespace lunaria {

namespace {

using vm::Prelude;

template <Prelude which>
int run_transform(lua_State* L) {
    const vm::OperatorFunction& function = vm::prelude(which);
    LuaHost& host = LuaHost::of(L);
    vm::Values args;
    for (int i = 1, n = lua_gettop(L); i <= n; ++i) args.push_back(host.to_value(L, i));
    Value f = vm::make_object<vm::Closure>(*function.function, function.owner, vm::Values());
    vm::Values results = host.run(L, f, std::move(args));
    luaL_checkstack(L, static_cast<int>(results.size()) + 8, "too many results");
    for (const Value& v : results) host.push(L, v);
    return static_cast<int>(results.size());
}

// draws(0): how many draws of random numbers there were; in a recording the number at that time. (The argument makes it
// one of the questions that a recorder asks at once.)
int draws(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(default_generator().state().counter));
    return 1;
}

// left(context): what a differentiation by parameters with a field `later` left is done.
int left(lua_State* L) {
    LuaHost& host = LuaHost::of(L);
    const Value held = host.to_value(L, 1);
    auto* context = vm::object_as<vm::Context>(held);
    luaL_argexpected(L, context, 1, "a derivative's context");
    for (vm::Leavings::Rule& one : vm::take_leavings(*context)) {
        // Each is dropped when it is done.
        const Value rule = std::move(one.closure);
        const auto& closure = *static_cast<vm::Closure*>(rule.object());
        if (!vm::is_unchanged(closure)) throw vm::changed_in_place(closure);
        const ir::Graph& graph = closure.function->graph;
        const auto& parameters = graph.parameters();
        vm::Values given = std::move(one.cotangents);
        given.resize(parameters.size() - graph.captures);
        for (size_t k = 0; k < given.size(); ++k)
            given[k] = vm::full_cotangent(parameters[graph.captures + k]->type, std::move(given[k]));
        const vm::Values results = host.run(L, rule, std::move(given));
        for (size_t i = 0; i < std::min(results.size(), one.shadows.size()); ++i)
            if (!one.shadows[i].is_nil()) static_cast<vm::Shadow*>(one.shadows[i].object())->add(Value(0), results[i]);
    }
    return 0;
}

int cotangent(lua_State* L) {
    LuaHost& host = LuaHost::of(L);
    Value context = host.to_value(L, 1);
    vm::Shadow* shadow =
        vm::object_as<vm::Context>(context) ? vm::object_as<vm::Context>(context)->find(host.to_value(L, 2)) : nullptr;
    const Value d = shadow ? shadow->get(host.to_value(L, 3)) : Value();
    host.push(L, d.is_tensor() ? Value(d.tensor().apart()) : d);
    return 1;
}

int stop(lua_State* L) {
    lua_settop(L, 1);
    // A handle of its own, as the result of every operator has: a later write into x does not change it.
    if (const Tensor* t = tensor_at(L, 1)) push(L, *t);
    return 1;
}
// Undifferentiated, each use of a tensor reads its present content.
int content(lua_State* L) {
    lua_settop(L, 1);
    return 1;
}
int overwrite(lua_State* L) {
    check_tensor(L, 1, "overwrite");
    const Tensor value = check_tensor(L, 2, "overwrite");
    reinterpret_cast<Tensor&>(*tensor_place(L, 1)).assign("overwrite", value);
    lua_settop(L, 1);
    return 1;
}
int raw_get(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_rawget(L, 1);
    return 1;
}
int raw_set(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 3);
    lua_rawset(L, 1);
    return 1;
}

// The only element of a tensor.
int item(lua_State* L) {
    lua_settop(L, 1);
    lua_getfield(L, 1, "item");
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

int metamethod(lua_State* L) {
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, luaL_checkstring(L, 2)) == LUA_TNIL) lua_pushnil(L);
    return 1;
}

// is_followed(x): whether a derivative by x is being computed. Where one is, `replace` has the answer.
int is_followed(lua_State* L) {
    lua_pushboolean(L, 0);
    return 1;
}

// table_by_tensor(): a table with tensors as weak keys; an entry lives as long as anything has its tensor.
int table_by_tensor(lua_State* L) {
    State::of(L).loader().note_weak_tables();
    const int table = weak_table(L, "k");
    lua_rawgeti(L, LUA_REGISTRYINDEX, table);
    luaL_unref(L, LUA_REGISTRYINDEX, table);
    return 1;
}

// The key after another in a table's order.
int next_key(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (!lua_next(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    lua_pop(L, 1);
    return 1;
}

// Whether a gradient by the value exists: floating-point numbers and tensors have one.
int is_float(lua_State* L) {
    bool yes = lua_type(L, 1) == LUA_TNUMBER && !lua_isinteger(L, 1);
    if (const Tensor* t = lua_type(L, 1) == LUA_TUSERDATA ? tensor_at(L, 1) : nullptr)
        yes = lunaria::is_float(t->dtype()) || is_complex(t->dtype());
    lua_pushboolean(L, yes);
    return 1;
}

int is_dtype(lua_State* L) {
    lua_pushboolean(L, lua_gettop(L) > 0 && find_dtype(L, 1).has_value());
    return 1;
}

int number(lua_State* L) {
    LuaHost::push_number_function(L, lua::primitive(luaL_checkstring(L, 1)));
    return 1;
}

int replace(lua_State* L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    LuaHost::of(L).stand_ins().set(L, 1, 2, lua_isboolean(L, 3) && lua_toboolean(L, 3));
    if (lua_isstring(L, 3)) LuaHost::of(L).stand_ins().set_in_derivatives(L, 1);
    return 0;
}

// fits(old, value): whether a method such as add_ may replace the old value by the new one.
int fits(lua_State* L) {
    const Tensor* value = tensor_at(L, 2);
    lua_pushboolean(L, value && vm::fits_in_place(check_tensor(L, 1, "fits"), *value));
    return 1;
}

// fills(t, value): whether a number or tensor may be assigned to all of t.
int fills(lua_State* L) {
    const Shape& shape = check_tensor(L, 1, "fills").shape();
    const Tensor* value = tensor_at(L, 2);
    bool fit = value ? value->rank() <= shape.rank() : lua_type(L, 2) == LUA_TNUMBER;
    for (int i = 1; value && fit && i <= value->rank(); ++i)
        fit = value->dim(value->rank() - i) == 1 || value->dim(value->rank() - i) == shape[shape.rank() - i];
    lua_pushboolean(L, fit);
    return 1;
}

int in_place(lua_State* L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    LuaHost::of(L).stand_ins().set_in_place_maker(L, 1);
    return 0;
}

int note_harmless(lua_State* L) {
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        if (row.derivative != Derivative::harmless) return;
        push_library_function(L, row, name);
        if (lua_CFunction f = lua_tocfunction(L, -1)) LuaHost::of(L).stand_ins().set_harmless(f);
        lua_pop(L, 1);
    });
    return 0;
}

// Calls the original of a function that another one replaces: upvalue 1.
int call_original(lua_State* L) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int original(lua_State* L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushcclosure(L, protect<call_original>, 1);
    return 1;
}

// note(t, key, f, order): t[key] = { f = f, order = order }. The table serves only to show functions, so the write is
// no effect.
int note(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 3);
    lua_setfield(L, -2, "f");
    lua_pushvalue(L, 4);
    lua_setfield(L, -2, "order");
    lua_pushvalue(L, 2);
    lua_insert(L, -2);
    lua_rawset(L, 1);
    return 0;
}

// Throws an error of the caller of the library, with the line of the user's text.
int fail(lua_State* L) { throw Error(ErrorKind::argument, "", luaL_checkstring(L, 1)); }

int graph_text(lua_State* L) {
    const int order = static_cast<int>(luaL_optinteger(L, 2, 0));
    push(L, std::string_view(LuaHost::of(L).graph_text(L, 1, order)));
    return 1;
}

}  // namespace

int open_autodiff(lua_State* L) {
    // The operators and the methods of tensors exist from then on.
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria");
    lua_call(L, 1, 0);
    LuaHost& host = LuaHost::of(L);
    prepare_swaps(L);
    lua_newtable(L);
    const std::pair<const char*, lua_CFunction> functions[] = {{"next_key", protect<next_key>},
                                                               {"metamethod", protect<metamethod>},
                                                               {"number", protect<number>},
                                                               {"replace", protect<replace>},
                                                               {"is_float", protect<is_float>},
                                                               {"is_followed", protect<is_followed>},
                                                               {"table_by_tensor", protect<table_by_tensor>},
                                                               {"is_dtype", protect<is_dtype>},
                                                               {"note_harmless", protect<note_harmless>},
                                                               {"original", protect<original>},
                                                               {"note", protect<note>},
                                                               {"graph_text", protect<graph_text>},
                                                               {"fail", protect<fail>},
                                                               {"count_batch_rules", protect<count_batch_rules>},
                                                               {"fits", protect<fits>},
                                                               {"in_place", protect<in_place>},
                                                               {"fills", protect<fills>},
                                                               {"left", protect<left>},
                                                               {"draws", protect<draws>},
                                                               {"swap_out", protect<swap_out>},
                                                               {"swapped_bytes", protect<swapped_bytes>},
                                                               {"swap_away", protect<swap_away>},
                                                               {"swap_back", protect<swap_back>}};
    for (auto [name, function] : functions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    host.set_gives_keys(protect<next_key>);
    const std::tuple<const char*, lua_CFunction, Prelude> intrinsics[] = {
        {"vjp", protect<run_transform<Prelude::vjp>>, Prelude::vjp},
        {"derivative", protect<run_transform<Prelude::derivative>>, Prelude::derivative},
        {"gradient", protect<run_transform<Prelude::gradient>>, Prelude::gradient},
        {"cotangent", protect<cotangent>, Prelude::shadow},
        {"custom", protect<run_transform<Prelude::custom>>, Prelude::custom},
        {"checkpoint", protect<run_transform<Prelude::checkpoint>>, Prelude::checkpoint},
        {"stop", protect<stop>, Prelude::stop},
        {"batch", protect<run_transform<Prelude::batched>>, Prelude::batched},
        {"raw_get", protect<raw_get>, Prelude::raw_index},
        {"raw_set", protect<raw_set>, Prelude::raw_set},
        {"content", protect<content>, Prelude::content},
        {"overwrite", protect<overwrite>, Prelude::overwrite},
        {"item", protect<item>, Prelude::item}};
    for (const auto& [name, function, which] : intrinsics) {
        lua_pushcfunction(L, function);
        host.set_intrinsic(L, -1, which);
        lua_setfield(L, -2, name);
    }
    // The method of tensors; with indices it is written in Lua.
    lua_rawgeti(L, LUA_REGISTRYINDEX, State::of(L).tensor_metatable);
    lua_getfield(L, -1, "__index");
    lua_getupvalue(L, -1, 1);
    lua_getfield(L, -1, "item");
    host.set_intrinsic(L, -1, Prelude::item, "X-");
    lua_pop(L, 4);
    // Functions of Lua that the machine replaces by its own.
    const std::pair<const char*, Prelude> own[] = {
        {"pcall", Prelude::pcall}, {"xpcall", Prelude::xpcall}, {"error", Prelude::error}};
    for (const auto& [name, which] : own) {
        lua_getglobal(L, name);
        host.set_intrinsic(L, -1, which);
        lua_pop(L, 1);
    }
    using Native = vm::NativeFunction::Kind;
    const std::pair<const char*, Native> coroutines[] = {
        {"create", Native::create}, {"wrap", Native::wrap},       {"resume", Native::resume},
        {"yield", Native::yield},   {"status", Native::status},   {"isyieldable", Native::is_yieldable},
        {"close", Native::close},   {"running", Native::running},
    };
    lua_getglobal(L, LUA_COLIBNAME);
    for (const auto& [name, kind] : coroutines) {
        lua_getfield(L, -1, name);
        host.set_intrinsic(L, -1, vm::native_function(kind, host.to_value(L, -1)));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return 1;
}

}  // namespace lunaria
