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

}  // namespace

const CopyLoops copy_loops = {
    {transpose_any<uint8_t>, transpose_any<uint16_t>, transpose_f32, transpose_any<uint64_t>},
    {fill<uint8_t>, fill<uint16_t>, fill<uint32_t>, fill<uint64_t>},
    {reverse<uint8_t>, reverse<uint16_t>, reverse<uint32_t>, reverse<uint64_t>},
    {every_other<uint8_t>, every_other<uint16_t>, every_other<uint32_t>, every_other<uint64_t>},
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
