// The runner carries out a tree of traces: the whole call, or the part of it that finds what a trace expects.
#pragma once

#include <cstdint>

#include "jit/trace/outside.h"
#include "jit/trace/progress.h"

namespace lunaria::trace {

// What is compiled of a record.
enum class Level : uint8_t {
    nothing,  // every operator runs by itself
    paying,   // recordings are limited, and code is generated for what has run long enough that it is likely to pay
    at_once,  // everything, when it runs for the first time
};

// True when the call is done: `results` are set. False where no branch of the tree fits.
bool run(Outside& outside, Tree& tree, Level level, Progress& progress, vm::Values& results);

}  // namespace lunaria::trace
