// CPU kernels: reductions of f32 and f64 by the loops over rows and columns.
// After merging axes nearly every reduction is one of four kinds: everything, rows, columns, or columns within blocks
// (kept × reduced × kept); for sums also rows that belong together (reduced × kept × reduced, the statistics of a batch
// norm). Other reductions are left to the plain kernels.
#include <atomic>
#include <cmath>

#include "backends/cpu/columns.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/reduce_pattern.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/scratch.h"
#include "core/memory/cache_size.h"
#include "core/ops/reduce.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// Sums by `row(result, first, n)`, `columns(block, first, rows, width, stride, first column, totals)` and, for rows
// that lie side by side, `across(first result, first, n, width, stride, totals)`, where n may count more elements,
// which are `fill`; for every result: store(result, sum).
template <class T, class Row, class Columns, class Across, class Store>
void sums(const Pattern& p, const T* x, Row row, Columns columns, Across across, Store store, T fill = T(0)) {
    const bool short_rows = over_short_rows(p, x, fill, [&](int64_t first, int64_t rows, const T* tile) {
        double totals[kRowsAside];
        across(first, tile, filled_row(p.n), rows, kRowsAside, totals);
        for (int64_t i = 0; i < rows; ++i) store(first + i, totals[i]);
    });
    if (short_rows) return;
    if (p.inner > 1 && is_small_block(p.n, p.inner)) {
        parallel_for(p.outer, worthwhile_rows(p.n * p.inner), [&](int64_t begin, int64_t end) {
            double totals[2 * kSumLanes];
            for (int64_t o = begin; o < end; ++o) {
                small_totals(x + o * p.n * p.inner, p.n, p.inner, totals,
                             [&](const T* part, int64_t rows, int64_t width, int64_t stride, int64_t first,
                                 double* out) { columns(o, part, rows, width, stride, first, out); });
                for (int64_t i = 0; i < p.inner; ++i) store(o * p.inner + i, totals[i]);
            }
        });
        return;
    }
    if (p.inner > 1) {
        for (int64_t o = 0; o < p.outer; ++o) {
            auto totals = column_totals(x + o * p.n * p.inner, p.n, p.inner,
                                        [&](const T* part, int64_t rows, int64_t width, int64_t stride, int64_t first,
                                            double* out) { columns(o, part, rows, width, stride, first, out); });
            for (int64_t i = 0; i < p.inner; ++i) store(o * p.inner + i, totals[static_cast<size_t>(i)]);
        }
        return;
    }
    auto of_row = [&](int64_t o, bool alone) {
        double total = 0;
        for (int64_t r = 0; r < p.repeat; ++r) {
            const T* from = x + (r * p.outer + o) * p.n;
            total += alone ? row_total(p.n, [&](int64_t a, int64_t b) { return row(o, from + a, b - a); })
                           : row(o, from, p.n);
        }
        store(o, total);
    };
    if (p.outer < 16 && p.n > kThreadElements) {
        for (int64_t o = 0; o < p.outer; ++o) of_row(o, true);
    } else {
        parallel_for(p.outer, worthwhile_rows(p.n * p.repeat), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) of_row(o, false);
        });
    }
}

// Whether the array fills half of the last cache: of a larger one, part has been evicted since it was written.
template <class T>
bool is_far(const Pattern& p) {
    static const int64_t half = last_cache_bytes() / 2;
    return p.repeat * p.outer * p.n * p.inner * static_cast<int64_t>(sizeof(T)) >= half;
}
template <class T>
auto sum_loop(const Pattern& p) {
    return is_far<T>(p) ? reduce_loops<T>().sum_far : reduce_loops<T>().sum;
}

template <class T>
void sum_of(const Pattern& p, const T* x, std::vector<double>& out) {
    const ReduceLoops<T>& loops = reduce_loops<T>();
    sums(
        p, x, [sum = sum_loop<T>(p)](int64_t, const T* from, int64_t n) { return sum(from, n); },
        [&](int64_t, const T* from, int64_t rows, int64_t width, int64_t stride, int64_t, double* totals) {
            loops.sum_columns(from, rows, width, stride, totals);
        },
        [&](int64_t, const T* from, int64_t n, int64_t width, int64_t stride, double* totals) {
            loops.sum_across(from, n, width, stride, totals);
        },
        [&](int64_t o, double total) { out[static_cast<size_t>(o)] = total; });
}

