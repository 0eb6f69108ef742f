// Operators: reshaping, transposing, broadcasting, views.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_shape_ops(Registry&) {}

}  // namespace lunaria
