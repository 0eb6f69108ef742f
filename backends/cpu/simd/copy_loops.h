// Loops over plain memory that gain from wide registers: transposes, rows added to rows, random numbers. One table for
// each instruction set; sizes are in elements.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. `stream`: the target is written around
// the cache, which takes 64-byte aligned rows.
using TransposeLoop = void (*)(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows,
                               int64_t columns, bool stream);

// to[i] = *from, to[i] = from[-i], or to[i] = from[2 * i]
using RunLoop = void (*)(const void* from, void* to, int64_t count);

// to[i * parts + k] = from[k][i]
using InterleaveLoop = void (*)(const void* const* from, void* to, int64_t count);

struct CopyLoops {
    TransposeLoop transpose[4];  // elements of 1, 2, 4, 8 bytes
    RunLoop fill[4], reverse[4], every_other[4];
    InterleaveLoop interleave[3][4];  // two, three or four parts
    // to[i] += from[i] * factor
    void (*add_f32)(float* to, const float* from, float factor, int64_t count);
    void (*add_f64)(double* to, const double* from, double factor, int64_t count);
    // Words philox(key, block, counter) of blocks first .. first + blocks - 1, four each, as numbers in [0, 1).
    void (*uniform)(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
    // The same words by pairs as normal numbers.
    void (*normal)(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
    // out = x / keep where word >= limit, else 0; mask tells which.
    void (*dropout)(const float* x, float* out, uint8_t* mask, uint64_t key, uint64_t counter, uint64_t first,
                    int64_t blocks, uint32_t limit, float keep);
    // The words by pairs as 53 bits of a number in [0, 1), two a block; two normal numbers of each block; one Laplace
    // number of each, its sign from the third word.
    void (*uniform_f64)(double* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
    void (*normal_f64)(double* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
    void (*laplace)(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
    // The words by pairs as 64 bits: those of block i at out[i * stride] and behind it.
    void (*bits)(uint64_t* out, int64_t stride, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
};

namespace v2 {
extern const CopyLoops copy_loops;
}
namespace avx2 {
extern const CopyLoops copy_loops;
}
namespace avx512 {
extern const CopyLoops copy_loops;
}

}  // namespace lunaria::cpu
