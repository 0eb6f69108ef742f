// Operators on arguments that nobody needs afterwards.
#pragma once

#include <span>

#include "core/operator/op.h"

namespace lunaria {

// As run(), but an elementwise operator may put its result into the memory of an operand that nobody else owns. The
// arguments hold anything afterwards.
Value run_consuming(const Op& op, std::span<Value> args);

}  // namespace lunaria
