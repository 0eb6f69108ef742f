#include "backends/cpu/simd/sort_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

constexpr int64_t kTogether = SortLoops::kTogether;

template <class Word>
[[gnu::always_inline]] inline void exchange(Word* __restrict a, Word* __restrict b) {
    for (int64_t i = 0; i < kTogether; ++i) {
        const Word x = a[i], y = b[i];
        a[i] = x < y ? x : y;
        b[i] = x < y ? y : x;
    }
}

// Vectors compare numbers of 64 bits only as signed ones.
void exchange_pairs(int64_t* __restrict a, int64_t* __restrict b, int64_t* __restrict a_place,
                    int64_t* __restrict b_place) {
    for (int64_t i = 0; i < kTogether; ++i) {
        const int64_t x = a[i], y = b[i], p = a_place[i], q = b_place[i];
        const bool stays = (x < y) | ((x == y) & (p < q));
        a[i] = stays ? x : y;
        b[i] = stays ? y : x;
        a_place[i] = stays ? p : q;
        b_place[i] = stays ? q : p;
    }
}

// Merges sorted runs of 1, 2, 4 … elements: exchange(i, j) for elements that are to be in this order.
template <class F>
[[gnu::always_inline]] inline void network(int64_t n, F exchange) {
    for (int64_t run = 1; run < n; run *= 2)
        for (int64_t far = run; far > 0; far /= 2)
            for (int64_t from = far % run; from + far < n; from += 2 * far)
                for (int64_t i = from; i < from + far && i + far < n; ++i)
                    if (i / (2 * run) == (i + far) / (2 * run)) exchange(i * kTogether, (i + far) * kTogether);
}

// The order of unsigned numbers as that of signed ones, and back.
void turn(uint64_t* words, int64_t n) {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    for (int64_t i = 0; i < n * kTogether; ++i) words[i] ^= kSign;
}

void words32(uint32_t* words, int64_t n) {
    network(n, [=](int64_t i, int64_t j) { exchange(words + i, words + j); });
}

void words64(uint64_t* words, int64_t n) {
    turn(words, n);
    auto* const turned = reinterpret_cast<int64_t*>(words);
    network(n, [=](int64_t i, int64_t j) { exchange(turned + i, turned + j); });
    turn(words, n);
}

void pairs64(uint64_t* keys, uint64_t* places, int64_t n) {
    turn(keys, n);
    auto *const turned = reinterpret_cast<int64_t*>(keys), *const place = reinterpret_cast<int64_t*>(places);
    network(n, [=](int64_t i, int64_t j) { exchange_pairs(turned + i, turned + j, place + i, place + j); });
    turn(keys, n);
}

}  // namespace

const SortLoops sort_loops = {words32, words64, pairs64};

}  // namespace lunaria::cpu::LUNARIA_ISA
