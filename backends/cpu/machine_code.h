// Loads object files of the code generator: relocatable ELF for x86-64 with one function in it. A kernel from the disk
// cache therefore needs no part of LLVM.
#pragma once

#include <string_view>

namespace lunaria::cpu {

// Finds the loop of an operator, null where there is none; see graph::is_done_by_loop.
using FindLoop = const void* (*)(std::string_view op, std::string_view dtype);
void set_loops_of_operators(FindLoop find);

// The function named graph::kLoopSymbol, for the rest of the process; nullptr where the object is damaged, refers to
// functions that generated code may not call, or memory is short.
void* load_machine_code(std::string_view object);

}  // namespace lunaria::cpu
