// The kinds of reductions that the loops over rows and columns cover.
#pragma once

#include <bit>

#include "backends/cpu/copy.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/row_loops.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

// outer × n × inner with n reduced; or repeat × outer × n with repeat and n reduced.
struct Pattern {
    bool known = false;
    int64_t repeat = 1, outer = 1, n = 1, inner = 1;

    // One row.
    explicit Pattern(int64_t n) : known(n != 0), n(n) {}
    explicit Pattern(const ReduceLayout& l) {
        int kept = l.kept.rank(), reduced = l.reduced.rank();
        if (l.count == 0 || l.outputs == 0) return;
        if (reduced == 0) {
            // If every reduced axis has size 1, as in per-sample gradients: rows of one element.
            known = true;
            outer = l.outputs;
        } else if (reduced == 1 && kept <= 2) {
            n = l.reduced[0];
            int64_t stride = l.reduced_strides[0];
            known = true;
            inner = stride;  // the elements inside the reduced axis are dense
            outer = l.outputs / inner;
        } else if (reduced == 2 && kept == 1 && l.reduced_strides[1] == 1) {
            known = true;
            repeat = l.reduced[0];
            n = l.reduced[1];
            outer = l.kept[0];
        }
    }
};

// vector_norm_plain for the results that are wanted; null: for all.
bool vector_norm_of(const KernelCall& c, const uint8_t* wanted);

// Rows that are shorter than a vector, or little longer, are laid side by side, so that each of its lanes has a row of
// its own.
inline constexpr int64_t kShortRow = 16;
inline constexpr int64_t kRowsAside = 64;

// The length to which short rows are filled up for sums: a power of two, for which there are loops of their own.
inline int64_t filled_row(int64_t n) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 2))));
}

// For dense short rows: f(first row, rows, tile) with element k of row r at tile[k * kRowsAside + r], and `fill` behind
// the last one; false: the rows are others.
template <class T, class F>
bool over_short_rows(const Pattern& p, const T* x, T fill, F f) {
    if (p.inner != 1 || p.repeat != 1 || p.n > kShortRow || p.outer < 4) return false;
    const TransposeLoop lay = transpose_loop<T>();
    parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
        alignas(64) T tile[kShortRow * kRowsAside];
        std::fill(tile + p.n * kRowsAside, tile + filled_row(p.n) * kRowsAside, fill);
        for (int64_t o = begin; o < end; o += kRowsAside) {
            const int64_t rows = std::min(kRowsAside, end - o);
            lay(x + o * p.n, p.n, tile, kRowsAside, rows, p.n, false);
            f(o, rows, static_cast<const T*>(tile));
        }
    });
    return true;
}

}  // namespace lunaria::cpu
