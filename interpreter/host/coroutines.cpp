#include "interpreter/host/coroutines.h"

#include "interpreter/events.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"

namespace lunaria {

namespace {

// Resumes `thread` with the `count` topmost values of L. Results end up on L: their number, or -1 and a message.
int run_thread(lua_State* L, lua_State* thread, int count) {
    if (!lua_checkstack(thread, count)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    lua_xmove(L, thread, count);
    int results = 0, status = LUA_OK;
    {
        State::RunningThread note(State::of(L), thread);
        status = lua_resume(thread, L, count, &results);
        if (status != LUA_OK && status != LUA_YIELD) State::of(L).events().on_dead_coroutine(thread);
    }
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(thread, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(thread, results);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(thread, L, results);
    return results;
}

// For a coroutine of the virtual machine that a differentiated function has left behind: whether the argument is one.
// The results are then on the stack.
bool machine_coroutine(lua_State* L, vm::NativeFunction::Kind kind) {
    LuaHost* host = LuaHost::existing(L);
    if (!host || host->coroutine_at(L, 1).is_nil()) return false;
    const vm::OperatorFunction function = vm::native_function(kind, Value());
    const Value f = vm::make_object<vm::Closure>(*function.function, function.owner, vm::Values());
    vm::Values args;
    for (int i = 1, n = lua_gettop(L); i <= n; ++i) args.push_back(host->to_value(L, i));
    vm::Values results = host->run(L, f, std::move(args));
    luaL_checkstack(L, static_cast<int>(results.size()) + 8, "too many results");
    lua_settop(L, 0);
    for (const Value& v : results) host->push(L, v);
    return true;
}

// Functions that run in the thread close the variables that it left open. Their error ends up on its stack.
int close_thread(lua_State* L, lua_State* thread) {
    const State::RunningThread note(State::of(L), thread);
    return lua_resetthread(thread);
}

// The library's function, which knows nothing of the machine, is upvalue 1.
int status(lua_State* L) {
    if (machine_coroutine(L, vm::NativeFunction::Kind::status)) return lua_gettop(L);
    if (!lua_isthread(L, 1)) return luaL_typeerror(L, 1, "coroutine");
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int resume(lua_State* L) {
    if (machine_coroutine(L, vm::NativeFunction::Kind::resume)) return lua_gettop(L);
    lua_State* thread = lua_tothread(L, 1);
    if (!thread) return luaL_typeerror(L, 1, "coroutine");
    const int results = run_thread(L, thread, lua_gettop(L) - 1);
    if (results < 0) State::of(L).events().forget_error();
    lua_pushboolean(L, results >= 0);
    lua_insert(L, results >= 0 ? -(results + 1) : -2);
    return results >= 0 ? results + 1 : 2;
}

int call_wrapped(lua_State* L) {
    lua_State* thread = lua_tothread(L, lua_upvalueindex(1));
    const int results = run_thread(L, thread, lua_gettop(L));
    if (results >= 0) return results;
    const int status = lua_status(thread);
    if (status != LUA_OK && status != LUA_YIELD) {
        // Closes the variables that the coroutine left open; an error in doing so replaces the first one.
        close_thread(L, thread);
        lua_xmove(thread, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

int create(lua_State* L) {
    use_target(L, 1);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State* thread = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, thread, 1);
    return 1;
}

int wrap(lua_State* L) {
    create(L);
    lua_pushcclosure(L, protect<call_wrapped>, 1);
    return 1;
}

// The reason why a coroutine cannot be closed: its status in the library's words. Empty when it can be closed.
const char* why_open(lua_State* L, lua_State* thread) {
    if (thread == L) return "running";
    lua_Debug frame;
    return lua_status(thread) == LUA_OK && lua_getstack(thread, 0, &frame) ? "normal" : "";
}

int close(lua_State* L) {
    if (machine_coroutine(L, vm::NativeFunction::Kind::close)) return lua_gettop(L);
    lua_State* thread = lua_tothread(L, 1);
    if (!thread) return luaL_typeerror(L, 1, "coroutine");
    if (const char* status = why_open(L, thread); *status) return luaL_error(L, "cannot close a %s coroutine", status);
    const bool fine = close_thread(L, thread) == LUA_OK;
    lua_pushboolean(L, fine);
    if (fine) return 1;
    lua_xmove(thread, L, 1);
    return 2;
}

}  // namespace

bool is_coroutine_resume(lua_CFunction f) { return f == protect<resume>; }

void track_coroutines(lua_State* L) {
    lua_getglobal(L, LUA_COLIBNAME);
    lua_pushcfunction(L, protect<create>);
    lua_setfield(L, -2, "create");
    lua_pushcfunction(L, protect<resume>);
    lua_setfield(L, -2, "resume");
    lua_pushcfunction(L, protect<wrap>);
    lua_setfield(L, -2, "wrap");
    lua_pushcfunction(L, protect<close>);
    lua_setfield(L, -2, "close");
    lua_getfield(L, -1, "status");
    lua_pushcclosure(L, protect<status>, 1);
    lua_setfield(L, -2, "status");
    lua_pop(L, 1);
}

}  // namespace lunaria
