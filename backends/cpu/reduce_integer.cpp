// CPU kernels: reductions of integers and bools by the loops over rows and columns, and tests for all or any elements
// that are not 0.
#include <algorithm>
#include <vector>

#include "backends/cpu/reduce_pattern.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/scratch.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The number of elements of a long row for one visit.
constexpr int64_t kPart = 65536;

// Results of rows: row(first element, n) for each row, or for the parts of long rows, which join(parts, count)
// combines.
template <class R, class T, class Row, class Join>
void over_rows(const Pattern& p, const T* x, R* out, Row row, Join join) {
    if (p.outer >= 16 || p.n <= kThreadElements) {
        parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) out[o] = row(x + o * p.n, p.n);
        });
        return;
    }
    const int64_t parts = (p.n + kPart - 1) / kPart;
    std::vector<R> of_parts(static_cast<size_t>(parts));
    for (int64_t o = 0; o < p.outer; ++o) {
        parallel_for(parts, 2, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k)
                of_parts[static_cast<size_t>(k)] = row(x + o * p.n + k * kPart, std::min(kPart, p.n - k * kPart));
        });
        out[o] = join(of_parts.data(), parts);
    }
}

// Results of columns: columns(first element of the first row, rows, width, results) after `first` has set them.
template <class R, class T, class Columns, class First>
void over_columns(const Pattern& p, const T* x, R* out, Columns columns, First first) {
    const int64_t part = std::max<int64_t>(64, kThreadElements / p.n);
    // Some rows at a time, between which an interrupt is noticed.
    for (int64_t o = 0; o < p.outer; ++o)
        parallel_for(p.inner, part, 16, [&](int64_t begin, int64_t end) {
            const T* from = x + o * p.n * p.inner + begin;
            R* to = out + o * p.inner + begin;
            const int64_t done = first(from, to, end - begin);
            columns(from + done * p.inner, p.n - done, end - begin, p.inner, to);
        });
}

// Results of short rows, which become columns.
template <class R, class T, class Columns, class First>
bool by_columns(const Pattern& p, const T* x, R* out, Columns columns, First first) {
    return over_short_rows(p, x, T(0), [&](int64_t row, int64_t rows, const T* tile) {
        const int64_t done = first(tile, out + row, rows);
        columns(tile + done * kRowsAside, p.n - done, rows, kRowsAside, out + row);
    });
}

// Calls f(pattern, elements, loops of their type); false: another layout, or not a tensor of integers.
template <class F>
bool over_integers(const KernelCall& c, F f) {
    return with_integer(c.tensor(0).dtype(), [&](auto zero) {
        using T = decltype(zero);
        const Pattern p(reduce_layout(c));
        return p.known && p.repeat == 1 && f(p, static_cast<const T*>(c.tensor(0).raw()), integer_rows<T>().loops);
    });
}

template <bool product>
bool total(const KernelCall& c) {
    if (c.out[0].dtype() != DType::i64) return false;
    return over_integers(c, [&](const Pattern& p, const auto* x, const auto& loops) {
        auto* out = c.out[0].data<int64_t>();
        const auto columns = product ? loops.product_columns : loops.sum_columns;
        auto first = [](const auto*, int64_t* to, int64_t width) {
            std::fill_n(to, width, product ? 1 : 0);
            return int64_t{0};
        };
        if (p.inner > 1)
            over_columns(p, x, out, columns, first);
        else if (!by_columns(p, x, out, columns, first))
            over_rows(p, x, out, product ? loops.product : loops.sum,
                      product ? row_loops().i64.loops.product : row_loops().i64.loops.sum);
        return true;
    });
}

}  // namespace

bool integer_sum(const KernelCall& c) { return total<false>(c); }
bool integer_product(const KernelCall& c) { return total<true>(c); }

