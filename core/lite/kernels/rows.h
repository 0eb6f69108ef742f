// The loops around tiles: all rows of a times all panels of b, in pieces that stay in the processor's caches. Products,
// convolutions and Winograd's products share them; they differ in where the rows of a come from. Compiled once for each
// instruction set.
#pragma once

#include "core/lite/kernels/sizes.h"
#include "core/lite/kernels/tiles.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

// The epilogue as tiles see it: a bias, a residual and limits, or nothing where apply() has to follow.
struct TileEnd {
    explicit TileEnd(const Epilogue& e);
    bool in_tile;
    float low, high;
};
void apply(const Epilogue& e, int64_t rows, int64_t columns, const float* x, int64_t x_row, float* y, int64_t y_row);

// What is multiplied: c (m x n) = a (m x k) b (k x n).
struct RowsTask {
    int64_t m, n, k;
    const void* b;  // the first panel
    WeightType type;
    float* c;
    int64_t c_row;
    const Epilogue* epilogue;  // may be null
};

// Rows of a: `direct` gives the address of a row from column 0 on where a's rows can be read in place, with `row`
// elements between rows; otherwise gather(first, rows, column, count, to) writes them kGatheredRow apart.
struct DirectRows {
    const float* a;
    int64_t row;
};

// Multiplies the rows [m0, m1) with the panels [p0, p1).
class RowsLoop {
  public:
    RowsLoop(const RowsTask& task, float* widened);

    template <class Gather>
    void run(int64_t m0, int64_t m1, int64_t p0, int64_t p1, const DirectRows* direct, float* gathered, Gather gather) {
        const int64_t blocks = (m1 - m0 + kRows - 1) / kRows;
        // Few rows: each panel comes from memory once and in one piece.
        if (direct && m1 - m0 <= (task_.type == WeightType::f32 ? 2 * kRows : kSmallRows)) {
            for (int64_t p = p0; p < p1; p += kSide)
                for (int64_t block = 0; block < blocks; ++block) {
                    const int64_t first = m0 + (m1 - m0) * block / blocks, last = m0 + (m1 - m0) * (block + 1) / blocks;
                    panels(direct->a + first * direct->row, direct->row, first, static_cast<int>(last - first), p,
                           p + kSide < p1 ? p + kSide : p1, 0, task_.k);
                }
            return;
        }
        const int64_t wide = p1 - p0 < kWide ? p1 - p0 : kWide;
        // Equal pieces of k, and as many of them at once as weights stay cached.
        const int64_t pieces = (task_.k + kDepth - 1) / kDepth, depth = round_up((task_.k + pieces - 1) / pieces, 8);
        int64_t cached = kCached / (wide * kPanel * 4 * depth);
        cached = (cached < 1 ? 1 : cached) * depth;
        for (int64_t p = p0; p < p1; p += wide) {
            const int64_t end = p + wide < p1 ? p + wide : p1;
            for (int64_t k0 = 0; k0 < task_.k; k0 += cached) {
                const int64_t k1 = k0 + cached < task_.k ? k0 + cached : task_.k;
                widen(p, end, k0, k1);
                for (int64_t block = 0; block < blocks; ++block) {
                    const int64_t first = m0 + (m1 - m0) * block / blocks, last = m0 + (m1 - m0) * (block + 1) / blocks;
                    const int rows = static_cast<int>(last - first);
                    for (int64_t k = k0; k < k1; k += depth) {
                        const int64_t count = k + depth < k1 ? depth : k1 - k;
                        const float* a = gathered;
                        int64_t row = kGatheredRow;
                        if (direct) {
                            a = direct->a + first * direct->row + k;
                            row = direct->row;
                            next_ = p == p0 ? a + rows * row : nullptr;
                        } else {
                            gather(first, rows, k, count, gathered);
                        }
                        panels(a, row, first, rows, p, end, k, count);
                    }
                }
            }
        }
    }

    // Rows [first, first + rows) by all panels, of f32 weights, where each row of a is `segments` pieces `step` apart.
    void run_segments(const float* a, int64_t a_row, int64_t first, int rows, int64_t segments, int64_t step) {
        segments_ = segments;
        segment_step_ = step;
        panels(a, a_row, first, rows, 0, panels_of(task_.n), 0, task_.k);
    }

  private:
    void widen(int64_t p0, int64_t p1, int64_t k0, int64_t k1);
    void widen_blocks(int64_t p, int64_t k0, int64_t k1, float* to) const;
    void panels(const float* a, int64_t a_row, int64_t first, int rows, int64_t p0, int64_t p1, int64_t k,
                int64_t count);
    void apply_rest(int64_t first, int rows, int64_t p0, int64_t p1) const;
    static void edge(Tile tile, const TileTask& t, int rows, int columns);
    // Weights as tiles read them, from row k on.
    struct Weights {
        const char* base;
        int64_t element, depth, panel;  // bytes of one, rows of a panel, and the first panel at `base`
        Tile (*tile)(int rows, int panels);
    };
    Weights weights(int64_t k) const;

    RowsTask task_;
    TileEnd end_;
    float* widened_;
    // What widen() has written.
    int64_t widened_panel_ = 0, widened_k_ = 0, widened_depth_ = 0;
    bool uses_widened_ = false;
    int64_t segments_ = 1, segment_step_ = 0;
    const float* next_ = nullptr;  // rows of a that come next
};

// How the work is cut among workers: `rows` x `columns` pieces of about equal size.
struct Pieces {
    Pieces(int64_t m, int64_t n, int64_t k, const Workers& workers);
    int64_t rows = 1, columns = 1;
};

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
