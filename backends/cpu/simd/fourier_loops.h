// The loops of a Fourier transform by Stockham's method: each pass does one factor of the length and puts its results
// where the next one reads them in order, so that nothing is ever permuted. Real and imaginary parts lie apart. Several
// signals go through together, element by element side by side.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

struct SplitNumbers {
    double *re = nullptr, *im = nullptr;
};

// One pass. Before it the signal is `length` x `stride` numbers, of which those in a column belong together; it does a
// factor of the length. Steps p of length / radix and columns q are done from the begin to the end given.
struct FourierPass {
    int radix = 2;
    int64_t length = 1, stride = 1;
    SplitNumbers from, to;
    // Root j of this pass, e^(-2 pi i j / length), lies at j * root_step. With stride 1 those of the multiples
    // 1 .. radix - 1 of p lie at (multiple - 1) * length / radix + p.
    SplitNumbers roots;
    int64_t root_step = 1;
    // e^(-2 pi i j / radix), for radices other than 2, 3, 4 and 5.
    SplitNumbers unit;
    int64_t p_begin = 0, p_end = 0, q_begin = 0, q_end = 0;
};

inline constexpr int kLargestRadix = 13;

struct FourierLoops {
    void (*pass)(const FourierPass& pass);
    // x[i * width + j] *= factor[i] for i < count, j < width; then the conjugate of it, if asked for.
    void (*multiply)(SplitNumbers x, SplitNumbers factor, int64_t count, int64_t width, bool conjugate);
};

namespace v2 {
extern const FourierLoops fourier_loops;
}
namespace avx2 {
extern const FourierLoops fourier_loops;
}
namespace avx512 {
extern const FourierLoops fourier_loops;
}

}  // namespace lunaria::cpu
