// Common divisors and multiples of whole numbers, which wrap around: the result of narrower numbers is the low part.
#pragma once

#include <cstdint>

namespace lunaria {

int64_t greatest_common_divisor(int64_t a, int64_t b);
int64_t least_common_multiple(int64_t a, int64_t b);  // 0 where one of them is 0

}  // namespace lunaria
