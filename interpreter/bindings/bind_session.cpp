// ms.help, and questions of scripts about the terminal.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "interpreter/bindings/libraries.h"
#include "interpreter/display/output.h"
#include "interpreter/display/terminal_text.h"
#include "interpreter/protect.h"
#include "interpreter/session/inspection.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// Entries with the words in their name or text (lua/lunaria/help/show.lua); empty where there are none.
std::string search_text(lua_State* L, const std::string& words) {
    const int top = lua_gettop(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.help.show");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "search");
    push(L, std::string_view(words));
    lua_call(L, 1, 1);
    std::string text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    lua_settop(L, top);
    return text;
}

// Words to look for rather than a name: letters with spaces between them.
bool is_query(const std::string& text) {
    const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
    if (first == std::string::npos) return false;
    const std::string_view words = std::string_view(text).substr(first, last - first + 1);
    return words.find(' ') != words.npos && std::all_of(words.begin(), words.end(), [](unsigned char c) {
               return std::isalnum(c) || c == '_' || c == ' ';
           });
}

// help(x): prints what is known about a function, an operator (also by name), or any other value.
int help(lua_State* L) {
    Inspection found;
    if (lua_gettop(L) == 0) {
        found.text =
            "help(x) prints what is known about x: a function, an operator or its name, a tensor, a table.\n"
            "ms.ops holds the operators; x:name(...) calls one as a method of a tensor.\n"
            "help(\"words\") lists what has them in its name or text, as %apropos words does in a session; ?name "
            "there\n"
            "does the same as help(name), and %lsmagic lists the commands. lunaria --docs DIR --html writes it all.\n"
            "Examples write below /tmp, to files and folders whose names begin with lunaria_.\n";
    } else if (lua_type(L, 1) == LUA_TSTRING) {
        const std::string name = lua_tostring(L, 1);
        if (!is_query(name)) found = inspect(State::of(L), name, name.size());
        if (!found.found) {
            found.text = search_text(L, name);
            if (found.text.empty()) throw argument_error("help", str("nothing is known about '", name, "'"));
        }
    } else {
        found = inspect_value(L, 1, "");
    }
    lua_getglobal(L, "print");
    while (found.text.ends_with('\n')) found.text.pop_back();
    push(L, std::string_view(found.text));
    lua_call(L, 1, 0);
    return 0;
}

// is_terminal([file]): whether the file (standard error) is a terminal.
int is_terminal(lua_State* L) {
    std::FILE* file = stderr;
    if (!lua_isnoneornil(L, 1)) {
        const auto* stream = static_cast<luaL_Stream*>(luaL_testudata(L, 1, LUA_FILEHANDLE));
        file = stream && stream->closef ? stream->f : nullptr;
    }
    lua_pushboolean(L, file && isatty(fileno(file)) && !is_output_redirected(L));
    return 1;
}

// terminal_size(): columns and rows of the terminal, or 80 and 24.
int size_of_terminal(lua_State* L) {
    const TerminalSize size = terminal_size();
    lua_pushinteger(L, size.columns);
    lua_pushinteger(L, size.rows);
    return 2;
}

}  // namespace

void bind_session(lua_State* L) {
    lua_pushcfunction(L, protect<help>);
    lua_setfield(L, -2, "help");
    lua_pushcfunction(L, protect<is_terminal>);
    lua_setfield(L, -2, "is_terminal");
    lua_pushcfunction(L, protect<size_of_terminal>);
    lua_setfield(L, -2, "terminal_size");
}

}  // namespace lunaria