// For rows that are not cut: stored(sum) for each.
template <class T, class Stored>
void sum_rows(const Pattern& p, const T* x, T* out, Stored stored) {
    const auto sum = is_far<T>(p) ? reduce_loops<T>().sum_rows_far : reduce_loops<T>().sum_rows;
    parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
        constexpr int64_t kMost = 64;
        double totals[kMost];
        for (int64_t o = begin; o < end; o += kMost) {
            const int64_t rows = std::min(kMost, end - o);
            sum(x + o * p.n, rows, p.n, totals);
            for (int64_t i = 0; i < rows; ++i) out[o + i] = stored(totals[i]);
        }
    });
}

template <bool mean>
bool sum_fast(const KernelCall& c) {
    const DType dtype = c.out[0].dtype();
    if (c.tensor(0).dtype() != dtype) return false;
    const bool pairs = is_complex(dtype);
    return with_real(pairs ? part_of(dtype) : dtype, [&](auto zero) {
        using T = decltype(zero);
        // A sum over all elements, as in losses.
        const bool all = c.args[1].is_nil() && !pairs;
        const Pattern p = all     ? Pattern(c.tensor(0).size())
                          : pairs ? Pattern(reduce_layout(c).of_parts())
                                  : Pattern(reduce_layout(c));
        if (!p.known) return false;
        const ReduceLoops<T>& loops = reduce_loops<T>();
        const T* x = static_cast<const T*>(c.tensor(0).raw());
        T* out = static_cast<T*>(c.out[0].raw());
        auto stored = [count = static_cast<double>(p.n * p.repeat)](double total) {
            return static_cast<T>(mean ? total / count : total);
        };
        const bool rows = p.inner == 1 && p.repeat == 1 && (p.outer >= 16 || p.n <= kThreadElements);
        if (rows && (p.n > kShortRow || p.outer < 4)) {
            sum_rows(p, x, out, stored);
            return true;
        }
        sums(
            p, x, [sum = sum_loop<T>(p)](int64_t, const T* from, int64_t n) { return sum(from, n); },
            [&](int64_t, const T* from, int64_t rows, int64_t width, int64_t stride, int64_t, double* totals) {
                loops.sum_columns(from, rows, width, stride, totals);
            },
            [&](int64_t, const T* from, int64_t n, int64_t width, int64_t stride, double* totals) {
                loops.sum_across(from, n, width, stride, totals);
            },
            [&](int64_t o, double total) { out[o] = stored(total); });
        return true;
    });
}

bool nansum_fast(const KernelCall& c) {
    if (c.tensor(0).dtype() != c.out[0].dtype()) return false;
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const Pattern p(reduce_layout(c));
        if (!p.known) return false;
        const ReduceLoops<T>& loops = reduce_loops<T>();
        T* out = c.out[0].data<T>();
        sums(
            p, c.tensor(0).data<T>(), [&](int64_t, const T* from, int64_t n) { return loops.sum_numbers(from, n); },
            [&](int64_t, const T* from, int64_t rows, int64_t width, int64_t stride, int64_t, double* totals) {
                loops.sum_number_columns(from, rows, width, stride, totals);
            },
            [&](int64_t, const T* from, int64_t n, int64_t width, int64_t stride, double* totals) {
                loops.sum_numbers_across(from, n, width, stride, totals);
            },
            [&](int64_t o, double total) { out[o] = static_cast<T>(total); });
        return true;
    });
}

