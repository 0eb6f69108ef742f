#include "interpreter/protect.h"

#include <new>
#include <stdexcept>
#include <system_error>

#include "interpreter/state.h"
#include "jit/frontend/syntax_error.h"

namespace lunaria {

std::string current_place(lua_State* L) {
    // The functions of the library also work in a Lua state without a session.
    if (const State* state = *static_cast<State**>(lua_getextraspace(L))) return state->place(L);
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); ++level) {
        lua_getinfo(L, "Sl", &frame);
        if (frame.currentline > 0) return str(frame.short_src, ":", frame.currentline, ": ");
    }
    return {};
}

namespace {

// Messages of the C++ library name its own functions and types: they are replaced by words for users.
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
