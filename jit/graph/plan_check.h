// Whether a plan that comes from a file is one that can be run: what would make a run leave its memory, find a value
// that was never made, or call a kernel with operands that it does not take is an error.
#pragma once

#include "core/io/file.h"
#include "jit/graph/plan.h"

namespace lunaria::graph {

// Throws an error of the source. Sets what follows from the rest: the sizes of roots in bytes, constants in dense form.
void check_plan(Plan& plan, const Source& source);

// Of a loop step of a plan with sources.
LoopTask task_of(const Plan& plan, const Step& step);

}  // namespace lunaria::graph
