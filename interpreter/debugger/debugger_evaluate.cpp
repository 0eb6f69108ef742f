// Lua code in the frames of a stopped program: its globals are the frame's variables, live in both directions.
#include <new>
#include <utility>

#include "core/base/interrupt.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/errors/script.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

constexpr const char* kScope = "lunaria.debugger.scope";
constexpr std::string_view kOwnPlace = "(debug):1: ";

// The stop and the frame of the code. A function that outlives the stop finds globals only.
struct Scope {
    Debugger* debugger;
    const uint64_t* current;
    uint64_t stop;
    size_t frame;
};

Scope& scope_of(lua_State* L) { return *static_cast<Scope*>(lua_touserdata(L, lua_upvalueindex(1))); }

bool is_live(const Scope& s) { return *s.current == s.stop && s.frame < s.debugger->stack().frames().size(); }

void push_globals(lua_State* L, const Scope& s) {
    if (is_live(s))
        s.debugger->stack().push_environment(L, s.frame);
    else
        lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

bool find(lua_State* L, const Scope& s, StackVariable& found) {
    return is_live(s) && lua_type(L, 2) == LUA_TSTRING &&
           s.debugger->stack().find(L, s.frame, lua_tostring(L, 2), found);
}

int read_name(lua_State* L) {
    const Scope& s = scope_of(L);
    StackVariable found;
    if (find(L, s, found)) {
        s.debugger->stack().push(L, s.frame, found);
        return 1;
    }
    push_globals(L, s);
    lua_pushvalue(L, 2);
    lua_gettable(L, -2);
    return 1;
}

int write_name(lua_State* L) {
    const Scope& s = scope_of(L);
    lua_settop(L, 3);
    StackVariable found;
    if (find(L, s, found)) {
        s.debugger->stack().assign(L, s.frame, found);
        return 0;
    }
    push_globals(L, s);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_settable(L, -3);
    return 0;
}

int call_body(lua_State* L) {
    const auto& body = *static_cast<const std::function<void(lua_State*)>*>(lua_touserdata(L, 1));
    lua_settop(L, 0);
    body(L);
    return 0;
}

}  // namespace

bool Debugger::guarded(const std::function<void(lua_State*)>& body, std::string& error) {
    lua_State* L = state_.running();
    if (!lua_checkstack(L, 4)) {
        error = "stack overflow";
        return false;
    }
    // Evaluated code does not stop.
    struct Busy {
        bool& busy;
        bool before;
        ~Busy() { busy = before; }
    } restore{busy_, std::exchange(busy_, true)};
    const int top = lua_gettop(L);
    // A thread of its own: hooks do not run within a hook, and Ctrl-C needs one.
    lua_State* T = lua_newthread(L);
    int status = LUA_OK;
    {
        const State::RunningThread note(state_, T);
        lua_pushcfunction(T, protect<call_body>);
        lua_pushlightuserdata(T, const_cast<std::function<void(lua_State*)>*>(&body));
        status = lua_pcall(T, 1, 0, 0);
        if (status != LUA_OK) error = error_text(T);
    }
    lua_settop(L, top);
    if (interrupt_requested()) state_.clear_interrupt();
    if (error.starts_with(kOwnPlace)) error.erase(0, kOwnPlace.size());
    return status == LUA_OK;
}

int Debugger::evaluate(lua_State* T, size_t frame, const std::string& code) {
    const int base = lua_gettop(T);
    luaL_checkstack(T, 10, "evaluation");
    try {
        state_.loader().compile(T, "return " + code, "=(debug)");
    } catch (const Error&) {
        state_.loader().compile(T, code, "=(debug)");
    }
    lua_newtable(T);
    lua_createtable(T, 0, 3);
    new (lua_newuserdatauv(T, sizeof(Scope), 0)) Scope{this, &stop_count_, stop_count_, frame};
    lua_pushvalue(T, -1);
    lua_pushcclosure(T, protect<read_name>, 1);
    lua_setfield(T, -3, "__index");
    lua_pushcclosure(T, protect<write_name>, 1);
    lua_setfield(T, -2, "__newindex");
    lua_pushstring(T, kScope);
    lua_setfield(T, -2, "__name");
    lua_setmetatable(T, -2);
    lua_setupvalue(T, base + 1, 1);
    int count = 0;
    if (frame < stack_.frames().size())
        for (const StackVariable& v : stack_.variables(T, frame, VariableKind::vararg)) {
            luaL_checkstack(T, 2, "evaluation");
            stack_.push(T, frame, v);
            ++count;
        }
    lua_call(T, count, LUA_MULTRET);
    return lua_gettop(T) - base;
}

}  // namespace lunaria
