// Generated kernels: a cache in the process in front of one on disk in front of the code generator.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/graph/thread_loop.h"

namespace lunaria::graph {

// Machine code for each program, kept for the rest of the process. nullptr where there is none: the code generator is
// not installed or refuses. Without `generate` an empty list where one would have to be generated first. Deterministic:
// equal programs give equal code on one machine. Safe from several threads.
std::vector<LoopFunction> find_kernels(std::span<const LoopProgram> programs, bool generate);

// A program as a kernel for a processor that runs threads in blocks, from the disk cache or the code generator: PTX
// text for a target sm_80 or above, an object with an EmulatedKernel named kLoopSymbol for one of x86-64. Empty: there
// is none.
std::string find_thread_kernel(const LoopProgram& program, const ThreadShape& shape, const std::string& target);

// Whether kernels can be generated at all; false without the code generator's library.
bool can_generate();

struct KernelCacheStats {
    size_t generated = 0, read = 0, shared = 0;  // by the code generator, from disk, found in the process
};
KernelCacheStats kernel_cache_stats();
// For tests and benches: forgets the kernels that the process knows (running ones stay valid).
void forget_kernels();

}  // namespace lunaria::graph
