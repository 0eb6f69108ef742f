// The check of plans from files: an error is raised for anything by which a run would leave its memory, read a value
// that was never computed, or call a kernel with operands that it does not take.
#pragma once

#include "core/io/file.h"
#include "jit/graph/plan.h"

namespace lunaria::graph {

// Throws an error of the source. Fills in what follows from the rest: the sizes of roots in bytes, constants in dense
// form.
void check_plan(Plan& plan, const Source& source);

// For a loop step of a plan with sources.
LoopTask task_of(const Plan& plan, const Step& step);

}  // namespace lunaria::graph
