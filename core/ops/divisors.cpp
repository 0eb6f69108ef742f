#include "core/ops/divisors.h"

namespace lunaria {

namespace {

// Unsigned: the absolute value of the lowest number has no positive counterpart.
uint64_t magnitude(int64_t x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); }

uint64_t divisor(uint64_t x, uint64_t y) {
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

}  // namespace

int64_t greatest_common_divisor(int64_t a, int64_t b) {
    return static_cast<int64_t>(divisor(magnitude(a), magnitude(b)));
}
int64_t least_common_multiple(int64_t a, int64_t b) {
    const uint64_t x = magnitude(a), y = magnitude(b), g = divisor(x, y);
    return g == 0 ? 0 : static_cast<int64_t>(x / g * y);
}

}  // namespace lunaria
