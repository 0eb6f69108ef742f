// The check of loop programs that come from files: code can be made of them, and they stay within their memory.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/loops/graph_backend.h"
#include "core/loops/loop.h"

namespace lunaria::graph {

// The operands of a formula in programs: how many there are, and which are masks (bits); no operands: there is no such
// formula.
struct FormulaForm {
    size_t operands = 0;
    uint32_t masks = 0;
};
FormulaForm formula_form(std::string_view formula);

// The dtype of an operand's memory: sums over rows are made elsewhere, in another dtype.
DType dtype_in_memory(const LoopProgram& program, size_t operand);

// The fault of the loop; empty where it has none. `bytes`: the size of the memory of each operand, which begins at
// `task.offsets`.
std::string loop_fault(const LoopTask& task, std::span<const size_t> bytes);

}  // namespace lunaria::graph
