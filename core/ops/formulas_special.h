// Formulas of special functions: error functions and the normal distribution, gamma functions. `Twice`: a number has
// the bits of f64, for which there are more terms, and steps of Halley's method where a polynomial would be long. Every
// coefficient is a Chebyshev fit of the function named beside it or a quotient of Bernoulli numbers.
#pragma once

#include "core/ops/formulas.h"

namespace lunaria::formula {

// Coefficients low order first.
template <class T, size_t K>
T polynomial(T x, const double (&c)[K]) {
    T y = T(c[K - 1]);
    for (size_t i = K - 1; i-- > 0;) y = y * x + T(c[i]);
    return y;
}

// exp(x^2) for 0 <= x <= 27: the square of x rounded to a multiple of 2^-20 is exact, and the rest of x^2 is small.
template <class T>
T exp_square(T x) {
    T head = rint(x * T(0x1p20)) * T(0x1p-20), rest = (x - head) * (x + head);
    return exp(head * head) * (T(1) + rest * (T(1) + rest * (T(0.5) + rest * T(1.0 / 6))));
}
// exp(-x^2 / 2). A rounded square would multiply its error, so the square is taken in two parts.
template <class T>
T gauss_twice(T x) {
    T a = smaller(abs(x), T(40)), head = rint(a * T(0x1p20)) * T(0x1p-20), rest = T(-0.5) * (a - head) * (a + head);
    return exp(T(-0.5) * head * head) * (T(1) + rest * (T(1) + rest * (T(0.5) + rest * T(1.0 / 6))));
}
// exp(x^2) erfc(x) in f64, for x >= 0. From 25 on by the asymptotic series, since erfc underflows soon after.
template <class T>
T erfcx_right_twice(T x, T power) {
    constexpr double series[] = {1, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875};
    T inverse = T(1) / x, far = T(0.56418958354775628695) * inverse * polynomial(inverse * inverse, series);
    return select(x < T(25), power * erfc(x), far);
}
template <class T>
T erfcx_right_twice(T x) {
    return erfcx_right_twice(x, exp_square(smaller(x, T(27))));
}
template <class T>
T erfcx_twice(T x) {
    T a = abs(x), power = exp_square(smaller(a, T(27))), r = erfcx_right_twice(a, power);
    return select(x < T(0), T(2) * power - r, r);
}
inline double gauss(double x) { return gauss_twice(x); }
inline double erfcx_right(double x) { return erfcx_right_twice(x); }
inline double erfcx(double x) { return erfcx_twice(x); }

// The number whose erf is a = 1 - t: M. Giles, "Approximating the erfinv function" (2010), with fits of our own beyond
// w = 5. Both a and t are passed, since each has digits that the other has lost. `Far`: also for t below 2^-24.
template <bool Far, class T>
T erfinv_estimate(T a, T t) {
    constexpr double inner[] = {1.50140941,      0.246640727,    -0.00417768164, -0.00125372503, 0.00021858087,
                                -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
    // of sqrt(w) - 3.168, for w up to 16.8
    constexpr double outer[] = {3.0014611154443323,     1.004691231792413,      0.005289729108109123,
                                -0.0027407738169847266, 0.0009496523549912755,  -0.0002351926257196103,
                                9.783167331717165e-06,  3.4707522476513996e-05, -1.574161199562073e-05};
    // over sqrt(w), of 1 / sqrt(w) - 0.1433, for w up to 745
    constexpr double far[] = {0.9812009539151423,  -0.19131224719593007, -0.17426270642950714,
                              1.1238110976949292,  -2.1618397969978407,  4.645478181000785,
                              -14.231465047019194, 150.42187141332175,   -772.0792552161939};
    T w = -log(t * (T(1) + a)), root = sqrt(w);
    T r = select(w < T(5), polynomial(w - T(2.5), inner) * a, polynomial(root - T(3.168033988749895), outer));
    if constexpr (Far) r = select(w < T(16.5), r, root * polynomial(T(1) / root - T(0.14331501831501832), far));
    return r;
}
template <bool Twice, bool Far, class T>
T erfinv_of(T a, T t) {
    if constexpr (!Twice) {
        return erfinv_estimate<Far>(a, t);
    } else {
        constexpr double slope = 0.88622692545275801365;  // sqrt(pi) / 2
        // One step triples the digits: of erf(y) - a, and where erf is close to 1 of log(erfc(y)) - log(t).
        T y = erfinv_estimate<true>(a, t);
        T miss = (erf(y) - a) * T(slope) * exp(y * y);
        T near = select(a < T(1e-18), a * T(slope), y - miss / (T(1) + y * miss));
        T e = erfcx_right(y), rate = T(1 / slope) / e, d = (y * y + log(t) - log(e)) / rate;
        T far = y - d / (T(1) - T(0.5) * d * (rate - T(2) * y));
        return select(a < T(0.5), near, far);
    }
}
// The value `y` for |x| with its sign, infinity at the ends, NaN beyond them.
template <bool Twice, class T>
T erfinv_signed(T x) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    T a = abs(x), y = erfinv_of<Twice, false>(a, T(1) - a);
    return copysign(select(a < T(1), y, select(a == T(1), T(inf), T(nan))), x);
}
// The quantile of the normal distribution, from the nearer tail.
template <bool Twice, class T>
T ndtri_of(T p) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    auto lower = p < T(0.5);
    T q = select(lower, p, T(1) - p), twice = q + q;
    T y = T(1.41421356237309504880) * erfinv_of<Twice, true>(T(1) - twice, twice);
    y = select(q > T(0), y, select(q == T(0), T(inf), T(nan)));
    return select(lower, -y, y);
}
// The distribution function of the normal distribution and its logarithm: exp(-x^2 / 2) erfcx(|x| / sqrt(2)) / 2 to
// the left, and 1 less that to the right.
template <class T>
T ndtr_of(T x) {
    T tail = T(0.5) * erfcx_right(abs(x) * T(0.70710678118654752440)) * gauss(x);
    return select(x < T(0), tail, T(1) - tail);
}
template <class T>
T log_ndtr_of(T x) {
    T half = T(0.5) * erfcx_right(abs(x) * T(0.70710678118654752440));
    return select(x < T(0), log(half) - T(0.5) * x * x, log1p(-(half * gauss(x))));
}

