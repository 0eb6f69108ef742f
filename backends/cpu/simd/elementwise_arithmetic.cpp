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
}  // namespace

void visit_arithmetic(const LoopVisitor& visitor) {
    visit(visitor, kRows0, 1);
    visit(visitor, kHalves, 1);
    visit(visitor, kNeighbours, 1);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
