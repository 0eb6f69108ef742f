// Stands for core/ops and core/batching in fuzz targets whose reader runs no operator: there are none, and what would
// compute ends the program. Tensors rest on the part of the core that knows what an operator is.
// Source: core/operator/infer.cpp
// Source: core/run/executor.cpp
#include <cstdlib>

#include "core/batching/rules.h"
#include "core/operator/op.h"
#include "core/ops/layout.h"
#include "core/ops/matrix.h"
#include "core/ops/reduce.h"

namespace lunaria {

Registry& registry() {
    static Registry none;
    return none;
}
Types infer_matmul(const Call&) { std::abort(); }
Types infer_sum(const Call&) { std::abort(); }
void slice_layout(const Call&, size_t, Layout&) { std::abort(); }

namespace batch {

Value last_axes_of(const BatchCall&, int) { std::abort(); }
Value elementwise(const BatchCall&, const Types&) { std::abort(); }

}  // namespace batch

}  // namespace lunaria