// psi(x) = (x - x0) P(x) on [1, 2] around its zero x0; up to 3 by one step of psi(x) = psi(x + 1) - 1/x down to there.
// From 3 on x is moved up, two steps in one division, and the asymptotic series is used.
template <bool Twice, class T>
T digamma_of(T x) {
    constexpr double inf = std::numeric_limits<double>::infinity(), pi = 3.14159265358979323846;
    // of x - 1.5
    constexpr double single[] = {0.95105588,  -0.4236275,   0.24054266,  -0.14839876,  0.0949807,  -0.062057463,
                                 0.040894881, -0.025778943, 0.016909167, -0.016387784, 0.011232875};
    constexpr double twice[] = {
        0.9510558760318328,    -0.4236274212814606,     0.24054248424078736,    -0.14840492305388006,
        0.09498872445282817,   -0.06192213327556183,    0.040760833944741226,   -0.02697579665686472,
        0.01790724819228875,   -0.011908220169786002,   0.007927024136843637,   -0.0052799364178857415,
        0.0035180792717028125, -0.0023455016279107115,  0.0015635739915515125,  -0.0010364227247828023,
        0.0006899428514219089, -0.00048606417050412354, 0.00032689316473621455, -0.00014460384609240088,
        9.158816882117e-05,    -0.00017837342400462423, 0.00012241591000024265};
    // B(2k) / 2k
    constexpr double shorter[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240};
    constexpr double longer[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                 1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
    auto negative = x < T(0);
    T y = select(negative, T(1) - x, x);

    auto below = y < T(1), inside = y < T(2), low = y < T(3);
    T inverse = T(1) / select(below, y, y - T(1));
    T c = select(below, y + T(1), select(inside, y, y - T(1)));
    T step = select(below, -inverse, select(inside, T(0), inverse));
    T zero =
        (c - T(Twice ? 1.4616321449683622 : 0x1.762d86p+0)) - T(Twice ? 9.5499954299656977e-17 : 1.2438149938918910e-8);
    T central = T(0);
    if constexpr (Twice)
        central = zero * polynomial(c - T(1.5), twice);
    else
        central = zero * polynomial(c - T(1.5), single);

    T sum = T(0), z = y;
    for (int k = 0; k < (Twice ? 3 : 1); ++k) {
        auto small = z < T(Twice ? 8 : 5);
        sum = sum + select(small, (z + z + T(1)) / (z * (z + T(1))), T(0));
        z = select(small, z + T(2), z);
    }
    T r = T(1) / z, s = r * r;
    T series = T(0);
    if constexpr (Twice)
        series = s * polynomial(s, longer);
    else
        series = s * polynomial(s, shorter);
    T value = select(low, central + step, log(z) - (sum + (T(0.5) * r + series)));
    // tan has period pi: the angle from the nearest integer keeps it accurate.
    T angle = (x - rint(x)) * T(pi);
    T reflected = value - T(pi) / tan(angle);
    T result = select(negative, select(x == rint(x), T(std::numeric_limits<double>::quiet_NaN()), reflected), value);
    return select(x == T(0), copysign(T(inf), -x), select(x == T(inf), x, result));
}
// psi'(x) in the same way: all terms are positive. To the left of 1/2 by pi^2 / sin(pi x)^2 - psi'(1 - x).
template <bool Twice, class T>
T trigamma_of(T x) {
    constexpr double pi = 3.14159265358979323846;
    // B(2k)
    constexpr double shorter[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30};
    constexpr double longer[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                 5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
    auto left = x < T(0.5);
    T y = select(left, T(1) - x, x), sum = T(0);
    for (int k = 0; k < (Twice ? 5 : 2); ++k) {
        auto small = y < T(Twice ? 10 : 4.5);
        T next = y + T(1), inverse = T(1) / (y * next);
        sum = sum + select(small, (y * y + next * next) * inverse * inverse, T(0));
        y = select(small, y + T(2), y);
    }
    T r = T(1) / y, s = r * r;
    T series = T(0);
    if constexpr (Twice)
        series = polynomial(s, longer);
    else
        series = polynomial(s, shorter);
    T value = sum + (r + s * (T(0.5) + r * series));
    T sine = sin((x - rint(x)) * T(pi)), quotient = T(pi) / sine;
    return select(left, quotient * quotient - value, value);
}

// clang-format off
inline double ndtr(double x) { return ndtr_of(x); }
inline double log_ndtr(double x) { return log_ndtr_of(x); }
inline double ndtri(double p) { return ndtri_of<true>(p); }
inline double erfinv(double x) { return erfinv_signed<true>(x); }
inline double digamma(double x) { return digamma_of<true>(x); }
inline double trigamma(double x) { return trigamma_of<true>(x); }

struct Erf : Costly<12, Fuses::single> { static constexpr std::string_view name = "erf";
    template <class T> T operator()(T x) const { return erf(x); } };
struct Erfc : Costly<12, Fuses::single> { static constexpr std::string_view name = "erfc";
    template <class T> T operator()(T x) const { return erfc(x); } };
struct Erfcx : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "erfcx";
    template <class T> T operator()(T x) const { return erfcx(x); } };
struct Erfinv : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "erfinv";
    template <class T> T operator()(T x) const { return erfinv(x); } };
