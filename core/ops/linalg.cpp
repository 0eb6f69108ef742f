// Operators: matrix products and linear algebra.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_linalg_ops(Registry&) {}

}  // namespace lunaria
