// The context of a cursor in text that is being typed, for completion and for help on arguments. Works on any text,
// however broken, and takes linear time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lunaria::lua {

enum class CursorPlace { code, number, string, long_string, comment };

// A chain such as `ms.ops`, `x[1].y` or `f(x):g()`.
struct NameChain {
    std::string text;  // as written in the source
    std::size_t begin = 0, end = 0;
    // The names and constant keys in order, when the chain consists only of these: it can then be looked up without any
    // call. Empty otherwise.
    std::vector<std::variant<std::string, std::int64_t>> path;
};

struct CallSite {
    NameChain callee;               // of a method call without the method
    std::string method;             // empty for a plain call
    int argument = 0;               // number of the argument that the cursor is in, from 0
    bool in_table = false;          // inside the braces of an argument that is a table: `f(x, {axis = |`
    bool at_key = false;            // at_key: the word is in the place of a field's name
    std::vector<std::string> keys;  // there, the names already given
};

struct CursorContext {
    CursorPlace place = CursorPlace::code;
    std::string word;            // the name before the cursor, or the part of the string before it; may be empty
    std::size_t word_begin = 0;  // a completion replaces the text from here to the cursor
    // '.' or ':' when the word is a field or method of `base`, '[' when it is a key in a string: `t["wo|`; else 0.
    char separator = '\0';
    NameChain base;
    std::optional<CallSite> call;     // the innermost call around the cursor
    std::vector<std::string> locals;  // names of the visible locals, innermost first, each once
};

CursorContext cursor_context(std::string_view text, std::size_t cursor);

}  // namespace lunaria::lua
