// Writes a kernel's program for a processor that runs threads in blocks (core/loops/thread_loop.h).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <memory>

#include "core/loops/thread_loop.h"

namespace lunaria::codegen {

// What of a thread's surroundings has instructions of its own.
class ThreadModel {
  public:
    virtual ~ThreadModel() = default;
    // Adds the kernel's function and sets the builder into it; the kernel's words.
    virtual llvm::Value* begin(llvm::IRBuilder<>& b, const char* symbol, size_t words) = 0;
    // Numbers of 32 bits: this thread in its block, threads of a block, this block, blocks.
    virtual llvm::Value* thread() = 0;
    virtual llvm::Value* threads() = 0;
    virtual llvm::Value* block() = 0;
    virtual llvm::Value* blocks() = 0;
    virtual void barrier() = 0;
    // Of 32 or 64 bits: the value of the thread of the warp whose number differs by these bits.
    virtual llvm::Value* exchange(llvm::Value* bits, int difference) = 0;
    // Memory of the block: kWarp words for reductions, and what a launch asks for.
    virtual llvm::Value* reduction_memory() = 0;
    virtual llvm::Value* near_memory() = 0;
    // The address space of tensors.
    virtual unsigned tensor_space() const = 0;
};

// The instructions of PTX, NVIDIA's portable assembly.
std::unique_ptr<ThreadModel> ptx_threads(llvm::Module& module);
// Calls into an EmulatedThread.
std::unique_ptr<ThreadModel> emulated_threads(llvm::Module& module);

// Adds the function to the module; false where the program asks for something that there is no code for.
bool write_thread_loop(llvm::Module& module, const graph::LoopProgram& program, const graph::ThreadShape& shape,
                       const char* symbol, ThreadModel& model);

}  // namespace lunaria::codegen
