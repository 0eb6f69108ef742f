#include "interpreter/protect.h"

#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "interpreter/host/lua_host.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/state.h"
#include "jit/frontend/syntax_error.h"

namespace lunaria {

std::string current_place(lua_State* L) {
    // The line of the user who called into the library, not the library's own, as long as there is one.
    std::string place;
    lua_Debug frame;
    const LuaHost* host = LuaHost::existing(L);
    const void* machine = host ? host->innermost_call() : nullptr;
    bool stood_for = false;
    for (int level = 0; lua_getstack(L, level, &frame); ++level) {
        lua_getinfo(L, "Sln", &frame);
        if (machine && frame.i_ci == machine) {
            // What runs in the machine was called by a line of its program.
            const std::string line = host->innermost_place();
            if (!line.empty()) return line + ": ";
        }
        if (std::exchange(stood_for, is_entry_call(frame)) || frame.currentline <= 0) continue;
        const bool library = std::string_view(frame.source, frame.srclen).starts_with(kLibraryChunks);
        if (!library || place.empty()) place = str(frame.short_src, ":", frame.currentline, ": ");
        if (!library) break;
    }
    return place;
}

namespace {

// What the C++ library says names its own functions and types: it is put into words of the user's.
std::string own_words(const std::exception& e) {
    if (dynamic_cast<const Error*>(&e) || dynamic_cast<const lua::SyntaxError*>(&e)) return e.what();
    if (dynamic_cast<const std::bad_alloc*>(&e) || dynamic_cast<const std::length_error*>(&e))
        return "not enough memory";
    if (const auto* of_system = dynamic_cast<const std::system_error*>(&e)) return of_system->code().message();
    return "an argument is of a kind or size that the function cannot take";
}

}  // namespace

void raise_error(lua_State* L, const std::exception& e) {
    const auto* ours = dynamic_cast<const Error*>(&e);
    const std::string said = own_words(e);
    const char* text = said.c_str();
    luaL_checkstack(L, 4, "no room for an error message");
    // The functions of the library also work in a Lua state that has no session.
    State* const state = *static_cast<State**>(lua_getextraspace(L));
    if (state && ours && ours->kind() == ErrorKind::interrupt) state->closers().note(L);
    {
        const bool placed = dynamic_cast<const lua::SyntaxError*>(&e) ||
                            (ours && ours->where().empty() && ours->kind() == ErrorKind::syntax);
        const std::string place = placed                           ? std::string()
                                  : ours && !ours->place().empty() ? ours->place() + ": "
                                                                   : current_place(L);
        lua_pushlstring(L, place.data(), place.size());
    }
    lua_pushstring(L, text);
    lua_concat(L, 2);
    lua_error(L);
    __builtin_unreachable();
}

}  // namespace lunaria
