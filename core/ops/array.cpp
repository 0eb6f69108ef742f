// Operators: concatenation, splitting, tiling, padding.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_array_ops(Registry&) {}

}  // namespace lunaria
