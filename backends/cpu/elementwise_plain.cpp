// Loops of the plain kernels, the reference for all others: formulas on double, and on integers that wrap around.
#include "backends/cpu/elementwise.h"
#include "backends/cpu/elementwise_rows.h"
#include "backends/cpu/int.h"
#include "core/ops/formulas_all.h"

namespace lunaria::cpu {

namespace {

using namespace formula;

using IntegerMath =
    Formulas<Add, Sub, Mul, Maximum, Minimum, Clamp, Fmax, Fmin, Abs, Neg, Square, Sign, Floor, Ceil, Trunc, Round>;
using IntegerActivations = Formulas<Relu, Relu6>;

template <class T>
void visit_integer(const LoopVisitor& visitor) {
    using S = Int<T>;
    visit<S>(visitor, IntegerMath{}, 1);
    visit<S>(visitor, IntegerActivations{}, 1);
    visit<S>(visitor, IntegerDivisions{}, 16);
    visit<S>(visitor, Comparisons{}, 1);
    visit<S>(visitor, Bits{}, 1);
    visit<S>(visitor, Shifts{}, 2);
    visit<S>(visitor, Selections{}, 1);
}

}  // namespace

void visit_plain_loops(const LoopVisitor& visitor) {
    visit<double>(visitor, RealFormulas{}, 1);
    visit<double>(visitor, Selections{}, 1);
    visit_integer<uint8_t>(visitor);
    visit_integer<int8_t>(visitor);
    visit_integer<uint16_t>(visitor);
    visit_integer<int16_t>(visitor);
    visit_integer<uint32_t>(visitor);
    visit_integer<int32_t>(visitor);
    visit_integer<uint64_t>(visitor);
    visit_integer<int64_t>(visitor);
    visit_complex_loops(visitor);
    using Byte = Int<uint8_t>;
    static constexpr ElementLoopEntry bools[] = {
        row<LogicalAnd, Byte>(DType::boolean),
        row<LogicalOr, Byte>(DType::boolean),
        row<LogicalXor, Byte>(DType::boolean),
        row<LogicalNot, Byte>(DType::boolean),
        row<LogicalAnd, Byte>(DType::boolean, BitwiseAnd::name),
        row<LogicalOr, Byte>(DType::boolean, BitwiseOr::name),
        row<LogicalXor, Byte>(DType::boolean, BitwiseXor::name),
        row<LogicalNot, Byte>(DType::boolean, Invert::name),
        row<LogicalOr, Byte>(DType::boolean, Add::name),
        row<LogicalAnd, Byte>(DType::boolean, Mul::name),
        row<Maximum, Byte>(DType::boolean),
        row<Minimum, Byte>(DType::boolean),
        row<Fmax, Byte>(DType::boolean),
        row<Fmin, Byte>(DType::boolean),
        row<Clamp, Byte>(DType::boolean),
        row<Equal, Byte>(DType::boolean),
        row<NotEqual, Byte>(DType::boolean),
        row<Less, Byte>(DType::boolean),
        row<LessEqual, Byte>(DType::boolean),
        row<Greater, Byte>(DType::boolean),
        row<GreaterEqual, Byte>(DType::boolean),
        row<Where, Byte>(DType::boolean),
        row<MaskedFill, Byte>(DType::boolean),
    };
    visitor.elements(visitor.context, {bools, sizeof(bools) / sizeof(bools[0]), 1});
}

}  // namespace lunaria::cpu
