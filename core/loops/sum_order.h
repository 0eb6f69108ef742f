// The one order in which all code adds up floats: kernels of every instruction set, plain ones, generated loops, any
// number of threads.
//
// The elements behind a result are taken in row-major order of the reduced axes. Neighbouring reduced axes count as one
// and axes of size 1 not at all, so that the shape and the axes decide, never strides. The elements along the innermost
// reduced axis are a run, and `inner` elements of the tensor lie behind each of its steps. Where `inner` is less than
// kSumLanes, several steps are taken side by side, as many as have kSumLanes numbers or more; each of these lanes is a
// sum of its own. A lane adds four of its numbers in their own dtype, (a + b) + (c + d), and adds these to its sum in
// float64; the last group may have fewer than four. (To convert every number would take a third longer, and sums of
// equal numbers are exact all the same.) After kSumRows numbers in every lane a block ends: its lanes are added up,
// halves onto halves, and their sum is added to the run. Runs are added to the result in their order, which is rounded
// once, at the end.
//
// A row (inner = 1) has 16 lanes and blocks of 4096 elements; columns are added row after row, in blocks of 256.
#pragma once

#include <cstdint>

namespace lunaria {

inline constexpr int kSumLanes = 16;
inline constexpr int kSumLeaf = 4;
inline constexpr int64_t kSumRows = 256;
inline constexpr int64_t kSumBlock = kSumLanes * kSumRows;  // of a row

// The number of steps that are taken side by side.
[[gnu::always_inline]] constexpr int64_t lanes_of_sum(int64_t inner) {
    return inner >= kSumLanes || inner <= 0 ? 1 : (kSumLanes + inner - 1) / inner;
}

// Adds up the lanes of a block, each of `inner` numbers, into the first: halves onto halves.
template <class A, class Join>
[[gnu::always_inline]] constexpr void join_lanes(A* lanes, int64_t count, int64_t inner, Join join) {
    while (count > 1) {
        const int64_t half = (count + 1) / 2;
        for (int64_t i = 0; i < (count - half) * inner; ++i) lanes[i] = join(lanes[i], lanes[half * inner + i]);
        count = half;
    }
}

}  // namespace lunaria
