// Short lines sorted side by side, by a network of exchanges that depends on their length alone (K. E. Batcher, 1968).
#pragma once

#include <cstdint>

namespace lunaria::cpu {

struct SortLoops {
    // Lines that are sorted at once, element k of line i at words[k * kTogether + i].
    static constexpr int64_t kTogether = 16;
    // Sorts lines of n words, as unsigned numbers.
    void (*words32)(uint32_t* words, int64_t n);
    void (*words64)(uint64_t* words, int64_t n);
    // Sorts keys with places beside them, by key and then by place.
    void (*pairs64)(uint64_t* keys, uint64_t* places, int64_t n);
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
