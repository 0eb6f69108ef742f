// Stops at errors, where they are raised and all frames are still there. Lua reports an error only to the message
// handler of a protected call: pcall and xpcall have one while a front end wants to know of errors.
#include "core/base/interrupt.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/errors/error_report.h"
#include "interpreter/errors/script.h"
#include "interpreter/host/coroutines.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/values/callables.h"

namespace lunaria {

namespace {

int note_error(lua_State* L) {
    lua_settop(L, 1);
    State::of(L).debugger().on_error(L, false);
    lua_settop(L, 1);
    return 1;
}

// For a function that the machine calls: its frames are gone when the machine learns of the error.
int note_call_error(lua_State* L) {
    note_error(L);
    State::of(L).debugger().on_call_error(L);
    lua_settop(L, 1);
    return 1;
}

// The same before the program's own handler: upvalue 1.
int note_and_handle(lua_State* L) {
    note_error(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

// As in Lua's base library; `extra` values lie below the results.
int finish(lua_State* L, int status, lua_KContext extra) {
    if (status != LUA_OK && status != LUA_YIELD) {
        State::of(L).debugger().forget_error();
        lua_pushboolean(L, false);
        lua_pushvalue(L, -2);
        return 2;
    }
    return lua_gettop(L) - static_cast<int>(extra);
}

int pcall(lua_State* L) {
    luaL_checkany(L, 1);
    const int handlers = State::of(L).debugger().push_error_handler(L) ? 1 : 0;
    if (handlers) lua_insert(L, 1);
    lua_pushboolean(L, true);
    lua_insert(L, handlers + 1);
    const int status = lua_pcallk(L, lua_gettop(L) - 2 - handlers, LUA_MULTRET, handlers, handlers, finish);
    return finish(L, status, handlers);
}

// The position of xpcall's message handler, where Lua looks for it when there is an error.
constexpr int kHandler = 2;

int keep_message(lua_State*) { return 1; }

int xpcall(lua_State* L) {
    const int count = lua_gettop(L);
    use_as_function(L, kHandler);
    luaL_checktype(L, kHandler, LUA_TFUNCTION);
    if (State::of(L).debugger().push_error_handler(L)) {
        lua_pop(L, 1);
        lua_pushvalue(L, kHandler);
        lua_pushcclosure(L, protect<note_and_handle>, 1);
        lua_replace(L, kHandler);
    }
    lua_pushboolean(L, true);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2);
    return finish(L, lua_pcallk(L, count - 2, LUA_MULTRET, kHandler, 2, finish), 2);
}

// Whether the function on the level keeps errors from its caller.
bool catches(lua_State* L, lua_Debug& record) {
    lua_getinfo(L, "f", &record);
    const lua_CFunction f = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return f && (f == protect<pcall> || f == protect<xpcall> || is_coroutine_resume(f) || LuaHost::is_protection(f));
}

}  // namespace

void Debugger::skip_handlers(lua_State* L) {
    // Reaching a level takes a walk from the top, so that not all of a deep recursion is searched. Levels further out
    // come closer later: the error is raised anew wherever it was caught.
    constexpr int kSearched = 1000;
    lua_Debug record;
    luaL_checkstack(L, 2, "error");
    for (int level = 0; level < kSearched && lua_getstack(L, level, &record); ++level) {
        lua_getinfo(L, "f", &record);
        const lua_CFunction f = lua_tocfunction(L, -1);
        lua_pop(L, 1);
        if (f != protect<xpcall>) continue;
        lua_pushcfunction(L, keep_message);
        if (!lua_setlocal(L, &record, kHandler)) lua_pop(L, 1);
    }
}

// breakpoint(): stops where it is called.
int Debugger::breakpoint_function(lua_State* L) {
    Debugger& debugger = State::of(L).debugger();
    debugger.stop(L, {L, StopReason::call, {}, {}});
    return 0;
}

void Debugger::install(lua_State* L) {
    const std::pair<const char*, lua_CFunction> functions[] = {
        {"breakpoint", protect<breakpoint_function>}, {"pcall", protect<pcall>}, {"xpcall", protect<xpcall>}};
    for (auto [name, function] : functions) {
        lua_pushcfunction(L, function);
        lua_setglobal(L, name);
    }
}

bool Debugger::push_error_handler(lua_State* L) {
    if (!caught_.load(std::memory_order_relaxed) && !uncaught_.load(std::memory_order_relaxed)) return false;
    luaL_checkstack(L, 4, "error handler");
    lua_pushcfunction(L, protect<note_error>);
    return true;
}

void Debugger::push_call_handler(lua_State* L) {
    luaL_checkstack(L, 4, "error handler");
    lua_pushcfunction(L, protect<note_call_error>);
}

void Debugger::on_call_error(lua_State* L) {
    if (!busy_ && !interrupt_requested() && !is_caught(L)) keep_machine_frames(L, error_text(L));
}

bool Debugger::is_caught(lua_State* L) const {
    lua_Debug record;
    auto search = [&](lua_State* thread) {
        luaL_checkstack(thread, 2, "error");
        const int depth = stack_depth(thread);
        for (int level = 0; level < depth; ++level)
            if (lua_getstack(thread, level, &record) && catches(thread, record)) return true;
        return false;
    };
    if (search(L)) return true;
    for (const auto* t = state_.innermost(); t; t = t->outer())
        if (search(t->resumer())) return true;
    return false;
}

void Debugger::on_error(lua_State* L, bool outermost) {
    if (busy_ || !has_front_ || interrupt_requested()) return;
    if (reported_) {
        if (outermost) reported_ = false;
        return;
    }
    const bool caught = caught_.load(std::memory_order_relaxed), uncaught = uncaught_.load(std::memory_order_relaxed);
    if (!caught && !uncaught) return;
    if (!(!outermost && is_caught(L) ? caught : uncaught)) return;
    reported_ = !outermost;
    Stop s{L, StopReason::error, error_text(L), {}};
    lua_pushvalue(L, -1);
    s.value = luaL_ref(L, LUA_REGISTRYINDEX);
    const int value = s.value;
    stop(L, std::move(s));
    luaL_unref(L, LUA_REGISTRYINDEX, value);
}

void Debugger::on_failure(lua_State* L, const Error& e) {
    if (busy_ || e.kind() == ErrorKind::interrupt) return;
    const bool caught = caught_.load(std::memory_order_relaxed), uncaught = uncaught_.load(std::memory_order_relaxed);
    const bool is_kept = is_caught(L);
    if (has_front_ && (is_kept ? caught : uncaught)) {
        reported_ = true;
        stop(L, {L, StopReason::error, e.what(), {}});
    }
    if (!is_kept) keep_machine_frames(L, e.what());
}

void Debugger::on_dead_coroutine(lua_State* thread) {
    if (!caught_.load(std::memory_order_relaxed) && !uncaught_.load(std::memory_order_relaxed)) return;
    on_error(thread, false);
}

}  // namespace lunaria
