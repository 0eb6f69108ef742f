// Sums over the columns of a block, split among threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backends/cpu/copy.h"
#include "backends/cpu/row_loops.h"
#include "core/loops/sum_order.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

// totals[j] = the sum over column j of a dense block, in the order of core/loops/sum_order.h. `add` computes the
// summands: add(first element of the part, its rows, its width, the stride, first column of the part, totals of the
// part) adds row after row to the totals; for narrow blocks several rows side by side are passed as one. Blocks of few
// or of very wide rows are split among threads by columns; others by rows, since pieces of less than a memory page do
// not reach the memory's full speed.
template <class T, class Add>
std::vector<double> column_totals(const T* x, int64_t given_rows, int64_t columns, Add add) {
    const int64_t lanes = lanes_of_sum(columns), width = lanes * columns;
    const int64_t rows = given_rows / lanes, rest = given_rows % lanes;
    const int64_t blocks = std::max<int64_t>(1, (rows + kSumRows - 1) / kSumRows);
    std::vector<double> totals(static_cast<size_t>(columns));
    if (columns == 0) return totals;
    // Adds the columns from `begin` on of one block to sums that are 0.
    auto add_block = [&](int64_t block, int64_t begin, int64_t count, double* sums) {
        const int64_t first = block * kSumRows, size = std::min(kSumRows, rows - first);
        // The first lanes of the last block have one row more.
        const int64_t longer = block == blocks - 1 ? rest * columns : 0;
        const T* const from = x + first * width + begin;
        if (longer > 0) add(from, size + 1, longer, width, begin, sums);
        if (size > 0) add(from + longer, size, count - longer, width, begin + longer, sums + longer);
        join_lanes(sums, lanes, columns, [](double a, double b) { return a + b; });
    };
    constexpr int64_t kWide = 16 * 1024, kPartColumns = 256;
    if (width >= kWide || blocks == 1) {
        const int64_t part = std::max(kPartColumns, kThreadElements / std::max<int64_t>(1, given_rows));
        parallel_for(width, part, 16, [&](int64_t begin, int64_t end) {
            if (blocks == 1 && lanes == 1) return add_block(0, begin, end - begin, totals.data() + begin);
            std::vector<double> sums(static_cast<size_t>(end - begin));
            const int64_t count = std::min(end, columns) - begin;
            for (int64_t block = 0; block < blocks; ++block) {
                std::fill(sums.begin(), sums.end(), 0.0);
                add_block(block, begin, end - begin, sums.data());
                for (int64_t j = 0; j < count; ++j)
                    totals[static_cast<size_t>(begin + j)] += sums[static_cast<size_t>(j)];
            }
        });
        return totals;
    }
    // Each thread sets its own part to 0: a vector would be filled by this thread alone.
    const std::unique_ptr<double[]> partial(new double[static_cast<size_t>(blocks * width)]);
    parallel_for(blocks, std::max<int64_t>(1, kThreadElements / (kSumRows * width)), [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
            double* const sums = partial.get() + block * width;
            std::fill_n(sums, width, 0.0);
            add_block(block, 0, width, sums);
        }
    });
    for (int64_t block = 0; block < blocks; ++block)
        copy_loops().add_f64(totals.data(), partial.get() + block * width, 1.0, columns);
    return totals;
}

// Narrow blocks, several rows of which make one step, and of few rows: their sums need no memory.
inline bool is_small_block(int64_t rows, int64_t columns) { return columns < kSumLanes && rows < kSumRows; }

// column_totals of a small block, in sums[0 .. columns); the others, up to 2 * kSumLanes, are working memory.
template <class T, class Add>
void small_totals(const T* x, int64_t given_rows, int64_t columns, double* sums, Add add) {
    const int64_t lanes = lanes_of_sum(columns), width = lanes * columns;
    const int64_t rows = given_rows / lanes, longer = given_rows % lanes * columns;
    std::fill_n(sums, width, 0.0);
    if (longer > 0) add(x, rows + 1, longer, width, int64_t{0}, sums);
    if (rows > 0) add(x + longer, rows, width - longer, width, longer, sums + longer);
    join_lanes(sums, lanes, columns, [](double a, double b) { return a + b; });
}

// Sums of the squares of the differences from `from`, by column; in float64 where they leave the range of T.
template <class T, class From>
std::vector<double> square_totals(const T* x, int64_t rows, int64_t columns, From from) {
    auto totals = [&](auto square_columns) {
        return column_totals(
            x, rows, columns,
            [&](const T* part, int64_t count, int64_t width, int64_t stride, int64_t first, double* out) {
                std::vector<double> centre(static_cast<size_t>(width));
                for (int64_t j = 0; j < width; ++j) centre[static_cast<size_t>(j)] = from((first + j) % columns);
                square_columns(part, count, width, stride, centre.data(), out);
            });
    };
    const std::vector<double> squares = totals(reduce_loops<T>().square_columns);
    const bool fits = std::ranges::all_of(squares, [](double s) { return std::isfinite(s); });
    return fits ? squares : totals(reduce_loops<T>().wide_square_columns);
}

// The sum over one long row of the results of add(first, end) for its blocks (core/loops/sum_order.h).
template <class Add>
double row_total(int64_t n, Add add) {
    const int64_t blocks = (n + kSumBlock - 1) / kSumBlock;
    if (blocks <= 16) return add(0, n);
    std::vector<double> partial(static_cast<size_t>(blocks));
    parallel_for(blocks, 16, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
            partial[static_cast<size_t>(b)] = add(b * kSumBlock, std::min(n, (b + 1) * kSumBlock));
    });
    double total = 0;
    for (double p : partial) total += p;
    return total;
}

}  // namespace lunaria::cpu
