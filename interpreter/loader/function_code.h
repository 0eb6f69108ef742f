// The compiled code of Lua functions as bytes, to tell functions apart that have the same lines. Two functions of the
// same chunk name with the same code do the same for the same upvalues. Extracted from the output of lua_dump, with
// names and lines of instructions, without the chunk's name.
#pragma once

#include <cstdint>
#include <lua.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria {

struct FunctionCode {
    uint32_t first_line = 0, last_line = 0;  // 0, 0 for main
    std::string_view bytes;                  // of the function and of functions inside it
    std::vector<int> lines;                  // of its own instructions, in their order
};

// The output of lua_dump for the Lua function at `index`; empty for a C function.
std::string dump_function(lua_State* L, int index);

// The dumped function and all that are nested in it, in the order of their opening, which is that of
// lua::Chunk::functions(): Lua compiles dead code too. The bytes are the dump's own. Empty when the dump is damaged or
// of another format than Lua 5.4's.
std::vector<FunctionCode> read_dump(std::string_view dump);

// The names that the dumped function, and functions nested in it, look up in a table that they have as an upvalue:
// their globals, and fields of some other tables. Empty as above.
std::vector<std::string> names_looked_up(std::string_view dump);

}  // namespace lunaria