struct Ndtri : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "ndtri";
    template <class T> T operator()(T x) const { return ndtri(x); } };
struct Ndtr : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "ndtr";
    template <class T> T operator()(T x) const { return ndtr(x); } };
struct LogNdtr : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "log_ndtr";
    template <class T> T operator()(T x) const { return log_ndtr(x); } };
struct Lgamma : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "lgamma";
    template <class T> T operator()(T x) const { return lgamma(x); } };
struct Digamma : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "digamma";
    template <class T> T operator()(T x) const { return digamma(x); } };
struct Trigamma : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "trigamma";
    template <class T> T operator()(T x) const { return trigamma(x); } };
// log(x / (1 - x)). Around 1/2, where the quotient is close to 1, the quotient minus 1 is used: q = (2x - 1) / (1 - x).
// The digits that 1 + q loses by rounding are most of its logarithm.
struct LogOdds : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "log_odds";
    template <class T> T operator()(T x) const {
        auto central = abs(x - T(0.5)) < T(0.25);
        T q = select(central, x + x - T(1), x) / (T(1) - x), odds = select(central, q + T(1), q);
        return log(odds) + select(central, q - (odds - T(1)), T(0)); } };
// clang-format on

using SpecialFunctions = Formulas<Erf, Erfc, Erfcx, Erfinv, Ndtr, Ndtri, LogNdtr, Lgamma, Digamma, Trigamma, LogOdds>;

}  // namespace lunaria::formula
