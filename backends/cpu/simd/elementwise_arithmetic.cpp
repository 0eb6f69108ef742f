// Arithmetic on f32 and f64 that costs a few instructions.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {
constexpr auto kRows0 = float_rows(formula::CheapMath{});
constexpr auto kHalves = half_rows(formula::CheapMath{});

// The bits of numbers of one sign count up with their magnitudes; those of NaN and of equal numbers are not used.
struct Nextafter : formula::Real {
    static constexpr std::string_view name = "nextafter";
    template <class T>
    Pack<T> operator()(Pack<T> from, Pack<T> to) const {
        using P = Pack<T>;
        using U = typename P::U;
        using I = typename P::I;
        const P zero(0.0);
        // A true mask has all bits set: its complement, with the last bit set to 1, is 1 or -1.
        const U step = (U)(~((from < to) != (from < zero)).v) | 1;
        const P next = P::from_bits((I)((U)from.bits() + step));
        const U sign = (U)to.bits() & (typename P::Unsigned(1) << (8 * sizeof(T) - 1));
        const P least = P::from_bits((I)(sign | 1));
        const P moved = select(from == zero, least, next);
        return select(from != from, from, select((from == to) | (to != to), to, moved));
    }
};
constexpr auto kNeighbours = Rows<2>{{entry<Nextafter, float>(), entry<Nextafter, double>()}};

// Changes of the sign of floats of 16 bits, on the bits: a register holds twice as many as in f32, and nothing is
// rounded. A signalling NaN becomes a quiet one, as a conversion makes it.
template <class F, uint16_t Infinity>
struct OfBits : F {
    Pack<int16_t> operator()(Pack<int16_t> x) const {
        using P = Pack<int16_t>;
        constexpr int kQuiet = (Infinity & -Infinity) / 2;
        const P size = x & P(0x7fff), sign = ~x & P(std::is_same_v<F, formula::Neg> ? -0x8000 : 0);
        return select(size > P(Infinity), size | P(kQuiet), size) | sign;
    }
};
template <class F>
constexpr auto sign_rows() {
    return Rows<2>{{entry<OfBits<F, 0x7f80>, int16_t>(F::name, DType::bf16),
                    entry<OfBits<F, 0x7c00>, int16_t>(F::name, DType::f16)}};
}
constexpr auto kNegations = sign_rows<formula::Neg>(), kMagnitudes = sign_rows<formula::Abs>();
}  // namespace

void visit_arithmetic(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 1);
    visit(visitor, kHalves, 1);
    visit(visitor, kNeighbours, 1);
    visit(visitor, kNegations, 1);
    visit(visitor, kMagnitudes, 1);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
