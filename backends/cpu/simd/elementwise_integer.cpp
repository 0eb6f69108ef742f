// Arithmetic on integers, which wraps around, and on bools, which are bytes 0 or 1.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_compare.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

using namespace formula;

using Numbers = Formulas<Add, Sub, Mul, Maximum, Minimum, Clamp, Fmax, Fmin, Abs, Neg, Square, Sign, Floor, Ceil, Trunc,
                         Round, Relu, Relu6, BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift>;
constexpr auto kU8 = rows_for<uint8_t>(Numbers{});
constexpr auto kI8 = rows_for<int8_t>(Numbers{});
constexpr auto kI16 = rows_for<int16_t>(Numbers{});
constexpr auto kI32 = rows_for<int32_t>(Numbers{});
constexpr auto kI64 = rows_for<int64_t>(Numbers{});

// On bools + and max are "or", * and min are "and".
constexpr auto kBools = Rows<15>{{
    entry<LogicalAnd, uint8_t>(LogicalAnd::name, kBoolCode),
    entry<LogicalOr, uint8_t>(LogicalOr::name, kBoolCode),
    entry<LogicalXor, uint8_t>(LogicalXor::name, kBoolCode),
    entry<LogicalNot, uint8_t>(LogicalNot::name, kBoolCode),
    entry<LogicalAnd, uint8_t>(BitwiseAnd::name, kBoolCode),
    entry<LogicalOr, uint8_t>(BitwiseOr::name, kBoolCode),
    entry<LogicalXor, uint8_t>(BitwiseXor::name, kBoolCode),
    entry<LogicalNot, uint8_t>(Invert::name, kBoolCode),
    entry<LogicalOr, uint8_t>(Add::name, kBoolCode),
    entry<LogicalAnd, uint8_t>(Mul::name, kBoolCode),
    entry<LogicalOr, uint8_t>(Maximum::name, kBoolCode),
    entry<LogicalAnd, uint8_t>(Minimum::name, kBoolCode),
    entry<LogicalOr, uint8_t>(Fmax::name, kBoolCode),
    entry<LogicalAnd, uint8_t>(Fmin::name, kBoolCode),
    entry<Clamp, uint8_t>(Clamp::name, kBoolCode),
}};

}  // namespace

void visit_integers(const LoopVisitor& visitor) {
    visit(visitor, kU8, 1);
    visit(visitor, kI8, 1);
    visit(visitor, kI16, 1);
    visit(visitor, kI32, 1);
    visit(visitor, kI64, 1);
    visit(visitor, kBools, 1);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
