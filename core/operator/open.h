// Numbers among the attributes of an operator that are differentiated: the operator as one of other operators, in which
// these attributes are operands.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

// The same operator with the parameters whose bit is set in `operands` as operands; made of what the entry says
// (Op::open). Null where the entry says nothing.
const Op* open_operator(const Op& op, uint64_t operands);

bool is_open_operator(const Op& op);

// An id for an operator that stands in no registry.
int next_extra_id();

}  // namespace lunaria
