// Operators: constructors.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_create_ops(Registry&) {}

}  // namespace lunaria
