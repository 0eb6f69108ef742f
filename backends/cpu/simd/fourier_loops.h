// The loops of a Fourier transform by Stockham's method: each pass handles one factor of the length and writes its
// results in the order in which the next pass reads them, so that nothing is ever permuted. Real and imaginary parts
// are apart. Several signals go through together, interleaved element by element.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

struct SplitNumbers {
    double *re = nullptr, *im = nullptr;
};

// One pass, for one factor of the length. Before it the signal is `length` x `stride` numbers, of which those in a
// column belong together. It computes steps p of length / radix and columns q within the given bounds.
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

// Moves kSideBySide lines of pairs between memory and a transform, with the imaginary parts times sign and, on the way
// out, everything times scale. Rows: line j begins at pairs + j * step. Columns: element i of line j is the pair at
// pairs + i * step + 2 * j.
template <class Part>
struct FourierLines {
    void (*read_rows)(const Part* pairs, int64_t step, int64_t count, SplitNumbers x, double sign);
    void (*write_rows)(SplitNumbers x, int64_t count, Part* pairs, int64_t step, double scale, double sign);
    void (*read_columns)(const Part* pairs, int64_t step, int64_t count, SplitNumbers x, double sign);
    void (*write_columns)(SplitNumbers x, int64_t count, Part* pairs, int64_t step, double scale, double sign);
};

// Loops over `width` interleaved signals, as separate parts and as pairs of floats: element i of signal j is number i *
// width + j.
struct FourierLoops {
    void (*pass)(const FourierPass& pass);
    // x = pairs, with the imaginary parts times sign; and the inverse, with everything times scale.
    void (*split)(const float* pairs, SplitNumbers x, int64_t count, double sign);
    void (*join)(SplitNumbers x, float* pairs, int64_t count, double scale, double sign);
    // Elements begin .. end - 1 of the spectrum of real signals of length 2 half; x is the transform of their even and
    // odd elements as real and imaginary parts. turns: see FourierPlan::half_turns. end <= 2 half; elements from half +
    // 1 on mirror earlier ones, which must exist already.
    void (*real_spectrum)(SplitNumbers x, SplitNumbers turns, int64_t half, int64_t width, int64_t begin, int64_t end,
                          double scale, double sign, float* pairs);
    // The inverse: elements begin .. end - 1 of x, whose conjugated transform has the even and odd elements of the real
    // signals with this spectrum.
    void (*real_signal)(const float* pairs, SplitNumbers turns, int64_t half, int64_t width, int64_t begin, int64_t end,
                        SplitNumbers x);
    // x[i * width + j] *= factor[i] for i < count, j < width; then the conjugate of it, if asked for.
    void (*multiply)(SplitNumbers x, SplitNumbers factor, int64_t count, int64_t width, bool conjugate);
    // Multiplies x[i * width + j] by roots[j]^i for i < count, j < width, and stores it in transposed order:
    // kSideBySide values of i side by side, or the remaining ones, after those before, as numbers first + j of as many
    // signals of `length` elements.
    void (*turn_and_part)(SplitNumbers x, SplitNumbers roots, int64_t count, int64_t width, SplitNumbers to,
                          int64_t first, int64_t length);
    // out = |pair| for `count` pairs, without overflow or underflow on the way.
    void (*magnitude_f32)(const float* pairs, float* out, int64_t count);
    void (*magnitude_f64)(const double* pairs, double* out, int64_t count);
    FourierLines<float> f32;
    FourierLines<double> f64;
    // As real_spectrum and real_signal, for kSideBySide signals and the first half + 1 elements of their spectra.
    void (*halves_of_spectrum)(SplitNumbers x, SplitNumbers turns, int64_t half, SplitNumbers to);
    void (*halves_of_signal)(SplitNumbers x, SplitNumbers turns, int64_t half, SplitNumbers to);
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
