// Arguments of operators that come from a file or a text and are not yet bound to the signature.
#pragma once

#include <vector>

#include "core/operator/op.h"

namespace lunaria::ir {

// Adds the default values of arguments that are missing at the end: an operator may have got them since the file was
// written. Throws argument_error when the number of arguments or the kind of one is not what the signature says. Nodes
// count as tensors; their types are the matter of inference.
void complete_arguments(const Op& op, std::vector<Value>& args);

}  // namespace lunaria::ir
