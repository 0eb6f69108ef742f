// The runner carries out a tree of traces: the whole call, or the part of it that finds what a trace expects.
#pragma once

#include "jit/trace/outside.h"
#include "jit/trace/progress.h"

namespace lunaria::trace {

// True when the call is done: `results` are set. False where no branch of the tree fits. `flat`: nothing is compiled,
// every operator runs by itself.
bool run(Outside& outside, Tree& tree, bool flat, Progress& progress, vm::Values& results);

}  // namespace lunaria::trace
