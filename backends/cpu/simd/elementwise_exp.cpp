// Exponentials and logarithms.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::Exponentials{});

// A shortcut for a single exponent that has a short power.
struct OnePower : formula::Pow {
    template <class T>
    Pack<T> operator()(Pack<T> x, Pack<T> y) const {
        Pack<T> r = x;
        one_short_power(x, y, r);
        return r;
    }
};
struct SecondPower {
    template <class T>
    Pack<T> operator()(Pack<T> x) const {
        return x * x;
    }
};
struct ThirdPower {
    template <class T>
    Pack<T> operator()(Pack<T> x) const {
        return x * x * x;
    }
};

template <class T, bool Around>
void raise(const void* const* in, const int64_t* step, void* out, int64_t count) {
    const T exponent = *static_cast<const T*>(in[1]);
    Pack<T> ignored;
    if (step[1] != 0 || count == 0 || !one_short_power(Pack<T>(1.0), Pack<T>(static_cast<double>(exponent)), ignored))
        return LoopOver<formula::Pow, T, T, -1, 0, 1>::template run<Around>(in, step, out, count);
    if (exponent == T(2)) return LoopOver<SecondPower, T, T, -1, 0>::template run<Around>(in, step, out, count);
    if (exponent == T(3)) return LoopOver<ThirdPower, T, T, -1, 0>::template run<Around>(in, step, out, count);
    LoopOver<OnePower, T, T, -1, 0, 1>::template run<Around>(in, step, out, count);
}
constexpr Rows<2> kPowers{{{formula::Pow::name, kCode<float>, 2, -1, false, raise<float, false>, raise<float, true>},
                           {formula::Pow::name, kCode<double>, 2, -1, false, raise<double, false>, nullptr}}};
}  // namespace

void visit_exponentials(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 4);
    visit(visitor, kPowers, 4);  // in place of the row above
}

}  // namespace lunaria::cpu::LUNARIA_ISA
