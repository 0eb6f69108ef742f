// Operators: activation functions.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_activation_ops(Registry&) {}

}  // namespace lunaria
