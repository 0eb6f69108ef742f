// Operators: reductions and scans.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_reduce_ops(Registry&) {}

}  // namespace lunaria
