// The entries of one instruction set. Files of this folder that say so are compiled once for each set, into the
// namespace LUNARIA_ISA; nothing of them may be called but through the tables that the set fills.
#pragma once

#include "core/lite/kernels/blocks.h"
#include "core/lite/kernels/convolution.h"
#include "core/lite/kernels/integer.h"
#include "core/lite/kernels/product.h"

namespace lunaria::lite::kernels {

// Entries by subject: a program that has products only links nothing of the others.
struct Products {
    void (*product)(const Product&, void* scratch, const Workers&);
    void (*batched)(const BatchedProduct&, void* scratch, const Workers&);
    void (*of_blocks)(const Product&, void* scratch, const Workers&);
    void (*epilogue)(const Epilogue&, int64_t rows, int64_t columns, const float* x, int64_t x_row, float* y,
                     int64_t y_row);
};
struct Convolutions {
    void (*direct)(const Convolution&, void* scratch, const Workers&);
    void (*winograd)(const Convolution&, void* scratch, const Workers&);
    void (*depthwise)(const Convolution&, void* scratch, const Workers&);
};
struct Integers {
    void (*product)(const IntegerProduct&, void* scratch, const Workers&);
    void (*direct)(const IntegerConvolution&, void* scratch, const Workers&);
    void (*depthwise)(const IntegerConvolution&, void* scratch, const Workers&);
    void (*quantize)(int64_t count, const float* x, float scale, int32_t zero, IntegerType type, void* q);
    void (*dequantize)(int64_t count, const void* q, float scale, int32_t zero, IntegerType type, float* x);
    void (*sum)(const IntegerSum&);
};

namespace plain {
const Products& products();
const Convolutions& convolutions();
const Integers& integers();
}  // namespace plain
#if defined(__x86_64__)
namespace avx2 {
const Products& products();
const Convolutions& convolutions();
const Integers& integers();
}  // namespace avx2
namespace avx512 {
const Products& products();
const Convolutions& convolutions();
const Integers& integers();
}  // namespace avx512
// Floats are computed as with AVX-512 alone.
namespace avx512vnni {
const Products& products();
using avx512::convolutions;
const Integers& integers();
}  // namespace avx512vnni
#else
namespace avx2 = plain;
namespace avx512 = plain;
namespace avx512vnni = plain;
#endif

// Panels of packed weights.
inline constexpr int64_t kPanel = 16;
[[gnu::always_inline]] inline int64_t panels_of(int64_t n) { return (n + kPanel - 1) / kPanel; }
[[gnu::always_inline]] inline int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

// Calls task(i, worker) for each i < count.
template <class F>
inline void each_task(const Workers& workers, int64_t count, F task) {
    if (!workers.run || workers.workers <= 1 || count <= 1) {
        for (int64_t i = 0; i < count; ++i) task(i, 0);
        return;
    }
    workers.run(
        workers.pool, count, [](void* closure, int64_t i, int worker) { (*static_cast<F*>(closure))(i, worker); },
        &task);
}
[[gnu::always_inline]] inline bool is_shared(const Workers& workers) { return workers.run && workers.workers > 1; }

}  // namespace lunaria::lite::kernels
