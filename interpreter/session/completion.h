// Completions of typed text: names of locals, globals and keywords, fields and methods through metatables, options of
// operators, file names within strings, commands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "interpreter/state.h"

namespace lunaria {

struct CompletionItem {
    std::string text;       // replaces the range
    std::string kind;       // "function", "operator", "table", "tensor", "keyword", "option", "file", "command" ...
    std::string signature;  // of functions and operators
};

struct Completions {
    size_t begin = 0, end = 0;          // the range of bytes that an item replaces
    std::vector<CompletionItem> items;  // sorted by text, each once
};

// Variables that hide globals: those of a function in a debugger. `push` pushes the value of a name, or returns false.
struct CompletionScope {
    std::function<std::vector<std::string>()> names;
    std::function<bool(lua_State* L, const std::string& name)> push;
};

// Runs no Lua code but index functions of the library itself.
Completions complete(State& state, const std::string& text, size_t cursor,
                     const std::vector<std::string>& commands = {}, const CompletionScope* scope = nullptr);

using NamePath = std::vector<std::variant<std::string, std::int64_t>>;

// Pushes the value of a chain of names and keys, looked up without calling functions of the user; false, with nothing
// pushed, when there is none.
bool push_path(lua_State* L, const NamePath& path, const CompletionScope* scope = nullptr);

}  // namespace lunaria
