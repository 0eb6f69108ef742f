// Operators: softmax and its kin.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_softmax_ops(Registry&) {}

}  // namespace lunaria
