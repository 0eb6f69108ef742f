// Operators: loss functions.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_loss_ops(Registry&) {}

}  // namespace lunaria