bool prod_fast(const KernelCall& c) {
    if (c.tensor(0).dtype() != c.out[0].dtype()) return false;
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        ReduceLayout layout = reduce_layout(c);
        Pattern p(layout);
        if (!p.known || p.repeat > 1) return false;
        const T* x = c.tensor(0).data<T>();
        T* out = c.out[0].data<T>();
        if (p.inner > 1) {
            const int64_t part = std::max<int64_t>(64, kThreadElements / p.n);
            for (int64_t o = 0; o < p.outer; ++o)
                parallel_for(p.inner, part, 16, [&](int64_t begin, int64_t end) {
                    std::vector<double> totals(static_cast<size_t>(end - begin), 1);
                    reduce_loops<T>().product_columns(x + o * p.n * p.inner + begin, p.n, end - begin, p.inner,
                                                      totals.data());
                    for (int64_t j = begin; j < end; ++j)
                        out[o * p.inner + j] = static_cast<T>(totals[static_cast<size_t>(j - begin)]);
                });
            return true;
        }
        const bool short_rows = over_short_rows(p, x, T(1), [&](int64_t first, int64_t rows, const T* tile) {
            double totals[kRowsAside];
            reduce_loops<T>().product_across(tile, filled_row(p.n), rows, kRowsAside, totals);
            for (int64_t i = 0; i < rows; ++i) out[first + i] = static_cast<T>(totals[i]);
        });
        if (short_rows) return true;
        parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) out[o] = static_cast<T>(reduce_loops<T>().product(x + o * p.n, p.n));
        });
        return true;
    });
}

template <bool root>
bool var_fast(const KernelCall& c) {
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        ReduceLayout layout = reduce_layout(c);
        Pattern p(layout);
        if (!p.known) return false;
        const ReduceLoops<T>& loops = reduce_loops<T>();
        const T* x = c.tensor(0).data<T>();
        std::vector<double> means(static_cast<size_t>(layout.outputs));
        sum_of(p, x, means);
        for (double& m : means) m /= static_cast<double>(layout.count);
        double freedom = std::max(0.0, static_cast<double>(layout.count) - c.args[2].number());
        T* out = c.out[0].data<T>();
        auto store = [&](int64_t o, double total) {
            double var = total / freedom;
            out[o] = static_cast<T>(root ? std::sqrt(var) : var);
        };
        if (p.inner > 1) {
            for (int64_t o = 0; o < p.outer; ++o) {
                const auto squares = square_totals(x + o * p.n * p.inner, p.n, p.inner, [&](int64_t j) {
                    return means[static_cast<size_t>(o * p.inner + j)];
                });
                for (int64_t i = 0; i < p.inner; ++i) store(o * p.inner + i, squares[static_cast<size_t>(i)]);
            }
            return true;
        }
        sums(
            p, x,
            [&](int64_t o, const T* from, int64_t n) { return loops.squares(from, n, means[static_cast<size_t>(o)]); },
            [](int64_t, const T*, int64_t, int64_t, int64_t, int64_t, double*) {},
            [&, n = p.n](int64_t first, const T* from, int64_t, int64_t width, int64_t stride, double* totals) {
                loops.squares_across(from, n, width, stride, means.data() + first, totals);
                // As for a single row, the squares of large floats are computed wider.
                for (int64_t i = 0; i < width; ++i)
                    if (!std::isfinite(totals[i]))
                        totals[i] = loops.squares(x + (first + i) * n, n, means[static_cast<size_t>(first + i)]);
            },
            store);
        return true;
    });
}

// The norm for a sum of powers.
double norm_of_total(double total, double order) {
    if (order == 0 || order == 1) return total;
    return order == 2 ? std::sqrt(total) : order == 3 ? std::cbrt(total) : std::pow(total, 1 / order);
}

