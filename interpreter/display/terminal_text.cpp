#include "interpreter/display/terminal_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "interpreter/display/output.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// Known by name: a query to the terminal itself would read text that the user types meanwhile. LUNARIA_GRAPHICS
// overrules.
bool has_sixels() {
    constexpr std::string_view kTerms[] = {"foot", "mlterm", "yaft", "contour", "sixel"};
    constexpr std::string_view kPrograms[] = {"WezTerm", "mintty", "rio"};
    if (const std::string_view wish = environment("LUNARIA_GRAPHICS"); !wish.empty()) return wish == "sixel";
    const std::string_view term = environment("TERM"), program = environment("TERM_PROGRAM");
    return std::ranges::any_of(kTerms, [&](std::string_view t) { return term.find(t) != std::string_view::npos; }) ||
           std::ranges::find(kPrograms, program) != std::end(kPrograms);
}

// The value at 1; width, height, color and sixel follow it.
int call_terminal(lua_State* L) {
    luaL_getmetafield(L, 1, "__terminal");
    lua_pushvalue(L, 1);
    lua_createtable(L, 0, 4);
    int at = 2;
    for (const char* name : {"width", "height", "color", "sixel"}) {
        lua_pushvalue(L, at++);
        lua_setfield(L, -2, name);
    }
    lua_call(L, 2, 1);
    luaL_checktype(L, -1, LUA_TSTRING);
    return 1;
}

}  // namespace

TerminalSize terminal_size() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
    return {std::clamp<int>(size.ws_col, 20, 400), std::clamp<int>(size.ws_row, 5, 400)};
}

std::string shown_text(lua_State* L, int index, const PrettyOptions& options) {
    index = lua_absindex(L, index);
    if (!isatty(STDOUT_FILENO) || is_output_redirected(L) || luaL_getmetafield(L, index, "__terminal") == LUA_TNIL)
        return pretty(L, index, options);
    lua_pop(L, 1);
    const TerminalSize size = terminal_size();
    const bool plain = !environment("NO_COLOR").empty() || environment("TERM") == "dumb";
    lua_pushcfunction(L, protect<call_terminal>);
    lua_pushvalue(L, index);
    lua_pushinteger(L, std::min(size.columns - 1, 120));
    lua_pushinteger(L, std::clamp(size.rows - 8, 5, 24));
    lua_pushboolean(L, !plain);
    lua_pushboolean(L, !plain && has_sixels());
    const bool ok = lua_pcall(L, 5, 1, 0) == LUA_OK;
    size_t length = 0;
    const char* text = lua_tolstring(L, -1, &length);
    const std::string result = ok ? std::string(text, length) : pretty(L, index, options);
    lua_pop(L, 1);
    return result;
}

}  // namespace lunaria
