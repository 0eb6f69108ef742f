#include "backends/cpu/simd/copy_loops.h"

#include "backends/cpu/simd/random_loops.h"
#include "backends/cpu/simd/transpose.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

template <class T>
void fill(const void* from, void* to, int64_t count) {
    const T value = *static_cast<const T*>(from);
    for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = value;
}

template <class T>
void reverse(const void* from, void* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = static_cast<const T*>(from)[-i];
}

template <class T>
void every_other(const void* from, void* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = static_cast<const T*>(from)[2 * i];
}

template <class T>
void add_scaled(T* to, const T* from, T factor, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] += from[i] * factor;
}

template <int Parts, class T>
void interleave(const void* const* from, void* to, int64_t count) {
    const T* __restrict a = static_cast<const T*>(from[0]);
    const T* __restrict b = static_cast<const T*>(from[1]);
    const T* __restrict c = static_cast<const T*>(from[Parts > 2 ? 2 : 0]);
    const T* __restrict d = static_cast<const T*>(from[Parts - 1]);
    T* __restrict out = static_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i) {
        out[i * Parts] = a[i];
        out[i * Parts + 1] = b[i];
        if constexpr (Parts > 2) out[i * Parts + 2] = c[i];
        if constexpr (Parts > 3) out[i * Parts + 3] = d[i];
    }
}

}  // namespace

const CopyLoops copy_loops = {
    {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>},
    {fill<uint8_t>, fill<uint16_t>, fill<uint32_t>, fill<uint64_t>},
    {reverse<uint8_t>, reverse<uint16_t>, reverse<uint32_t>, reverse<uint64_t>},
    {every_other<uint8_t>, every_other<uint16_t>, every_other<uint32_t>, every_other<uint64_t>},
    {{interleave<2, uint8_t>, interleave<2, uint16_t>, interleave<2, uint32_t>, interleave<2, uint64_t>},
     {interleave<3, uint8_t>, interleave<3, uint16_t>, interleave<3, uint32_t>, interleave<3, uint64_t>},
     {interleave<4, uint8_t>, interleave<4, uint16_t>, interleave<4, uint32_t>, interleave<4, uint64_t>}},
    add_scaled<float>,
    add_scaled<double>,
    uniform_blocks,
    normal_blocks,
    dropout_blocks,
    uniform_f64_blocks,
    normal_f64_blocks,
    laplace_blocks,
    random_bits,
};

}  // namespace lunaria::cpu::LUNARIA_ISA
