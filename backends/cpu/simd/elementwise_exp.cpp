// Exponentials and logarithms.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::Exponentials{});
}  // namespace

void visit_exponentials(const LoopVisitor& visitor) { visit(visitor, kRows0, 4); }

}  // namespace lunaria::cpu::LUNARIA_ISA
