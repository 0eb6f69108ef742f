// Short lines sorted side by side, by a network of exchanges that depends on their length alone (K. E. Batcher, 1968),
// and the loops around sorts and selections of lines.
#pragma once

#include <cstdint>
#include <tuple>

#include "backends/cpu/simd/sort_key.h"

namespace lunaria::cpu {

template <class T>
struct KeyLoops {
    // The keys of elements, and whether one of these is hidden (backends/cpu/simd/sort_key.h); and back.
    bool (*keys)(const T* x, int64_t n, SortKey<T> flip, SortKey<T>* keys);
    void (*elements)(const SortKey<T>* keys, int64_t n, SortKey<T> flip, T* x);
};

template <class... T>
using KeyLoopsOf = std::tuple<KeyLoops<T>...>;

template <class Key>
struct SelectLoops {
    static constexpr int64_t kFew = 32;
    // Writes the keys from low to high to `out`, which has room for kFew more, returns their number and adds the number
    // of smaller ones to `less`.
    int64_t (*between)(const Key* keys, int64_t n, Key low, Key high, Key* out, int64_t& less);
    // Of 1 to kFew keys, those that would be at one or two positions if they were sorted.
    void (*ranked)(const Key* keys, int64_t n, const int64_t* positions, int count, Key* found);
};

// Vectors compare numbers of 64 bits only as signed ones: keys are so here, which is to turn their uppermost bit.
struct SortLoops {
    // Lines that are sorted at once, element k of line i at keys[k * kTogether + i].
    static constexpr int64_t kTogether = 16;
    // Sorts lines of n keys.
    void (*keys32)(int32_t* keys, int64_t n);
    void (*keys64)(int64_t* keys, int64_t n);
    // Sorts keys with places beside them, by key and then by place.
    void (*pairs64)(int64_t* keys, int64_t* places, int64_t n);
    KeyLoopsOf<float, double, bool, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t> keys;
    SelectLoops<int32_t> select32;
    SelectLoops<int64_t> select64;
};

namespace v2 {
extern const SortLoops sort_loops;
}
namespace avx2 {
extern const SortLoops sort_loops;
}
namespace avx512 {
extern const SortLoops sort_loops;
}

}  // namespace lunaria::cpu
