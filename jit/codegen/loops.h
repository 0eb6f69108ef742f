// Writes a kernel's program (core/loops/loop.h) as a function of LLVM's intermediate form.
#pragma once

#include <llvm/IR/Module.h>

#include "core/loops/loop.h"

namespace lunaria::codegen {

// Adds the function to the module; `register_bytes`: the size of a vector register. False where some instruction of the
// program has no code; the module is then of no use.
bool write_loop(llvm::Module& module, const graph::LoopProgram& program, const char* symbol, int register_bytes);

}  // namespace lunaria::codegen