// Powers are computed in the dtype of the elements. Where they leave its range, or small ones underflow by more than
// rounding in the total, the plain kernel, which scales, computes the norm. The two parts of a complex number count as
// two numbers.
bool norm_fast(const KernelCall& c) {
    const DType dtype = c.tensor(0).dtype();
    const bool pairs = is_complex(dtype);
    if ((pairs ? part_of(dtype) : dtype) != c.out[0].dtype()) return false;
    const double order = norm_order(c.args[1]);
    // A root of very low order multiplies rounding errors.
    if (order != 0 && !(std::abs(order) >= 0.25 && std::abs(order) <= 64)) return false;
    if (pairs && order != 2) return false;
    const ReduceLayout layout = reduce_layout(c, 2);
    Pattern p(layout);
    if (!p.known) return false;
    const bool by_part = pairs && p.inner > 1;  // the totals of the two parts of a column, which lie side by side
    if (pairs) (by_part ? p.inner : p.n) *= 2;
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const ReduceLoops<T>& loops = reduce_loops<T>();
        T* out = c.out[0].data<T>();
        bool regular = true;
        Scratch<uint8_t> irregular(static_cast<size_t>(layout.outputs));
        std::vector<double> parts(static_cast<size_t>(by_part ? 2 * layout.outputs : 0));
        const double least = sizeof(T) == 4 ? 1e-24 : 1e-280, most = sizeof(T) == 4 ? 1e36 : 1e300;
        auto store = [&](int64_t o, double total) {
            const bool is_irregular = order != 0 && !(total > least && total < most);
            irregular[static_cast<size_t>(o)] = is_irregular;
            // Threads have different results, and write the same single value.
            if (is_irregular) std::atomic_ref(regular).store(false, std::memory_order_relaxed);
            out[o] = static_cast<T>(norm_of_total(total, order));
        };
        sums(
            p, static_cast<const T*>(c.tensor(0).raw()),
            [&](int64_t, const T* from, int64_t n) { return loops.powers(from, n, order); },
            [&](int64_t, const T* from, int64_t rows, int64_t width, int64_t stride, int64_t, double* totals) {
                loops.power_columns(from, rows, width, stride, order, totals);
            },
            [&](int64_t, const T* from, int64_t n, int64_t width, int64_t stride, double* totals) {
                loops.powers_across(from, n, width, stride, order, totals);
            },
            [&](int64_t o, double total) {
                if (by_part)
                    parts[static_cast<size_t>(o)] = total;
                else
                    store(o, total);
            },
            order < 0 ? std::numeric_limits<T>::infinity() : T(0));
        for (size_t i = 0; i < parts.size(); i += 2) store(static_cast<int64_t>(i / 2), parts[i] + parts[i + 1]);
        // Computed here rather than declined: the way for a layout must not depend on elements seen before.
        return regular || vector_norm_of(c, irregular.data());
    });
}

template <bool largest>
bool extremum_fast(const KernelCall& c) {
    if (c.out.size() != 1) return false;
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        ReduceLayout layout = reduce_layout(c);
        Pattern p(layout);
        if (!p.known || p.repeat > 1) return false;
        const ReduceLoops<T>& loops = reduce_loops<T>();
        auto row = largest ? loops.largest : loops.smallest;
        auto columns = largest ? loops.largest_columns : loops.smallest_columns;
        const T* x = c.tensor(0).data<T>();
        T* out = c.out[0].data<T>();
        if (p.inner > 1) {
            int64_t part = std::max<int64_t>(64, kThreadElements / p.n);
            for (int64_t o = 0; o < p.outer; ++o)
                parallel_for(p.inner, part, 16, [&](int64_t begin, int64_t end) {
                    const T* from = x + o * p.n * p.inner + begin;
                    T* best = out + o * p.inner + begin;
                    std::copy(from, from + (end - begin), best);
                    columns(from + p.inner, p.n - 1, end - begin, p.inner, best);
                    std::transform(best, best + (end - begin), best, without_sign_of_zero<T>);
                });
            return true;
        }
        if (p.outer < 16 && p.n > kThreadElements) {
            constexpr int64_t kPart = 65536;
            int64_t parts = (p.n + kPart - 1) / kPart;
            std::vector<T> best(static_cast<size_t>(parts));
            for (int64_t o = 0; o < p.outer; ++o) {
                parallel_for(parts, 2, [&](int64_t begin, int64_t end) {
                    for (int64_t k = begin; k < end; ++k)
                        best[static_cast<size_t>(k)] = row(x + o * p.n + k * kPart, std::min(kPart, p.n - k * kPart));
                });
                out[o] = without_sign_of_zero(row(best.data(), parts));
            }
            return true;
        }
        const bool short_rows = over_short_rows(p, x, T(0), [&](int64_t first, int64_t rows, const T* tile) {
            T* const best = out + first;
            std::copy_n(tile, rows, best);
            columns(tile + kRowsAside, p.n - 1, rows, kRowsAside, best);
            std::transform(best, best + rows, best, without_sign_of_zero<T>);
        });
        if (short_rows) return true;
        parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) out[o] = without_sign_of_zero(row(x + o * p.n, p.n));
        });
        return true;
    });
}

