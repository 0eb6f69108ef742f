// Operators: attention, embedding, dropout.
#include "core/infer.h"
#include "core/ops/families.h"

namespace lunaria {

void add_attention_ops(Registry&) {}

}  // namespace lunaria
