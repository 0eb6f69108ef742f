// Operators: random numbers.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_random_ops(Registry&) {}

}  // namespace lunaria
