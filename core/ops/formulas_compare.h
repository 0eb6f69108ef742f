// Formulas of core/ops/compare.cpp.
#pragma once

#include "core/ops/formulas.h"

namespace lunaria::formula {

// clang-format off
struct Equal : Comparison { static constexpr std::string_view name = "equal";
    static constexpr Fuses fuses = Fuses::elements;
    template <class T> auto operator()(T a, T b) const { return a == b; } };
struct NotEqual : Comparison { static constexpr std::string_view name = "not_equal";
    static constexpr Fuses fuses = Fuses::elements;
    template <class T> auto operator()(T a, T b) const { return a != b; } };
struct Less : Comparison { static constexpr std::string_view name = "less";
    template <class T> auto operator()(T a, T b) const { return a < b; } };
struct LessEqual : Comparison { static constexpr std::string_view name = "less_equal";
    template <class T> auto operator()(T a, T b) const { return a <= b; } };
struct Greater : Comparison { static constexpr std::string_view name = "greater";
    template <class T> auto operator()(T a, T b) const { return a > b; } };
struct GreaterEqual : Comparison { static constexpr std::string_view name = "greater_equal";
    template <class T> auto operator()(T a, T b) const { return a >= b; } };

struct Isnan : Test { static constexpr std::string_view name = "isnan";
    template <class T> auto operator()(T x) const { return x != x; } };
struct Isinf : Test { static constexpr std::string_view name = "isinf";
    template <class T> auto operator()(T x) const { return abs(x) == T(std::numeric_limits<double>::infinity()); } };
struct Isposinf : Test { static constexpr std::string_view name = "isposinf";
    template <class T> auto operator()(T x) const { return x == T(std::numeric_limits<double>::infinity()); } };
struct Isneginf : Test { static constexpr std::string_view name = "isneginf";
    template <class T> auto operator()(T x) const { return x == T(-std::numeric_limits<double>::infinity()); } };
struct Isfinite : Test { static constexpr std::string_view name = "isfinite";
    template <class T> auto operator()(T x) const { return abs(x) < T(std::numeric_limits<double>::infinity()); } };
// The sign of a NaN depends on the instructions that made it.
struct Signbit : Test { static constexpr std::string_view name = "signbit";
    template <class T> auto operator()(T x) const { return (copysign(T(1), x) < T(0)) & (x == x); } };
// Equal infinities are close; the difference of two infinities would be NaN.
struct Isclose : Test { static constexpr std::string_view name = "isclose";
    static constexpr Fuses fuses = Fuses::never;
    template <class T> auto operator()(T a, T b, T rtol, T atol, T equal_nan) const {
        auto finite = abs(b) < T(std::numeric_limits<double>::infinity());
        return (a == b) | (finite & (abs(a - b) <= atol + rtol * abs(b))) |
               ((a != a) & (b != b) & (equal_nan != T(0))); } };

// On bools these work on bytes that are 0 or 1.
struct LogicalAnd : Logical { static constexpr std::string_view name = "logical_and";
    template <class T> T operator()(T a, T b) const { return a & b; } };
struct LogicalOr : Logical { static constexpr std::string_view name = "logical_or";
    template <class T> T operator()(T a, T b) const { return a | b; } };
struct LogicalXor : Logical { static constexpr std::string_view name = "logical_xor";
    template <class T> T operator()(T a, T b) const { return a ^ b; } };
struct LogicalNot : Logical { static constexpr std::string_view name = "logical_not";
    template <class T> T operator()(T a) const { return a ^ T(1); } };

struct BitwiseAnd : Integer { static constexpr std::string_view name = "bitwise_and";
    template <class T> T operator()(T a, T b) const { return a & b; } };
struct BitwiseOr : Integer { static constexpr std::string_view name = "bitwise_or";
    template <class T> T operator()(T a, T b) const { return a | b; } };
struct BitwiseXor : Integer { static constexpr std::string_view name = "bitwise_xor";
    template <class T> T operator()(T a, T b) const { return a ^ b; } };
struct Invert : Integer { static constexpr std::string_view name = "invert";
    template <class T> T operator()(T a) const { return ~a; } };

struct LeftShift : Integer { static constexpr std::string_view name = "bitwise_left_shift";
    template <class T> T operator()(T a, T b) const { return a << b; } };
struct RightShift : Integer { static constexpr std::string_view name = "bitwise_right_shift";
    template <class T> T operator()(T a, T b) const { return a >> b; } };

// The condition is a mask of T.
struct Where : Formula<Domain::any, Result::same, Fuses::elements, 1> { static constexpr std::string_view name = "where";
    template <class M, class T> T operator()(M condition, T a, T b) const { return select(condition, a, b); } };
struct MaskedFill : Formula<Domain::any, Result::same, Fuses::numbers, 1> { static constexpr std::string_view name = "masked_fill";
    template <class M, class T> T operator()(T x, M mask, T value) const { return select(mask, value, x); } };
// clang-format on

using Comparisons = Formulas<Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual>;
using Tests = Formulas<Isnan, Isinf, Isposinf, Isneginf, Isfinite, Signbit, Isclose>;
using Logic = Formulas<LogicalAnd, LogicalOr, LogicalXor, LogicalNot>;
using Bits = Formulas<BitwiseAnd, BitwiseOr, BitwiseXor, Invert>;
using Shifts = Formulas<LeftShift, RightShift>;
using Selections = Formulas<Where, MaskedFill>;

}  // namespace lunaria::formula
