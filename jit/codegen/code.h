// Numbers that are code: arithmetic on them writes instructions of LLVM's intermediate form. The formulas of
// core/ops/formulas.h and the functions of core/ops/functions.h, written over any vector type, become the bodies of
// generated kernels with these.
//
// A Code<T> is a vector of numbers T, as many as the kernel works on at once. This header needs nothing of LLVM.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/dtype.h"
#include "core/ops/divisors.h"
#include "core/ops/functions_special.h"

namespace llvm {
class Value;
}

namespace lunaria::codegen {

class Emission;

// Which emission the operators write to. A formula says T(0.5) and has no way to say where to: this is what it finds.
// One per thread, for the time that a kernel is written.
class Writing {
  public:
    explicit Writing(Emission& emission);
    ~Writing();
    Writing(const Writing&) = delete;
    static Emission& current();

  private:
    Emission* const outer_;
};

struct Mask {
    llvm::Value* v = nullptr;
    friend Mask operator&(Mask a, Mask b);
    friend Mask operator|(Mask a, Mask b);
    friend Mask operator!=(Mask a, Mask b);
    friend Mask operator!(Mask a);
};

// Instructions by the kind of their operands, which are looked at: floats or integers.
namespace write {
using Value = llvm::Value*;
enum class Order : uint8_t { equal, unequal, less, less_equal, greater, greater_equal };
enum class Unary : uint8_t { abs, sqrt, floor, ceil, trunc, rint };
Value constant(DType t, double x);
Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value neg(Value a);
Value bit_and(Value a, Value b);
Value bit_or(Value a, Value b);
Value bit_xor(Value a, Value b);
Value bit_not(Value a);
Value shift_left(Value a, Value b);
Value shift_right(Value a, Value b, bool with_sign);
Value compare(Order order, Value a, Value b, bool with_sign);
Value select(Value mask, Value a, Value b);
Value unary(Unary which, Value x);
Value whole_abs(Value x);
Value copysign(Value magnitude, Value sign);
Value fma(Value a, Value b, Value c);
Value convert(Value x, DType from, DType to);
Value bits_of(Value x, DType to);
Value replace_where(Value fast, Value mask, const std::function<Value()>& slow);
Value each(const void* function, std::span<const Value> x);
// Instructions of AVX-512 that the processor has for whole registers only; `name` as in LLVM, without x86.avx512.
enum class Wide : uint8_t { scalef, getexp, getmant, rcp14, rsqrt14, fixup };
Value wide(Wide which, Value x, Value y, int table);
Value lookup(Value place, std::span<const float, 32> numbers);
bool fuses();
bool has_avx512();
}  // namespace write

template <class T>
struct Code {
    using Lane = T;
    static constexpr DType dtype = dtype_of<T>();
    llvm::Value* v = nullptr;

    Code() = default;
    Code(llvm::Value* value) : v(value) {}
    explicit Code(double x) : v(write::constant(dtype, x)) {}  // in every lane
    explicit Code(int x) : Code(static_cast<double>(x)) {}

    friend Code operator+(Code a, Code b) { return write::add(a.v, b.v); }
    friend Code operator-(Code a, Code b) { return write::sub(a.v, b.v); }
    friend Code operator*(Code a, Code b) { return write::mul(a.v, b.v); }
    friend Code operator/(Code a, Code b) requires std::is_floating_point_v<T> { return write::div(a.v, b.v); }
    friend Code operator-(Code a) { return write::neg(a.v); }
    friend Code operator&(Code a, Code b) requires std::is_integral_v<T> { return write::bit_and(a.v, b.v); }
    friend Code operator|(Code a, Code b) requires std::is_integral_v<T> { return write::bit_or(a.v, b.v); }
    friend Code operator^(Code a, Code b) requires std::is_integral_v<T> { return write::bit_xor(a.v, b.v); }
    friend Code operator~(Code a) requires std::is_integral_v<T> { return write::bit_not(a.v); }
    friend Code operator<<(Code a, Code b) requires std::is_integral_v<T> { return write::shift_left(a.v, b.v); }
    friend Code operator>>(Code a, Code b) requires std::is_integral_v<T> {
        return write::shift_right(a.v, b.v, std::is_signed_v<T>);
    }
    friend Mask operator==(Code a, Code b) { return compare(write::Order::equal, a, b); }
    friend Mask operator!=(Code a, Code b) { return compare(write::Order::unequal, a, b); }
    friend Mask operator<(Code a, Code b) { return compare(write::Order::less, a, b); }
    friend Mask operator<=(Code a, Code b) { return compare(write::Order::less_equal, a, b); }
    friend Mask operator>(Code a, Code b) { return compare(write::Order::greater, a, b); }
    friend Mask operator>=(Code a, Code b) { return compare(write::Order::greater_equal, a, b); }

