#include "backends/gpu/arithmetic.h"

#include <cmath>

namespace lunaria::gpu {

namespace {

Writer& writer() { return Writer::current(); }
Number real(double x) { return writer().constant(DType::f64, x, 0); }

// By squaring, with the lowest `bits` of the exponent.
Number power_by_products(Number a, Number exponent, int bits) {
    Writer& w = writer();
    const Variable result = w.variable(like(a, 1)), base = w.variable(a), left = w.variable(exponent);
    w.loop(w.index(0), w.index(bits), w.index(1), [&](Number) {
        w.when((left.get() & 1) == 1, [&] { result.set(result.get() * base.get()); });
        base.set(base.get() * base.get());
        left.set(shift_right(left.get(), 1));
    });
    return result.get();
}

// exp(y log |x|) with the sign of a power of x, and products for small whole exponents, which are exact where
// logarithms round.
Number power_in_f64(Number x, Number y) {
    constexpr int kBits = 6;
    const Number size = formula("abs", x), exponent = formula("abs", y), infinity = real(HUGE_VAL);
    const Number whole = formula("trunc", y) == y, half = y * 0.5;
    const Number odd = whole & (formula("trunc", half) != half);
    const Number negative = bits(x, DType::i64) < 0;
    const Number small = whole & (exponent < (1 << kBits));
    const Number times = cast(select(small, exponent, like(y, 0)), DType::i64);
    const Number base = select(y < 0, 1 / x, x);
    Number r = exp(y * formula("log", size));
    r = select(negative & odd, 0 - r, r);
    r = select((x < 0) & !whole & (x > real(-HUGE_VAL)), real(NAN), r);
    r = select(small, power_by_products(base, times, kBits), r);
    const Number one = (y == 0) | (x == 1) | ((x == -1) & (exponent == infinity));
    return select(one, like(r, 1), r);
}

// A float as mantissa * 2^(exponent - 1075).
struct Parts {
    Number mantissa, exponent;
    explicit Parts(Number size) {
        const Number pattern = bits(size, DType::i64), field = shift_right(pattern, 52);
        const Number fraction = pattern & ((int64_t{1} << 52) - 1);
        const Number normal = field > 0;
        mantissa = select(normal, fraction + (int64_t{1} << 52), fraction);
        exponent = select(normal, field, like(field, 1));
    }
};

Number power_of_two(Number exponent) { return bits(shift_left(exponent + 1023, 52), DType::f64); }

}  // namespace

Number power(Number a, Number b) {
    if (is_integer(a.dtype)) return power_by_products(a, b, 64);
    return cast(power_in_f64(cast(a, DType::f64), cast(b, DType::f64)), a.dtype);
}

// The mantissas are divided as integers, several bits of the difference of the exponents at a time.
Number float_remainder(Number a, Number b) {
    constexpr int kStep = 11;  // 53 + 11 = 64
    Writer& w = writer();
    const Number x = cast(a, DType::f64), y = cast(b, DType::f64);
    const Number size = formula("abs", x), by = formula("abs", y), infinity = real(HUGE_VAL);
    const Parts dividend(size), divisor(by);
    const Number modulus = select(divisor.mantissa == 0, like(divisor.mantissa, 1), divisor.mantissa);
    const Number ordinary = (size < infinity) & (by < infinity) & (by > 0) & (size >= by);
    const Number apart = select(ordinary, dividend.exponent - divisor.exponent, like(dividend.exponent, 0));
    const Variable rest = w.variable(remainder(dividend.mantissa, modulus));
    const Number none = like(apart, 0), one = like(apart, 1);
    w.loop(none, quotient(apart, kStep), one,
           [&](Number) { rest.set(remainder(shift_left(rest.get(), kStep), modulus)); });
    w.loop(none, remainder(apart, kStep), one,
           [&](Number) { rest.set(remainder(shift_left(rest.get(), 1), modulus)); });
    // In two factors, since the power of two need not be a normal number.
    const Number exponent = divisor.exponent - 1075, first = quotient(exponent + 2048, 2) - 1024;
    const Number reduced = cast(rest.get(), DType::f64) * power_of_two(first) * power_of_two(exponent - first);
    // A number smaller than the divisor is its own remainder; infinities and division by 0 have none.
    Number r = select(ordinary, reduced, size);
    r = select((size < infinity) & ((by > 0) | (by == infinity)), r, real(NAN));
    return cast(formula("copysign", r, x), a.dtype);
}

IntegerDivision::IntegerDivision(Number a, Number b) : divisor(b) {
    const Number a_negative = a < 0, b_negative = b < 0;
    const Number size = select(a_negative, 0 - a, a), by = select(b_negative, 0 - b, b);
    const Number safe = select(by == 0, like(by, 1), by);
    const Number q = gpu::quotient(size, safe), r = remainder(size, safe);
    const Number differ = a_negative ^ b_negative;
    quotient = select(differ, 0 - q, q);
    rest = select(a_negative, 0 - r, r);
    crosses = differ & (r != like(r, 0));
}

}  // namespace lunaria::gpu