template <bool largest>
bool integer_extremum(const KernelCall& c) {
    if (c.out.size() != 1 || c.out[0].dtype() != c.tensor(0).dtype()) return false;
    return over_integers(c, [&]<class T>(const Pattern& p, const T* x, const IntegerLoops<T>& loops) {
        auto* out = static_cast<T*>(c.out[0].raw());
        const auto columns = largest ? loops.largest_columns : loops.smallest_columns;
        const auto row = largest ? loops.largest : loops.smallest;
        auto first = [](const T* from, T* to, int64_t width) {
            std::copy_n(from, width, to);
            return int64_t{1};
        };
        if (p.inner > 1)
            over_columns(p, x, out, columns, first);
        else if (!by_columns(p, x, out, columns, first))
            over_rows(p, x, out, row, row);
        return true;
    });
}
template bool integer_extremum<true>(const KernelCall& c);
template bool integer_extremum<false>(const KernelCall& c);

// max, min with indices, argmax, argmin of rows: the extremum, then its position.
template <bool largest, bool only_index>
bool integer_first_extremum(const KernelCall& c) {
    if (!only_index && c.out.size() == 1) return integer_extremum<largest>(c);
    return over_integers(c, [&]<class T>(const Pattern& p, const T* x, const IntegerLoops<T>& loops) {
        auto* values = only_index ? nullptr : static_cast<T*>(c.out[0].raw());
        auto* at = c.out[only_index ? 0 : 1].template data<int64_t>();
        // The extrema of columns, and the numbers of the rows that hold them.
        auto of_columns = [&, columns = largest ? loops.first_largest_columns : loops.first_smallest_columns](
                              const T* from, int64_t width, int64_t stride, int64_t result) {
            Scratch<T> some(values ? 0 : static_cast<size_t>(width));
            T* const best = values ? values + result : some.data();
            std::copy_n(from, width, best);
            std::fill_n(at + result, width, 0);
            columns(from + stride, p.n - 1, width, stride, 1, best, at + result);
        };
        if (p.inner > 1) {
            for (int64_t o = 0; o < p.outer; ++o)
                parallel_for(p.inner, std::max<int64_t>(64, kThreadElements / p.n), 16,
                             [&](int64_t begin, int64_t end) {
                                 of_columns(x + o * p.n * p.inner + begin, end - begin, p.inner, o * p.inner + begin);
                             });
            return true;
        }
        const bool short_rows = over_short_rows(
            p, x, T(0), [&](int64_t first, int64_t rows, const T* tile) { of_columns(tile, rows, kRowsAside, first); });
        if (short_rows) return true;
        const auto row = largest ? loops.largest : loops.smallest;
        parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) {
                const T best = row(x + o * p.n, p.n);
                if (values) values[o] = best;
                at[o] = loops.find(x + o * p.n, p.n, best);
            }
        });
        return true;
    });
}
template bool integer_first_extremum<true, true>(const KernelCall& c);
template bool integer_first_extremum<true, false>(const KernelCall& c);
template bool integer_first_extremum<false, true>(const KernelCall& c);
template bool integer_first_extremum<false, false>(const KernelCall& c);

template <bool all>
bool truth_fast(const KernelCall& c) {
    auto run = [&](auto zero) {
        using T = decltype(zero);
        const Pattern p(reduce_layout(c));
        if (!p.known || p.repeat > 1) return false;
        const TruthLoops<T>& loops = truth_loops<T>();
        const auto* x = static_cast<const T*>(c.tensor(0).raw());
        auto* out = static_cast<uint8_t*>(c.out[0].raw());
        const auto columns = all ? loops.all_columns : loops.any_columns;
        auto first = [](const T*, uint8_t* to, int64_t width) {
            std::fill_n(to, width, static_cast<uint8_t>(all));
            return int64_t{0};
        };
        if (p.inner > 1) {
            over_columns(p, x, out, columns, first);
            return true;
        }
        if (by_columns(p, x, out, columns, first)) return true;
        // Some elements at a time: mostly the answer is found soon.
        constexpr int64_t kLook = 4096;
        for (int64_t o = 0; o < p.outer; ++o) {
            bool result = all;
            for (int64_t i = 0; i < p.n && result == all; i += kLook) {
                const int64_t n = std::min(kLook, p.n - i), count = loops.count(x + o * p.n + i, n);
                result = all ? count == n : count > 0;
            }
            out[o] = result;
        }
        return true;
    };
    const DType dtype = c.tensor(0).dtype();
    return with_integer(dtype, run) || with_real(dtype, run);
}
template bool truth_fast<true>(const KernelCall& c);
template bool truth_fast<false>(const KernelCall& c);

}  // namespace lunaria::cpu
