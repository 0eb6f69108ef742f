// Whether a loop program that comes from a file is one that code can be made of, and that stays in its memory.
#pragma once

#include <span>
#include <string>

#include "core/loops/graph_backend.h"
#include "core/loops/loop.h"

namespace lunaria::graph {

// The dtype of the memory that an operand lies in: what rows add to is added up elsewhere, in another one.
DType dtype_in_memory(const LoopProgram& program, size_t operand);

// What is wrong with the loop; empty where nothing is. `bytes`: of the memory that each operand lies in, `task.offsets`
// behind its start.
std::string loop_fault(const LoopTask& task, std::span<const size_t> bytes);

}  // namespace lunaria::graph
