// Arithmetic on integers, which wraps around, and on bools, which are bytes 0 or 1. Operations that packs do not have,
// and whose formulas take several divisions, are computed number by number.
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

// No exponent is negative: kernels check that first. All lanes continue until the largest exponent is used up; a single
// exponent takes a few multiplications.
struct WholePow : Pow {
    template <class T>
    Pack<T> operator()(Pack<T> base, Pack<T> exponent) const {
        using U = typename Pack<T>::U;
        Pack<T> result(1.0);
        for (U left = (U)exponent.v;;) {
            result = select(Mask<T>((typename Pack<T>::I)((left & 1) != 0)), result * base, result);
            left >>= 1;
            if (!any(Mask<T>((typename Pack<T>::I)(left != 0)))) return result;
            base = base * base;
        }
    }
};
constexpr auto kPowers = Rows<5>{{entry<WholePow, uint8_t>(), entry<WholePow, int8_t>(), entry<WholePow, int16_t>(),
                                  entry<WholePow, int32_t>(), entry<WholePow, int64_t>()}};

// No divisor is 0. The lowest number divided by -1 wraps to itself, unlike the processor's division.
template <class T>
void floor_divide(const void* const* in, const int64_t* step, void* out, int64_t count) {
    const auto *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
    auto* to = static_cast<T*>(out);
    for (int64_t i = 0; i < count; ++i) {
        const T x = a[i * step[0]], y = b[i * step[1]];
        if (std::is_signed_v<T> && y == static_cast<T>(-1)) {
            to[i] = static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
            continue;
        }
        const auto quotient = static_cast<T>(x / y), rest = static_cast<T>(x % y);
        to[i] = static_cast<T>(quotient - static_cast<T>((rest != 0) & ((rest < 0) != (y < 0))));
    }
}
template <class T>
constexpr ElementLoopEntry floor_division() {
    return {FloorDivide::name, kCode<T>, 2, -1, false, floor_divide<T>};
}
constexpr auto kDivisions = Rows<5>{{floor_division<uint8_t>(), floor_division<int8_t>(), floor_division<int16_t>(),
                                     floor_division<int32_t>(), floor_division<int64_t>()}};

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
    visit(visitor, kPowers, 8);
    visit(visitor, kDivisions, 16);
    visit(visitor, kBools, 1);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
