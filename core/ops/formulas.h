// The arithmetic of elementwise operators, each written once over a number type T.
//
// A formula is a struct with the operator's name and a generic call operator. T may be float or double, a SIMD pack, an
// integer that wraps, or a type that builds code or counts operations. So a formula does not branch on values: it
// compares (which gives T's mask type) and selects. Functions such as exp are found by argument-dependent lookup, for
// float and double in this namespace. Constants are written T(0.5).
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>

namespace lunaria::formula {

// The element types of an operator's computation. Half floats are computed in f32.
enum class Domain : uint8_t {
    real,     // f32 and f64
    number,   // these and all integer types
    integer,  // integers only
    any,      // element bits are only moved
};
enum class Result : uint8_t { same, boolean };
// The operands for which generated code may contain a formula (core/loops/). `by_loop`: by calling the operator's own
// loop, for floats, or for integers where the domain has only those.
enum class Fuses : uint8_t {
    never,
    floats,
    single,    // f32; f64 by_loop
    numbers,   // floats and integers
    elements,  // these and bools
    bools,
    by_loop,
};

// Cost: that of one element in generated code, in additions of floats.
template <Domain D = Domain::real, Result R = Result::same, Fuses F = Fuses::never, int Cost = 0>
struct Formula {
    static constexpr Domain domain = D;
    static constexpr Result result = R;
    static constexpr Fuses fuses = F;
    static constexpr int cost = Cost;
};
template <int Cost, Fuses F = Fuses::floats>
using Costly = Formula<Domain::real, Result::same, F, Cost>;
using Real = Costly<2>;
using Number = Formula<Domain::number, Result::same, Fuses::numbers, 1>;
using Integer = Formula<Domain::integer, Result::same, Fuses::by_loop, 4>;
using Logical = Formula<Domain::integer, Result::same, Fuses::bools, 1>;
using Comparison = Formula<Domain::number, Result::boolean, Fuses::numbers, 1>;
using Test = Formula<Domain::real, Result::boolean, Fuses::floats, 2>;

// A list of formulas: what kernels and code generators are made from.
template <class... F>
struct Formulas {};

template <class... A, class... B>
constexpr Formulas<A..., B...> operator+(Formulas<A...>, Formulas<B...>) {
    return {};
}

// The functions that a number type brings along, here for float and double.
template <std::floating_point T>
T select(bool mask, T a, T b) {
    return mask ? a : b;
}

// clang-format off
template <std::floating_point T> T abs(T x) { return std::fabs(x); }
template <std::floating_point T> T sqrt(T x) { return std::sqrt(x); }
template <std::floating_point T> T floor(T x) { return std::floor(x); }
template <std::floating_point T> T ceil(T x) { return std::ceil(x); }
template <std::floating_point T> T trunc(T x) { return std::trunc(x); }
template <std::floating_point T> T rint(T x) { return std::nearbyint(x); }
template <std::floating_point T> T exp(T x) { return std::exp(x); }
template <std::floating_point T> T exp2(T x) { return std::exp2(x); }
template <std::floating_point T> T expm1(T x) { return std::expm1(x); }
// expm1 where x <= 0; elsewhere any number that is cheap.
template <std::floating_point T> T expm1_negative(T x) { return std::expm1(x); }
template <std::floating_point T> T log(T x) { return std::log(x); }
template <std::floating_point T> T log2(T x) { return std::log2(x); }
template <std::floating_point T> T log10(T x) { return std::log10(x); }
template <std::floating_point T> T log1p(T x) { return std::log1p(x); }
template <std::floating_point T> T sin(T x) { return std::sin(x); }
template <std::floating_point T> T cos(T x) { return std::cos(x); }
template <std::floating_point T> T tan(T x) { return std::tan(x); }
template <std::floating_point T> T asin(T x) { return std::asin(x); }
template <std::floating_point T> T acos(T x) { return std::acos(x); }
template <std::floating_point T> T atan(T x) { return std::atan(x); }
template <std::floating_point T> T sinh(T x) { return std::sinh(x); }
template <std::floating_point T> T cosh(T x) { return std::cosh(x); }
template <std::floating_point T> T tanh(T x) { return std::tanh(x); }
template <std::floating_point T> T asinh(T x) { return std::asinh(x); }
template <std::floating_point T> T acosh(T x) { return std::acosh(x); }
template <std::floating_point T> T atanh(T x) { return std::atanh(x); }
template <std::floating_point T> T erf(T x) { return std::erf(x); }
template <std::floating_point T> T erfc(T x) { return std::erfc(x); }
template <std::floating_point T> T normal_cdf(T x) { return T(0.5) * std::erfc(x * T(-0.70710678118654752440)); }
template <std::floating_point T> T lgamma(T x) { return ::lgamma_r(x, std::array<int, 1>{}.data()); }
template <std::floating_point T> T pow(T x, T y) { return std::pow(x, y); }
template <std::floating_point T> T atan2(T y, T x) { return std::atan2(y, x); }
template <std::floating_point T> T fmod(T x, T y) { return std::fmod(x, y); }
template <std::floating_point T> T hypot(T x, T y) { return std::hypot(x, y); }
template <std::floating_point T> T copysign(T x, T y) { return std::copysign(x, y); }
// clang-format on

// Comparisons with NaN are false, so `!(a < b)` also holds for NaN: the two selections below hand a NaN on from either
// side.
template <class T>
T larger(T a, T b) {
    return select((a > b) | (a != a), a, b);
}
template <class T>
T smaller(T a, T b) {
    return select((a < b) | (a != a), a, b);
}

}  // namespace lunaria::formula
