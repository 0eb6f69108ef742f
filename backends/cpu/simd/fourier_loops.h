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
    // e^(-2 pi i j / radix), for odd radices above 5. Radices are 2, 3, 4, 5, 7, 8, 11 and 13.
    SplitNumbers unit;
    int64_t p_begin = 0, p_end = 0, q_begin = 0, q_end = 0;
};

// Signals that go through a transform together: a cache line of them.
inline constexpr int64_t kSideBySide = 8;

// `width` signals side by side, as numbers apart and as pairs of floats: element i of signal j is number i * width + j.
struct FourierLoops {
    void (*pass)(const FourierPass& pass);
    // x = pairs, the imaginary parts times sign; and back, all times scale.
    void (*split)(const float* pairs, SplitNumbers x, int64_t count, double sign);
    void (*join)(SplitNumbers x, float* pairs, int64_t count, double scale, double sign);
    // Elements begin .. end - 1 of the spectrum of real signals of length 2 half, whose even and odd elements were the
    // real and imaginary parts of what x is the transform of. turns: see FourierPlan::half_turns. end <= 2 half; those
    // from half + 1 on mirror earlier ones, which have to be there.
    void (*real_spectrum)(SplitNumbers x, SplitNumbers turns, int64_t half, int64_t width, int64_t begin, int64_t end,
                          double scale, double sign, float* pairs);
    // The other way: x, whose conjugated transform has the even and odd elements of the real signals with this
    // spectrum; elements begin .. end - 1 of it.
    void (*real_signal)(const float* pairs, SplitNumbers turns, int64_t half, int64_t width, int64_t begin, int64_t end,
                        SplitNumbers x);
    // x[i * width + j] *= factor[i] for i < count, j < width; then the conjugate of it, if asked for.
    void (*multiply)(SplitNumbers x, SplitNumbers factor, int64_t count, int64_t width, bool conjugate);
    // x[i * width + j] times roots[j]^i for i < count, j < width, to where these i are side by side: kSideBySide of
    // them, or what is left, after those before, as numbers first + j of as many signals of `length` elements.
    void (*turn_and_part)(SplitNumbers x, SplitNumbers roots, int64_t count, int64_t width, SplitNumbers to,
                          int64_t first, int64_t length);
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
