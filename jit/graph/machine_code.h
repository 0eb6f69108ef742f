// Loads the object files that the code generator writes: relocatable ELF for x86-64 with one function in it. So that a
// kernel from the disk cache needs no part of LLVM.
#pragma once

#include <span>

#include "jit/graph/loop.h"

namespace lunaria::graph {

inline constexpr const char* kLoopSymbol = "loop";

// The function named kLoopSymbol, for the rest of the process; nullptr where the object is damaged, refers to functions
// that generated code has no business with, or there is no memory.
LoopFunction load_machine_code(std::span<const char> object);

}  // namespace lunaria::graph
