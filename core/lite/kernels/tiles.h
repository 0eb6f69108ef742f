// The innermost products of floats: a few rows of a times one or two panels of packed weights, kept in registers.
// Compiled once for each instruction set.
#pragma once

#include "core/lite/kernels/table.h"
#include "core/lite/kernels/vector.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

// Most rows of a tile, and panels side by side: as many sums as there are registers beside those of the operands.
#if defined(__AVX512BW__)
inline constexpr int kRows = 12, kSide = 2;
#elif defined(__AVX2__)
inline constexpr int kRows = 6, kSide = 1;
#elif defined(__x86_64__)
inline constexpr int kRows = 3, kSide = 1;
#else
inline constexpr int kRows = 6, kSide = 1;
#endif
// Most rows of a tile that reads small weights and widens them; more rows read them widened from scratch.
inline constexpr int kSmallRows = kRows < 4 ? kRows : 4;

struct TileTask {
    const float* a;
    int64_t a_row;
    const void* b;
    int64_t b_panel;  // elements from a panel to the next
    int64_t k;        // columns of a in a row, `segments` times, each a_segment after the one before
    int64_t segments, a_segment;
    float* c;
    int64_t c_row;
    const float* bias;      // added to the sums, if not null; 16 for each panel
    const float* residual;  // likewise
    int64_t residual_row;
    float low, high;
    // What is asked for early, a line of the cache at each step: the rows of a that come next. A tile reads all its
    // rows at once, each for a short while, which are too many streams for the processor's own prefetching.
    const float* next;
    int64_t next_step;
    bool accumulate;  // begin with c instead of zeros
    bool finish;      // the limits are applied
};

// Panels: 0 stands for the first half of one.
template <int Rows, int Panels, class E>
void tile(const TileTask& t) {
    constexpr int kPerPanel = kPanel / kLanes, V = Panels ? Panels * kPerPanel : kPerPanel / 2;
    // Where few sums are under way, the latency of each would be waited for: several sets of them take turns.
    constexpr int kSets = Rows * V >= 8 ? 1 : Rows * V >= 4 ? 2 : 4;
    constexpr int kTriples = (Rows + 2) / 3;
    Floats sums[kSets][Rows][V];
#pragma GCC unroll 4
    for (int s = 0; s < kSets; ++s)
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) sums[s][r][v] = Floats{};
    // A pointer for each three rows, which addressing modes reach from it.
    const float* a[kTriples];
#pragma GCC unroll 4
    for (int g = 0; g < kTriples; ++g) a[g] = t.a + 3 * g * t.a_row;
    const int64_t row = t.a_row, panel = t.b_panel, next_step = t.next_step;
    const float* next = t.next;
    const E* b = static_cast<const E*>(t.b);
    auto step = [&](int set, int ahead) __attribute__((always_inline)) {
        Floats w[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
            w[v] = load_floats(b + (v / kPerPanel) * panel + ahead * kPanel + (v % kPerPanel) * kLanes);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) {
            const Floats x = broadcast(a[r / 3][(r % 3) * row + ahead]);
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) sums[set][r][v] += x * w[v];
        }
    };
    for (int64_t segment = 0;; ++segment) {
        int64_t i = 0;
        for (; i + kSets <= t.k; i += kSets) {
            if constexpr (Rows <= kSmallRows) {
                // Weights come from memory here; the processor's own prefetching stops at the ends of pages.
#pragma GCC unroll 2
                for (int p = 0; p < (Panels ? Panels : 1); ++p) __builtin_prefetch(b + p * panel + 80 * kPanel);
            } else {
                __builtin_prefetch(next);
                next += next_step;
            }
#pragma GCC unroll 4
            for (int s = 0; s < kSets; ++s) step(s, s);
#pragma GCC unroll 4
            for (int g = 0; g < kTriples; ++g) a[g] += kSets;
            b += kSets * kPanel;
        }
        if constexpr (kSets > 1)
            for (; i < t.k; ++i) {
                step(0, 0);
#pragma GCC unroll 4
                for (int g = 0; g < kTriples; ++g) ++a[g];
                b += kPanel;
            }
        if (segment + 1 >= t.segments) break;
#pragma GCC unroll 4
        for (int g = 0; g < kTriples; ++g) a[g] += t.a_segment - t.k;
    }
    auto each = [&](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) f(sums[0][r][v], r, v);
    };
    if constexpr (kSets > 1)
        each([&](Floats & y, int r, int v) __attribute__((always_inline)) {
#pragma GCC unroll 4
            for (int s = 1; s < kSets; ++s) y += sums[s][r][v];
        });
    if (t.accumulate)
        each([&](Floats & y, int r, int v)
                 __attribute__((always_inline)) { y += load(t.c + r * t.c_row + v * kLanes); });
    if (t.bias) {
        Floats bias[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) bias[v] = load(t.bias + v * kLanes);
        each([&](Floats & y, int, int v) __attribute__((always_inline)) { y += bias[v]; });
    }
    if (t.residual)
        each([&](Floats & y, int r, int v)
                 __attribute__((always_inline)) { y += load(t.residual + r * t.residual_row + v * kLanes); });
    if (t.finish && t.low > -__builtin_inff()) {
        const Floats low = broadcast(t.low);
        each([&](Floats & y, int, int) __attribute__((always_inline)) { y = larger(y, low); });
    }
    if (t.finish && t.high < __builtin_inff()) {
        const Floats high = broadcast(t.high);
        each([&](Floats & y, int, int) __attribute__((always_inline)) { y = smaller(y, high); });
    }
    each([&](Floats & y, int r, int v) __attribute__((always_inline)) { store(t.c + r * t.c_row + v * kLanes, y); });
}

using Tile = void (*)(const TileTask&);
// tile_of<float>(rows, panels), with 0 panels for half of one; of small types only up to kSmallRows rows.
template <class E>
Tile tile_of(int rows, int panels);

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
