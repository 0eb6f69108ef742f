// Operators: pooling.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_pool_ops(Registry&) {}

}  // namespace lunaria
