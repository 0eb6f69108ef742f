// Programs of the simulated cores as Lua writes them, instruction by instruction, and the buffers of their operands.
#pragma once

#include <lua.hpp>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/ascend/instruction.h"

namespace lunaria {

inline constexpr const char* kAscendProgramHandle = "lunaria.ascend.program";

struct WrittenProgram {
    ascend::Program program;
    std::map<std::pair<const void*, int>, int32_t> lines;  // by source and line
    std::unordered_map<std::string, int32_t> places;
};

// Adds the functions that write programs to the module at the top of the stack.
void bind_ascend_programs(lua_State* L);

}  // namespace lunaria
