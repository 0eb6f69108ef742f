// Sums (products, maxima ...) over ranks, in one order: a pairwise tree by rank. A tree over 8 parts gives the same
// bits whether one rank holds all parts, two hold 4 each or eight hold one each.
#pragma once

#include <cstdint>
#include <span>

#include "core/parallel/recorder.h"
#include "core/tensor/dtype.h"

namespace lunaria::parallel {

// out[i] = the parts' elements i, combined: parts 0 .. h-1 and parts h .. n-1, where h is the largest power of two
// below n, each by the same rule. Numbers of 16 bits are combined in f32 and rounded once; bool: max is "or", min is
// "and". `out` may be one of the parts. `mean` divides the sum by the number of parts.
void combine(Combine how, DType dtype, std::span<const void* const> parts, void* out, int64_t count);

// Throws a dtype_error in the name of `where` if elements of that type cannot be combined so.
void check_combine(std::string_view where, Combine how, DType dtype);

}  // namespace lunaria::parallel
