// Operators: sorting, top-k, search.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_sort_ops(Registry&) {}

}  // namespace lunaria
