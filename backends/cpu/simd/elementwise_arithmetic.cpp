// Arithmetic on f32 and f64 that costs a few instructions.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::CheapMath{});
constexpr auto kNeighbours = float_rows(formula::Formulas<formula::Nextafter>{});
}  // namespace

void visit_arithmetic(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 1);
    visit(visitor, kNeighbours, 1);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
