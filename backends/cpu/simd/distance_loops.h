// Sums over pairs of vectors, for distances and their derivatives (core/ops/distance.cpp): one table for each
// instruction set.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

// out[u, v] = sum over w of s[u, w] a[u, w, v] f((p[u, w] - b[u, w, v]) scale[u, w, v]) with f(d) = |d|^power, for odd
// functions with the sign of d. For an infinite power the differences are divided by scale. The elements of a vector
// along v are adjacent; an operand that does not change along an axis has a step of 0 there.
template <class T>
struct PairSum {
    struct Operand {
        const T* data;
        int64_t u, w;  // steps
    };
    Operand s, p;         // numbers
    Operand a, b, scale;  // vectors along v
    T* out;
    int64_t out_step, depth, count;  // of out along u; of w; of v
    double power;
    bool odd;
};

// The p-norms of differences: out[u, v] = (sum over w of |p[u, w] - b[w, v]|^power)^(1 / power); for an infinite power
// the largest difference, for power 0 the number of differences that are not 0.
template <class T>
struct DistanceRows {
    const T *p, *b;
    T* out;
    int64_t p_step, depth, count;
    double power;
};

template <class T>
struct DistanceLoops {
    // The vectors u = begin .. end - 1.
    void (*pair_sums)(const PairSum<T>& sum, int64_t begin, int64_t end);
    void (*distances)(const DistanceRows<T>& rows, int64_t begin, int64_t end);
};

struct DistanceTable {
    DistanceLoops<float> f32;
    DistanceLoops<double> f64;
};

namespace v2 {
extern const DistanceTable distance_table;
}
namespace avx2 {
extern const DistanceTable distance_table;
}
namespace avx512 {
extern const DistanceTable distance_table;
}

}  // namespace lunaria::cpu
