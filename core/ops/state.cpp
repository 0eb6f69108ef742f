// Operators: assignment, printing, ordering.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_state_ops(Registry&) {}

}  // namespace lunaria
