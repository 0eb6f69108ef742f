// The choice of an instruction set, and the entries of common.h, product.h, convolution.h and integer.h that lead to
// it.
#include <cstdlib>
#include <string_view>

#include "core/lite/kernels/integer_sizes.h"
#include "core/lite/kernels/sizes.h"
#include "core/lite/kernels/winograd.h"

namespace lunaria::lite::kernels {

namespace {

#if defined(__x86_64__)
Isa find_processor() {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c") ||
        !__builtin_cpu_supports("bmi2"))
        return Isa::plain;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return Isa::avx2;
    return __builtin_cpu_supports("avx512vnni") ? Isa::avx512vnni : Isa::avx512;
}
#else
Isa find_processor() { return Isa::plain; }
#endif

Isa processor() {
    static const Isa isa = find_processor();
    return isa;
}

template <class T>
using Tables = const T& (*[kIsas])();
constexpr Tables<Products> kProducts{plain::products, avx2::products, avx512::products, avx512vnni::products};
constexpr Tables<Convolutions> kConvolutions{plain::convolutions, avx2::convolutions, avx512::convolutions,
                                             avx512vnni::convolutions};
constexpr Tables<Integers> kIntegers{plain::integers, avx2::integers, avx512::integers, avx512vnni::integers};

const Products& products_of(Isa isa) { return kProducts[static_cast<int>(isa)](); }
const Integers& integers_of(Isa isa) { return kIntegers[static_cast<int>(isa)](); }

}  // namespace

const char* name_of(Isa isa) {
    constexpr const char* kNames[kIsas] = {"v2", "avx2", "avx512", "avx512vnni"};
#if !defined(__x86_64__)
    return "neon";
#endif
    return kNames[static_cast<int>(isa)];
}

bool has(Isa isa) { return isa <= processor(); }

Isa best_isa() {
    static const Isa isa = [] {
        if (const char* wish = std::getenv("LUNARIA_ISA"))
            for (int i = 0; i < kIsas; ++i)
                if (has(static_cast<Isa>(i)) && std::string_view(wish) == name_of(static_cast<Isa>(i)))
                    return static_cast<Isa>(i);
        return processor();
    }();
    return isa;
}

void apply_epilogue(Isa isa, const Epilogue& epilogue, int64_t rows, int64_t columns, const float* x, int64_t x_row,
                    float* y, int64_t y_row) {
    products_of(isa).epilogue(epilogue, rows, columns, x, x_row, y, y_row);
}

void product(Isa isa, const Product& p, void* scratch, const Workers& workers) {
    if (p.m <= 0 || p.n <= 0) return;
    const Products& products = products_of(isa);
    (is_blocks(p.type) ? products.of_blocks : products.product)(p, scratch, workers);
}

void batched_product(Isa isa, const BatchedProduct& p, void* scratch, const Workers& workers) {
    if (p.batch > 0 && p.m > 0 && p.n > 0) products_of(isa).batched(p, scratch, workers);
}

void convolution(Isa isa, const Convolution& c, void* scratch, const Workers& workers) {
    const Convolutions& table = kConvolutions[static_cast<int>(isa)]();
    switch (c.method) {
        case ConvolutionMethod::direct:
            return table.direct(c, scratch, workers);
        case ConvolutionMethod::winograd2:
        case ConvolutionMethod::winograd4:
            return table.winograd(c, scratch, workers);
        case ConvolutionMethod::depthwise:
            return table.depthwise(c, scratch, workers);
    }
}

void integer_product(Isa isa, const IntegerProduct& p, void* scratch, const Workers& workers) {
    if (p.m > 0 && p.n > 0) integers_of(isa).product(p, scratch, workers);
}

void integer_convolution(Isa isa, const IntegerConvolution& c, void* scratch, const Workers& workers) {
    const Integers& integers = integers_of(isa);
    (is_integer_depthwise(c.shape) ? integers.depthwise : integers.direct)(c, scratch, workers);
}

void quantize(Isa isa, int64_t count, const float* x, float scale, int32_t zero, IntegerType type, void* q) {
    integers_of(isa).quantize(count, x, scale, zero, type, q);
}
void dequantize(Isa isa, int64_t count, const void* q, float scale, int32_t zero, IntegerType type, float* x) {
    integers_of(isa).dequantize(count, q, scale, zero, type, x);
}
void integer_sum(Isa isa, const IntegerSum& s) { integers_of(isa).sum(s); }

void transpose(Isa, int element_bytes, int64_t batch, int64_t rows, int64_t columns, const void* from, void* to,
               const Workers& workers) {
    // Squares of which both sides lie in whole lines of the cache.
    constexpr int64_t kSide = 16;
    const auto tile = [&](auto element, int64_t i, int64_t r, int64_t c) {
        using T = decltype(element);
        const T* source = static_cast<const T*>(from) + i * rows * columns;
        T* target = static_cast<T*>(to) + i * rows * columns;
        const int64_t r1 = r + kSide < rows ? r + kSide : rows, c1 = c + kSide < columns ? c + kSide : columns;
        for (int64_t b = c; b < c1; ++b)
            for (int64_t a = r; a < r1; ++a) target[b * rows + a] = source[a * columns + b];
    };
    const int64_t strips = (rows + kSide - 1) / kSide;
    each_task(workers, batch * strips, [&](int64_t i, int) {
        const int64_t r = i % strips * kSide;
        for (int64_t c = 0; c < columns; c += kSide) {
            if (element_bytes == 4)
                tile(uint32_t{}, i / strips, r, c);
            else if (element_bytes == 2)
                tile(uint16_t{}, i / strips, r, c);
            else
                tile(uint8_t{}, i / strips, r, c);
        }
    });
}

}  // namespace lunaria::lite::kernels
