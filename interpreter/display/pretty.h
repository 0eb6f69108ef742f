// Values as a session shows them: strings quoted, tables with their contents, tensors as they print.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>

namespace lunaria {

struct PrettyOptions {
    int width = 80;      // a table that does not fit gets one line per entry
    int depth = 4;       // deeper tables are {...}
    int entries = 100;   // of one table
    int total = 2000;    // of all nested tables together
    size_t text = 4000;  // bytes of one string
    bool color = false;
};

// Never raises an error; of the user's code it only calls __tostring and __name of metatables.
std::string pretty(lua_State* L, int index, const PrettyOptions& options = {});

// "function f(a, b) In[1]:3", "builtin function", "operator relu(x: float)".
std::string describe_function(lua_State* L, int index);

// In quotes, with escapes for characters that do not print; UTF-8 stays.
std::string quoted(std::string_view text);

// The text between ANSI escapes, if `color`.
enum class Style { string, number, word, key, dim, error, prompt, bold };
std::string styled(bool color, Style style, std::string_view text);

}  // namespace lunaria
