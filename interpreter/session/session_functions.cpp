#include "interpreter/session/session_functions.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/io/embedded.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "interpreter/session/session.h"
#include "interpreter/values/values.h"

namespace lunaria {

// A friend of Session; all are Lua functions with the session as upvalue 1.
struct SessionFunctions {
    static Session& session(lua_State* L) { return *static_cast<Session*>(lua_touserdata(L, lua_upvalueindex(1))); }

    static std::string text(lua_State* L, int index) {
        size_t size = 0;
        const char* bytes = luaL_checklstring(L, index, &size);
        return {bytes, size};
    }

    // execute(text): true if all went well. Results and errors become those of the cell with the command.
    static int execute(lua_State* L) {
        Session& s = session(L);
        const std::string& name = s.options_.name;
        s.run_lua(text(L, 1), name.empty() ? str("=In[", s.count_, "]") : name, s.options_, *s.current_);
        lua_pushboolean(L, !s.current_->error);
        return 1;
    }

    // notebook_cell(text, name, may_fail, debug): runs a cell of a notebook and shows its results; true to go on with
    // the next. An error becomes that of the cell with the command.
    static int notebook_cell(lua_State* L) {
        Session& s = session(L);
        if (lua_toboolean(L, 4)) s.state_.debugger().stop_at_next_line();
        lua_pushboolean(L, s.run_notebook_cell(L, text(L, 1), text(L, 2), lua_toboolean(L, 3)));
        return 1;
    }

    // call(f, ...): true and its results, or false; the error becomes that of the cell.
    static int call(lua_State* L) {
        Session& s = session(L);
        if (!s.call(L, lua_gettop(L) - 1, *s.current_)) {
            lua_pushboolean(L, false);
            return 1;
        }
        lua_pushboolean(L, true);
        lua_insert(L, 1);
        return lua_gettop(L);
    }

    static int history(lua_State* L) {
        const auto& history = session(L).history_;
        lua_createtable(L, static_cast<int>(history.size()), 0);
        for (size_t i = 0; i < history.size(); ++i) {
            push(L, std::string_view(history[i]));
            lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
        }
        return 1;
    }

    static int ask(lua_State* L) {
        Session& s = session(L);
        if (!s.hooks_.input) throw state_error("input", "nobody can be asked here");
        const auto line = s.hooks_.input(text(L, 1));
        poll_interrupt();
        if (line)
            push(L, std::string_view(*line));
        else
            lua_pushnil(L);
        return 1;
    }

    // page(text): shows it beside the cell's output; false where there is no such place.
    static int page(lua_State* L) {
        Session& s = session(L);
        lua_pushboolean(L, s.hooks_.page != nullptr);
        if (s.hooks_.page) s.hooks_.page({true, text(L, 1), lua_isnoneornil(L, 2) ? "" : text(L, 2)});
        return 1;
    }

    // Ends all running code; no pcall can stop it.
    static int leave(lua_State* L) {
        session(L).exit_status_ = static_cast<int>(luaL_checkinteger(L, 1));
        session(L).interrupt();
        poll_interrupt();
        return 0;
    }

    // run_shell(command) -> as os.execute. An interrupt that comes meanwhile ends the caller when the shell has ended.
    // The C library's function ignores the signal before it has made the child, and one of that moment would be lost.
    static int run_shell(lua_State* L) {
        const std::string command = text(L, 1);
        poll_interrupt();
        posix_spawnattr_t attributes;
        sigset_t none, interrupts;
        sigemptyset(&none);
        sigemptyset(&interrupts);
        sigaddset(&interrupts, SIGINT);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &interrupts);
        const char* const words[] = {"sh", "-c", command.c_str(), nullptr};
        pid_t child = 0;
        errno = posix_spawn(&child, "/bin/sh", nullptr, &attributes, const_cast<char* const*>(words), environ);
        posix_spawnattr_destroy(&attributes);
        if (errno) return luaL_execresult(L, -1);
        if (interrupt_requested()) kill(child, SIGINT);  // it came before the child was there to hear it
        int status = 0;
        while (waitpid(child, &status, 0) < 0)
            if (errno != EINTR) return luaL_execresult(L, -1);
        poll_interrupt();
        errno = 0;  // Lua takes another value for a failure to start
        return luaL_execresult(L, status);
    }

