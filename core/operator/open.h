// Operators with differentiated attributes: an operator in whose parameters some numbers among the attributes are
// operands, made of other operators.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

// The same operator with the parameters whose bit is set in `operands` as operands, by the formula of the entry
// (Op::open). Null where the entry has none.
const Op* open_operator(const Op& op, uint64_t operands);

bool is_open_operator(const Op& op);

// An id for an operator outside of all registries.
int next_extra_id();

}  // namespace lunaria
