// Loops of compiled graphs on the device: blocks of threads share rows and elements (core/loops/thread_loop.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/gpu/queue.h"
#include "core/loops/graph_backend.h"
#include "core/loops/loop.h"
#include "core/loops/thread_loop.h"

namespace lunaria::gpu {

// The code for each loop, null where there is none. `target`: that of the driver.
std::vector<graph::LoopRef> compile_loops(const std::string& target, std::span<const graph::LoopTask> loops);

// Runs one of them.
void launch_loop(Queue& queue, const std::string& target, const graph::LoopCode& loop, std::span<void* const> operands);

// Runs a program outside of a graph; false where there is no code for it.
bool run_loop(Queue& queue, const std::string& target, const graph::LoopTask& task, std::span<void* const> operands,
              std::string_view what);

}  // namespace lunaria::gpu