    static int set_next_input(lua_State* L) {
        Session& s = session(L);
        if (s.hooks_.set_next_input) s.hooks_.set_next_input(text(L, 1));
        return 0;
    }

    static int is_captured(lua_State* L) {
        lua_pushboolean(L, session(L).hooks_.output != nullptr);
        return 1;
    }

    static int debug(lua_State* L) {
        Session& s = session(L);
        if (!s.hooks_.input && !s.hooks_.command) throw state_error("debug", "nobody can be asked here");
        s.prompt_.post_mortem();
        poll_interrupt();
        return 0;
    }

    static int inspect_text(lua_State* L) {
        const std::string name = text(L, 1);
        const Inspection found = session(L).inspect(name, name.size(), static_cast<int>(luaL_optinteger(L, 2, 0)));
        if (!found.found) return 0;
        push(L, std::string_view(found.text));
        push(L, std::string_view(found.markdown));
        return 2;
    }

    static int pretty_text(lua_State* L) {
        lua_settop(L, 1);
        push(L, std::string_view(pretty(L, 1, session(L).pretty_)));
        return 1;
    }

    static int directory(lua_State* L) {
        std::error_code failure;
        if (!lua_isnoneornil(L, 1)) {
            const std::string path = text(L, 1);
            std::filesystem::current_path(path, failure);
            if (failure) throw file_error(path, failure.message());
        }
        push(L, std::string_view(std::filesystem::current_path(failure).string()));
        return 1;
    }

    static int environment(lua_State* L) {
        if (lua_gettop(L) >= 2) {
            setenv(text(L, 1).c_str(), text(L, 2).c_str(), 1);
            return 0;
        }
        lua_newtable(L);
        for (char** entry = environ; *entry; ++entry) {
            const std::string_view both(*entry);
            const size_t equals = both.find('=');
            if (equals == std::string_view::npos) continue;
            push(L, both.substr(0, equals));
            push(L, both.substr(equals + 1));
            lua_rawset(L, -3);
        }
        return 1;
    }
};

namespace {

constexpr const char* kRestoreInput = "lunaria.restore_input";

using F = SessionFunctions;
constexpr std::pair<const char*, lua_CFunction> kFunctions[] = {{"execute", protect<F::execute>},
                                                                {"notebook_cell", protect<F::notebook_cell>},
                                                                {"call", protect<F::call>},
                                                                {"history", protect<F::history>},
                                                                {"ask", protect<F::ask>},
                                                                {"page", protect<F::page>},
                                                                {"set_next_input", protect<F::set_next_input>},
                                                                {"is_captured", protect<F::is_captured>},
                                                                {"debug", protect<F::debug>},
                                                                {"inspect", protect<F::inspect_text>},
                                                                {"pretty", protect<F::pretty_text>},
                                                                {"directory", protect<F::directory>},
                                                                {"environment", protect<F::environment>}};

}  // namespace

std::vector<std::string> install_session_functions(lua_State* L, Session& session) {
    const int top = lua_gettop(L);
    const char* file = "lunaria/commands.lua";
    State::of(L).loader().compile(L, embedded_text(file), str("@lunaria:", file));
    lua_newtable(L);
    for (auto [name, function] : kFunctions) {
        lua_pushlightuserdata(L, &session);
        lua_pushcclosure(L, function, 1);
        lua_setfield(L, -2, name);
    }
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, kCommands);
    std::vector<std::string> names;
    lua_getfield(L, -1, "commands");
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        names.push_back(str("%", lua_tostring(L, -2)));
        lua_pop(L, 1);
    }
    lua_settop(L, top);
    return names;
}

void redirect_input(lua_State* L, Session& session) {
    const char* file = "lunaria/captured.lua";
    State::of(L).loader().compile(L, embedded_text(file), str("@lunaria:", file));
    lua_pushlightuserdata(L, &session);
    lua_pushcclosure(L, protect<F::ask>, 1);
    lua_pushlightuserdata(L, &session);
    lua_pushcclosure(L, protect<F::leave>, 1);
    lua_pushcfunction(L, protect<F::run_shell>);
    lua_call(L, 3, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, kRestoreInput);
}

void restore_input(lua_State* L) {
    if (lua_getfield(L, LUA_REGISTRYINDEX, kRestoreInput) == LUA_TFUNCTION)
        lua_call(L, 0, 0);
    else
        lua_pop(L, 1);
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, kRestoreInput);
}

}  // namespace lunaria
