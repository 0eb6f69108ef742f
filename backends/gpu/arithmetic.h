// Arithmetic on numbers of kernels for which processors have no instructions: powers, remainders, quotients of signed
// integers.
#pragma once

#include "backends/gpu/writer.h"

namespace lunaria::gpu {

// a^b for floats, computed in f64, and for integers, whose exponents are not negative.
Number power(Number a, Number b);
// The exact remainder of the truncated quotient; of floats.
Number float_remainder(Number a, Number b);

// Quotients and remainders of integers; a division by 0 gives an undefined number.
struct IntegerDivision {
    IntegerDivision(Number a, Number b);
    Number quotient_cut_off() const { return quotient; }
    Number remainder_of_cut_off() const { return rest; }
    Number quotient_floored() const { return select(crosses, quotient - 1, quotient); }
    Number remainder_of_floored() const { return select(crosses, rest + divisor, rest); }

  private:
    Number divisor, quotient, rest;
    Number crosses;  // whether there is a remainder and the exact quotient is negative
};

}  // namespace lunaria::gpu
