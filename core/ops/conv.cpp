// Operators: convolutions.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_conv_ops(Registry&) {}

}  // namespace lunaria
