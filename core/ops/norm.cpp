// Operators: normalisation.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_norm_ops(Registry&) {}

}  // namespace lunaria
