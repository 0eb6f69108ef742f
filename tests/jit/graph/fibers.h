// Runs thread kernels (core/loops/thread_loop.h) on this processor: every thread of a block is a fiber, and blocks come
// one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/loops/thread_loop.h"

namespace lunaria::testing {

// Runs all blocks of a launch. Empty, or what is wrong with the kernel: a barrier or an exchange that not all threads
// reach, an exchange with a thread that there is none of. `backwards`: threads take turns from the last to the first.
std::string run_threads(graph::EmulatedKernel kernel, const graph::ThreadLaunch& launch,
                        std::span<const uint64_t> words, bool backwards);

}  // namespace lunaria::testing
