// Arithmetic on numbers of kernels that processors have no instructions for: powers, remainders, quotients of integers
// with a sign.
#pragma once

#include "backends/gpu/writer.h"

namespace lunaria::gpu {

// a^b for floats, computed in f64, and for integers, whose exponents are not negative.
Number power(Number a, Number b);
// The remainder of the quotient that is cut off, exact; of floats.
Number float_remainder(Number a, Number b);

// Quotients and remainders of integers; what is divided by 0 becomes anything.
struct IntegerDivision {
    IntegerDivision(Number a, Number b);
    Number quotient_cut_off() const { return quotient; }
    Number remainder_of_cut_off() const { return rest; }
    Number quotient_floored() const { return select(crosses, quotient - 1, quotient); }
    Number remainder_of_floored() const { return select(crosses, rest + divisor, rest); }

  private:
    Number divisor, quotient, rest;
    Number crosses;  // whether there is a remainder, and the exact quotient is negative
};

}  // namespace lunaria::gpu
