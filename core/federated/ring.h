// Numbers as elements of a ring, the integers modulo 2^bits, in which secure aggregation adds: there sums are exact,
// and a uniform mask hides an element completely, which neither holds for floating point.
//
// A value x is the integer q = x · 2^fraction_bits, rounded to the nearest, ties to even: off by at most
// 2^-(fraction_bits + 1). A client of weight n sends n · q, which is exact, and n itself as the last element; the
// weighted mean is the one quotient at the end. No sum leaves the range of the ring: clients · weight · clip ·
// 2^fraction_bits < 2^(bits - 1).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::federated {

struct Ring {
    int bits = 64;  // 8, 16, ... 64

    int bytes() const { return bits / 8; }
    uint64_t mask() const { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
    // The number from -2^(bits - 1) to 2^(bits - 1) - 1 that an element stands for, and its element.
    int64_t number(uint64_t element) const;
    uint64_t element(int64_t number) const { return static_cast<uint64_t>(number) & mask(); }
};

struct FixedPoint {
    Ring ring;
    int fraction_bits = 24;
    double clip = 64;         // the largest absolute value
    int64_t most_weight = 1;  // of a client
    int64_t most_clients = 1000;
    bool refuses = false;  // whether a value beyond clip is an error; else it becomes the bound, and is counted

    // Throws an argument_error of `where` when the largest sum does not fit.
    void check(std::string_view where) const;
    // The smallest ring in which it fits.
    static FixedPoint smallest(std::string_view where, FixedPoint wanted);

    // Elements of the values, and the weight as the last one. Returns how many values were clipped. NaN and infinity
    // are errors.
    template <class T>
    int64_t encode(std::string_view where, std::span<const T> values, int64_t weight, std::span<uint64_t> to) const;
    // Of a sum: the weighted mean. The last element is the sum of the weights, which must be positive.
    std::vector<double> mean(std::string_view where, std::span<const uint64_t> sum) const;
};

// Elements as bytes, the low one first, ring.bytes() each.
std::string packed(Ring ring, std::span<const uint64_t> elements);
// Adds the elements of `bytes`, which has to.size() of them.
void add_packed(Ring ring, std::string_view bytes, std::span<uint64_t> to);

}  // namespace lunaria::federated
