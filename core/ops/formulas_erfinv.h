// The inverse of the error function, made of other functions.
#pragma once

#include "core/ops/formulas.h"

namespace lunaria::formula {

// M. Giles, "Approximating the erfinv function" (2010): good to a few units in the last place of f32. For |x| < 1.
template <class T>
T erfinv_magnitude(T a) {
    constexpr double inner[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
    constexpr double outer[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
    T w = -log((T(1) - a) * (T(1) + a));
    T u = w - T(2.5), v = sqrt(w) - T(3);
    T p = T(inner[0]), q = T(outer[0]);
    for (int i = 1; i < 9; ++i) {
        p = p * u + T(inner[i]);
        q = q * v + T(outer[i]);
    }
    return select(w < T(5), p, q) * a;
}

// The value `y` for |x| with its sign, infinity at the ends, NaN beyond them.
template <class T>
T erfinv_finish(T x, T a, T y) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    y = select(a < T(1), y, select(a == T(1), T(inf), T(nan)));
    return copysign(y, x);
}

template <class T>
T erfinv_series(T x) {
    T a = abs(x);
    return erfinv_finish(x, a, erfinv_magnitude(a));
}

// With two steps of Newton's method on erf or, where that is close to 1 and would cancel, on erfc.
template <class T>
T erfinv_refined(T x) {
    constexpr double slope = 0.88622692545275801365;  // sqrt(pi) / 2
    T a = abs(x);
    T y = erfinv_magnitude(a);
    for (int step = 0; step < 2; ++step) {
        T miss = select(a < T(0.5), erf(y) - a, (T(1) - a) - erfc(y));
        y = y - miss * T(slope) * exp(y * y);
    }
    return erfinv_finish(x, a, select(a < T(1e-18), a * T(slope), y));
}

// clang-format off
inline float erfinv(float x) { return erfinv_series(x); }
inline double erfinv(double x) { return erfinv_refined(x); }
// clang-format on

}  // namespace lunaria::formula
