// Operators that may consume their arguments.
#pragma once

#include <span>

#include "core/operator/op.h"

namespace lunaria {

// As run(), but an elementwise operator may put its result into the memory of an operand that has no other owner. The
// arguments have undefined contents afterwards.
Value run_consuming(const Op& op, std::span<Value> args);

}  // namespace lunaria
