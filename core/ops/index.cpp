// Operators: gather, scatter, masks.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_index_ops(Registry&) {}

}  // namespace lunaria