  private:
    static Mask compare(write::Order order, Code a, Code b) {
        return {write::compare(order, a.v, b.v, std::is_signed_v<T>)};
    }
};

// What core/ops/functions.h asks of a vector type.
// clang-format off
template <class T> Code<T> select(Mask m, Code<T> a, Code<T> b) { return write::select(m.v, a.v, b.v); }
template <class T> Code<T> abs(Code<T> x) {
    if constexpr (std::is_unsigned_v<T>) return x;
    else return std::is_integral_v<T> ? write::whole_abs(x.v) : write::unary(write::Unary::abs, x.v); }
// Integers are whole already.
template <class T> Code<T> rounded(write::Unary how, Code<T> x) { return std::is_integral_v<T> ? x.v : write::unary(how, x.v); }
template <class T> Code<T> floor(Code<T> x) { return rounded(write::Unary::floor, x); }
template <class T> Code<T> ceil(Code<T> x) { return rounded(write::Unary::ceil, x); }
template <class T> Code<T> trunc(Code<T> x) { return rounded(write::Unary::trunc, x); }
template <class T> Code<T> rint(Code<T> x) { return rounded(write::Unary::rint, x); }
template <class T> Code<T> exact_sqrt(Code<T> x) { return write::unary(write::Unary::sqrt, x.v); }
template <class T> Code<T> copysign(Code<T> x, Code<T> sign) { return write::copysign(x.v, sign.v); }
template <class T> bool fuses(Code<T>) { return write::fuses(); }
template <class T> Code<T> fma(Code<T> a, Code<T> b, Code<T> c) { return fuses(a) ? write::fma(a.v, b.v, c.v) : (a * b + c).v; }
template <class T> Code<T> fnma(Code<T> a, Code<T> b, Code<T> c) { return fuses(a) ? write::fma((-a).v, b.v, c.v) : (c - a * b).v; }
template <class T> Code<T> at_least(Code<T> x, double limit) { return select(Code<T>(limit) > x, Code<T>(limit), x); }
template <class T> Code<T> at_most(Code<T> x, double limit) { return select(Code<T>(limit) < x, Code<T>(limit), x); }
inline Code<int32_t> bits_of(Code<float> x) { return write::bits_of(x.v, DType::i32); }
inline Code<int64_t> bits_of(Code<double> x) { return write::bits_of(x.v, DType::i64); }
inline Code<float> float_of(Code<int32_t> x) { return write::bits_of(x.v, DType::f32); }
inline Code<double> float_of(Code<int64_t> x) { return write::bits_of(x.v, DType::f64); }
template <class T> Code<T> shift_left(Code<T> x, int count) { return write::shift_left(x.v, Code<T>(count).v); }
template <class T> Code<T> shift_right(Code<T> x, int count) { return write::shift_right(x.v, Code<T>(count).v, false); }
template <class T, class Slow> Code<T> replace_where(Code<T> fast, Mask mask, Slow slow) {
    return write::replace_where(fast.v, mask.v, [&] { return slow().v; }); }
template <float (*F)(float), double (*D)(double), class T> Code<T> each(Code<T> x) {
    llvm::Value* const one[] = {x.v};
    return write::each(sizeof(T) == 4 ? reinterpret_cast<const void*>(F) : reinterpret_cast<const void*>(D), one); }
template <float (*F)(float, float), double (*D)(double, double), class T> Code<T> each(Code<T> x, Code<T> y) {
    llvm::Value* const two[] = {x.v, y.v};
    return write::each(sizeof(T) == 4 ? reinterpret_cast<const void*>(F) : reinterpret_cast<const void*>(D), two); }
template <class F, class... X> Code<float> in_doubles(F f, X... x) {
    return write::convert(f(Code<double>(write::convert(x.v, DType::f32, DType::f64))...).v, DType::f64, DType::f32); }
template <class T> bool has_avx512(Code<T>) { return write::has_avx512(); }
template <class T> Code<T> scalef(Code<T> x, Code<T> n) { return write::wide(write::Wide::scalef, x.v, n.v, 0); }
inline Code<float> getexp(Code<float> x) { return write::wide(write::Wide::getexp, x.v, nullptr, 0); }
inline Code<float> getmant(Code<float> x) { return write::wide(write::Wide::getmant, x.v, nullptr, 0); }
inline Code<float> rcp14(Code<float> x) { return write::wide(write::Wide::rcp14, x.v, nullptr, 0); }
inline Code<float> rsqrt14(Code<float> x) { return write::wide(write::Wide::rsqrt14, x.v, nullptr, 0); }
template <int Table> Code<float> fixup(Code<float> y, Code<float> x) { return write::wide(write::Wide::fixup, y.v, x.v, Table); }
inline Code<float> lookup(Code<int32_t> place, const float (&numbers)[32]) { return write::lookup(place.v, numbers); }
template <class T> Code<T> by_wide_lanes(int64_t (*f)(int64_t, int64_t), Code<T> x, Code<T> y) {
    llvm::Value* const two[] = {write::convert(x.v, x.dtype, DType::i64), write::convert(y.v, y.dtype, DType::i64)};
    return write::convert(write::each(reinterpret_cast<const void*>(f), two), DType::i64, x.dtype); }
template <class T> Code<T> gcd(Code<T> x, Code<T> y) { return by_wide_lanes(greatest_common_divisor, x, y); }
template <class T> Code<T> lcm(Code<T> x, Code<T> y) { return by_wide_lanes(least_common_multiple, x, y); }
// clang-format on

}  // namespace lunaria::codegen
