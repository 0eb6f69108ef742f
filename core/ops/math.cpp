// Operators: elementwise arithmetic, exponentials, trigonometry, rounding.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_math_ops(Registry&) {}

}  // namespace lunaria
