// Writes a kernel's program for a processor that runs threads in blocks (core/loops/thread_loop.h).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <memory>
#include <span>

#include "core/loops/thread_loop.h"

namespace lunaria::codegen {

// The operations of a thread's environment, which each kind of target writes with its own instructions.
class ThreadModel {
  public:
    virtual ~ThreadModel() = default;
    // Adds the function of a kernel for blocks of at most so many threads and sets the builder into it; returns the
    // kernel's words.
    virtual llvm::Value* begin(llvm::IRBuilder<>& b, const char* symbol, size_t words, int threads) = 0;
    // Numbers of 32 bits: this thread in its block, threads of a block, this block, blocks.
    virtual llvm::Value* thread() = 0;
    virtual llvm::Value* threads() = 0;
    virtual llvm::Value* block() = 0;
    virtual llvm::Value* blocks() = 0;
    virtual void barrier() = 0;
    // Of 32 or 64 bits: the value of the thread of the warp whose number differs by these bits.
    virtual llvm::Value* exchange(llvm::Value* bits, int difference) = 0;
    // Operations of a warp's threads together (core/loops/thread_program.h): four words of the fragment of a block
    // whose first element is `start` bytes into the block's memory; the sums of a product of fragments, six words of
    // them; two floats as one word.
    using Four = std::array<llvm::Value*, 4>;
    virtual Four fragment(llvm::Value* start, int pitch, bool turned) = 0;
    virtual Four product(std::span<llvm::Value* const> factors, const Four& sums, bool is_bfloat) = 0;
    virtual llvm::Value* pair(llvm::Value* low, llvm::Value* high, bool is_bfloat) = 0;
    // 2 to a float, by an instruction; null where there is none.
    virtual llvm::Value* power_of_2(llvm::Value*) { return nullptr; }
    // Memory of the block: kWarp words for reductions, and the memory that the launch asked for.
    virtual llvm::Value* reduction_memory() = 0;
    virtual llvm::Value* near_memory() = 0;
    // The address space of tensors.
    virtual unsigned tensor_space() const = 0;
};

// The instructions of PTX, NVIDIA's portable assembly.
std::unique_ptr<ThreadModel> ptx_threads(llvm::Module& module);
// Calls into an EmulatedThread.
std::unique_ptr<ThreadModel> emulated_threads(llvm::Module& module);

// Unrolls a loop so that so many iterations run side by side, where their number can be computed; `turn`: the branch to
// the next iteration.
void do_together(llvm::Instruction* turn, int64_t turns);

// Adds the function to the module; false where some instruction of the program has no code.
bool write_thread_loop(llvm::Module& module, const graph::LoopProgram& program, const graph::ThreadShape& shape,
                       const char* symbol, ThreadModel& model);

}  // namespace lunaria::codegen
