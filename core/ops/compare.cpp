// Operators: comparisons, logic, selection.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_compare_ops(Registry&) {}

}  // namespace lunaria
