// An integer that wraps around, as a number type for formulas.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace lunaria::cpu {

template <class T>
struct Int {
    using U = std::make_unsigned_t<T>;
    T v = 0;

    Int() = default;
    Int(T x) : v(x) {}
    static Int wrapped(uint64_t x) { return Int(static_cast<T>(static_cast<U>(x))); }
    uint64_t wide() const { return static_cast<uint64_t>(v); }

    friend Int operator+(Int a, Int b) { return wrapped(a.wide() + b.wide()); }
    friend Int operator-(Int a, Int b) { return wrapped(a.wide() - b.wide()); }
    friend Int operator*(Int a, Int b) { return wrapped(a.wide() * b.wide()); }
    friend Int operator-(Int a) { return wrapped(0 - a.wide()); }
    // The divisor is not 0: kernels check it before they divide. The lowest number divided by -1 wraps to itself.
    friend Int operator/(Int a, Int b) {
        if constexpr (std::is_signed_v<T>)
            if (b.v == -1) return -a;
        return b.v == 0 ? Int() : Int(static_cast<T>(a.v / b.v));
    }
    friend Int operator&(Int a, Int b) { return wrapped(a.wide() & b.wide()); }
    friend Int operator|(Int a, Int b) { return wrapped(a.wide() | b.wide()); }
    friend Int operator^(Int a, Int b) { return wrapped(a.wide() ^ b.wide()); }
    friend Int operator~(Int a) { return wrapped(~a.wide()); }
    // Shifting by the width or more leaves 0 (or the sign); so does a negative count.
    friend Int operator<<(Int a, Int b) { return b.inside() ? wrapped(a.wide() << b.v) : Int(); }
    friend Int operator>>(Int a, Int b) {
        if (b.inside()) return Int(static_cast<T>(a.v >> b.v));
        return Int(static_cast<T>(a.v < 0 ? -1 : 0));
    }
    friend bool operator==(Int a, Int b) { return a.v == b.v; }
    friend bool operator!=(Int a, Int b) { return a.v != b.v; }
    friend bool operator<(Int a, Int b) { return a.v < b.v; }
    friend bool operator<=(Int a, Int b) { return a.v <= b.v; }
    friend bool operator>(Int a, Int b) { return a.v > b.v; }
    friend bool operator>=(Int a, Int b) { return a.v >= b.v; }

    friend Int select(bool mask, Int a, Int b) { return mask ? a : b; }
    friend Int abs(Int a) { return a.v < 0 ? -a : a; }
    friend Int floor(Int a) { return a; }
    friend Int ceil(Int a) { return a; }
    friend Int trunc(Int a) { return a; }
    friend Int rint(Int a) { return a; }
    friend Int copysign(Int a, Int) { return a; }
    friend Int fmod(Int a, Int b) { return a - a / b * b; }
    // The exponent is not negative, see above.
    friend Int pow(Int a, Int b) {
        Int r(1);
        for (uint64_t n = b.wide(); n != 0; n >>= 1) {
            if (n & 1) r = r * a;
            a = a * a;
        }
        return r;
    }
    friend Int gcd(Int a, Int b) {
        // On unsigned numbers: the absolute value of the lowest one has no positive counterpart.
        uint64_t x = a.magnitude(), y = b.magnitude();
        while (y != 0) {
            uint64_t rest = x % y;
            x = y;
            y = rest;
        }
        return wrapped(x);
    }
    friend Int lcm(Int a, Int b) {
        uint64_t x = a.magnitude(), y = b.magnitude(), g = gcd(a, b).magnitude();
        return g == 0 ? Int() : wrapped(x / g * y);
    }

  private:
    bool inside() const { return v >= T(0) && static_cast<uint64_t>(v) < 8 * sizeof(T); }
    uint64_t magnitude() const { return v < T(0) ? 0 - wide() : wide(); }
};

}  // namespace lunaria::cpu