// max, min with indices, argmax, argmin. Two passes over rows: the extremum, then its position.
template <bool largest, bool only_index>
bool first_extremum_fast(const KernelCall& c) {
    if (!only_index && c.out.size() == 1) return extremum_fast<largest>(c);
    return with_real(c.tensor(0).dtype(), [&](auto zero) {
        using T = decltype(zero);
        ReduceLayout layout = reduce_layout(c);
        Pattern p(layout);
        if (!p.known || p.repeat > 1) return false;
        const ReduceLoops<T>& loops = reduce_loops<T>();
        const T* x = c.tensor(0).data<T>();
        int64_t* at = c.out[only_index ? 0 : 1].data<int64_t>();
        std::vector<T> scratch(static_cast<size_t>(only_index && p.inner > 1 ? p.inner : 0));
        T* values = only_index ? nullptr : c.out[0].data<T>();
        auto columns = largest ? loops.first_largest_columns : loops.first_smallest_columns;
        const bool short_rows = over_short_rows(p, x, T(0), [&](int64_t first, int64_t rows, const T* tile) {
            T some[kRowsAside];
            T* const best = values ? values + first : some;
            std::copy_n(tile, rows, best);
            std::fill_n(at + first, rows, 0);
            columns(tile + kRowsAside, p.n - 1, rows, kRowsAside, 1, best, at + first);
        });
        if (short_rows) return true;
        if (p.inner > 1) {
            int64_t part = std::max<int64_t>(64, kThreadElements / p.n);
            for (int64_t o = 0; o < p.outer; ++o)
                parallel_for(p.inner, part, 16, [&](int64_t begin, int64_t end) {
                    const T* from = x + o * p.n * p.inner + begin;
                    T* best = values ? values + o * p.inner + begin : scratch.data() + begin;
                    int64_t* place = at + o * p.inner + begin;
                    std::copy(from, from + (end - begin), best);
                    std::fill(place, place + (end - begin), 0);
                    columns(from + p.inner, p.n - 1, end - begin, p.inner, 1, best, place);
                });
            return true;
        }
        auto row = largest ? loops.largest : loops.smallest;
        parallel_for(p.outer, worthwhile_rows(p.n), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) {
                T best = row(x + o * p.n, p.n);
                if (values) values[o] = best;
                at[o] = loops.find(x + o * p.n, p.n, best);
            }
        });
        return true;
    });
}

}  // namespace

void add_fast_reduce_kernels(KernelTable& table) {
    table.fast("sum", [](const KernelCall& c) { return integer_sum(c) || sum_fast<false>(c); });
    table.fast("nansum", nansum_fast);
    table.fast("mean", sum_fast<true>);
    table.fast("prod", [](const KernelCall& c) { return integer_product(c) || prod_fast(c); });
    table.fast("all", truth_fast<true>);
    table.fast("any", truth_fast<false>);
    table.fast("var", var_fast<false>);
    table.fast("std", var_fast<true>);
    table.fast("vector_norm", norm_fast);
    table.fast("amax", [](const KernelCall& c) { return integer_extremum<true>(c) || extremum_fast<true>(c); });
    table.fast("amin", [](const KernelCall& c) { return integer_extremum<false>(c) || extremum_fast<false>(c); });
    table.fast("max", [](const KernelCall& c) {
        return integer_first_extremum<true, false>(c) || first_extremum_fast<true, false>(c);
    });
    table.fast("min", [](const KernelCall& c) {
        return integer_first_extremum<false, false>(c) || first_extremum_fast<false, false>(c);
    });
    table.fast("argmax", [](const KernelCall& c) {
        return integer_first_extremum<true, true>(c) || first_extremum_fast<true, true>(c);
    });
    table.fast("argmin", [](const KernelCall& c) {
        return integer_first_extremum<false, true>(c) || first_extremum_fast<false, true>(c);
    });
}

}  // namespace lunaria::cpu
