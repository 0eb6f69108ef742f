// Arguments of operators that come from a file or a text, where nobody has bound them to the signature before.
#pragma once

#include <span>

#include "core/op.h"

namespace lunaria::ir {

// Throws argument_error when the number of arguments or the kind of one is not what the signature says. Nodes count as
// tensors; their types are the matter of inference.
void check_arguments(const Op& op, std::span<const Value> args);

}  // namespace lunaria::ir
