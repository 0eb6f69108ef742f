// Writes a thread program (core/loops/thread_program.h): instruction by instruction, in the order of the program.
#pragma once

#include <llvm/IR/Module.h>

#include "core/loops/thread_program.h"
#include "jit/codegen/thread_loops.h"

namespace lunaria::codegen {

// Adds the function to the module; false where some instruction of the program has no code.
bool write_thread_program(llvm::Module& module, const graph::ThreadProgram& program, const char* symbol,
                          ThreadModel& model);

}  // namespace lunaria::codegen
