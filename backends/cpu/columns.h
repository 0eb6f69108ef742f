// Sums over the columns of a block, split among threads.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/copy.h"
#include "backends/cpu/row_loops.h"
#include "core/threads.h"

namespace lunaria::cpu {

// A dense block of `rows` rows of `width` elements whose columns are summed. Narrow blocks are looked at as wider ones
// with several rows side by side, so that the loops over columns are long enough for packs.
struct ColumnBlock {
    int64_t rows, width;  // as the loops see it
    int64_t fold, rest;   // rows side by side, and rows left over at the end
    int64_t columns;      // of the block as it was given

    ColumnBlock(int64_t given_rows, int64_t given_width)
        : rows(given_rows), width(given_width), fold(1), rest(0), columns(given_width) {
        constexpr int64_t kNarrow = 64;
        if (width >= kNarrow || width == 0 || rows < 2) return;
        fold = std::min(rows, (kNarrow + width - 1) / width);
        rest = rows % fold;
        rows /= fold;
        width *= fold;
    }
};

// totals[j] = the sum over column j of what `add` adds for it. add(first element of the part, its rows, its width, the
// stride, first column of the part (of the wide block), totals of the part) adds to the totals. Blocks of few or of
// very wide rows are split by columns. Others are split by rows, as pieces of less than a memory page do not reach the
// memory's full speed; how many depends on the block only, so that the number of threads does not change the result.
template <class T, class Add>
std::vector<double> column_totals(const T* x, int64_t given_rows, int64_t given_width, Add add) {
    ColumnBlock b(given_rows, given_width);
    std::vector<double> totals(static_cast<size_t>(b.width));
    constexpr int64_t kPartElements = 512 * 1024, kWide = 16 * 1024, kPartColumns = 256;
    const int64_t part_rows = kPartElements / std::max<int64_t>(1, b.width);
    if (b.width >= kWide || b.rows <= part_rows) {
        int64_t part = std::max(kPartColumns, kThreadElements / std::max<int64_t>(1, b.rows));
        parallel_for(b.width, part, 16, [&](int64_t begin, int64_t end) {
            add(x + begin, b.rows, end - begin, b.width, begin, totals.data() + begin);
        });
    } else {
        int64_t parts = (b.rows + part_rows - 1) / part_rows;
        // Set to 0 by the thread that adds to it: a vector would be filled by this one alone.
        const std::unique_ptr<double[]> partial(new double[static_cast<size_t>(parts * b.width)]);
        parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p) {
                double* const own = partial.get() + p * b.width;
                std::fill_n(own, b.width, 0.0);
                add(x + p * part_rows * b.width, std::min(part_rows, b.rows - p * part_rows), b.width, b.width, 0, own);
            }
        });
        for (int64_t p = 0; p < parts; ++p)
            copy_loops().add_f64(totals.data(), partial.get() + p * b.width, 1.0, b.width);
    }
    if (b.rest) add(x + b.rows * b.width, 1, b.rest * b.columns, b.rest * b.columns, 0, totals.data());
    for (int64_t k = 1; k < b.fold; ++k)
        for (int64_t j = 0; j < b.columns; ++j)
            totals[static_cast<size_t>(j)] += totals[static_cast<size_t>(k * b.columns + j)];
    totals.resize(static_cast<size_t>(b.columns));
    return totals;
}

// The sum over one long row of what add(first, end) gives for its parts, in parts of a fixed size.
template <class Add>
double row_total(int64_t n, Add add) {
    constexpr int64_t kPart = 65536;
    if (n <= kPart) return add(0, n);
    int64_t parts = (n + kPart - 1) / kPart;
    std::vector<double> partial(static_cast<size_t>(parts));
    parallel_for(parts, 2, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            partial[static_cast<size_t>(p)] = add(p * kPart, std::min(n, (p + 1) * kPart));
    });
    double total = 0;
    for (double p : partial) total += p;
    return total;
}

}  // namespace lunaria::cpu
