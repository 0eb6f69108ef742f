// CPU kernels: reductions of views, as transposed matrices and parts of rows, without a dense copy first: of one axis,
// or of neighbours that lie evenly in memory. Others are copied and left to the kernels for dense tensors, as are
// floats of 16 bits part by part. The orders of sums are those of the shape (core/loops/sum_order.h), wherever the
// elements lie.
#include "backends/cpu/reduce_views.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "backends/cpu/copy.h"
#include "backends/cpu/device.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/row_loops.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// A matrix of `kept` results from n elements each: element k of result o is at o * kept_step + k * step.
struct View {
    int64_t kept = 1, kept_step = 1, n = 1, step = 1;
    bool is_row = true;  // the reduced axes come last in the shape
};

std::optional<View> view_of(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    const Shape axes = Call(c.op, c.args, c.dtype).axes(1, 0);
    View view;
    int64_t sizes[2] = {1, 1}, steps[2] = {1, 1};  // kept, reduced
    int changes = 0, last_kind = -1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
        if (x.dim(axis) == 1) continue;
        // Repeated elements may be more than memory holds: their copy fails at once, where a loop would run for days.
        if (x.strides()[axis] == 0) return std::nullopt;
        const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
        if (sizes[reduced] == 1)
            steps[reduced] = x.strides()[axis];
        else if (x.strides()[axis] != sizes[reduced] * steps[reduced])
            return std::nullopt;
        if (last_kind < 0) view.is_row = reduced;
        if (last_kind >= 0 && last_kind != reduced && ++changes > 1) return std::nullopt;
        last_kind = reduced;
        sizes[reduced] *= x.dim(axis);
    }
    if (x.size() == 0) return std::nullopt;
    view.kept = sizes[0], view.kept_step = steps[0], view.n = sizes[1], view.step = steps[1];
    return view;
}

template <class F>
void over_results(const View& v, F f) {
    parallel_for(v.kept, worthwhile_rows(v.n), 16, f);
}

// The loops for extrema.
template <class T>
const auto& best_loops() {
    if constexpr (std::is_floating_point_v<T>)
        return reduce_loops<T>();
    else
        return integer_rows<T>().loops;
}

// Calls f with a number of the type of the first operand's elements.
template <class F>
bool with_elements(const KernelCall& c, F f) {
    return with_real(c.tensor(0).dtype(), f) || with_integer(c.tensor(0).dtype(), f);
}

// Sums of columns, which lie in memory as rows: some of them at a time, turned.
template <class T>
void sum_turned(const View& v, const T* x, int64_t begin, int64_t end, double* totals) {
    constexpr int64_t kColumns = 32;
    const TransposeLoop turn = transpose_loop<T>();
    std::vector<T> tile(static_cast<size_t>(kSumRows * kColumns));
    for (int64_t o = begin; o < end; o += kColumns) {
        const int64_t columns = std::min(kColumns, end - o);
        double* const sums = totals + (o - begin);
        std::fill_n(sums, columns, 0.0);
        for (int64_t k = 0; k < v.n; k += kSumRows) {
            const int64_t rows = std::min(kSumRows, v.n - k);
            double block[kColumns] = {};
            turn(x + o * v.kept_step + k, v.kept_step, tile.data(), kColumns, columns, rows, false);
            reduce_loops<T>().sum_columns(tile.data(), rows, columns, kColumns, block);
            for (int64_t j = 0; j < columns; ++j) sums[j] += block[j];
        }
    }
}

// Sums of n elements that lie `step` apart, of `count` neighbours, in the order of rows with so many lanes.
template <class T>
void sum_beside(const T* x, int64_t n, int64_t step, int64_t count, int64_t lanes, double* totals) {
    const auto& loops = reduce_loops<T>();
    if (n <= lanes && std::has_single_bit(static_cast<uint64_t>(n))) return loops.sum_across(x, n, count, step, totals);
    const int64_t size = lanes * kSumRows, width = lanes * count;
    std::fill_n(totals, count, 0.0);
    std::vector<double> sums(static_cast<size_t>(width));
    // Dense ones, whose lanes lie side by side as columns: a page at a time, since these loops take rows together,
    // which the processor does not read ahead by itself.
    const int64_t bytes = width * static_cast<int64_t>(sizeof(T)), page = 4096;
    const int64_t most = std::max<int64_t>(kSumLeaf, page / bytes / kSumLeaf * kSumLeaf);
    auto add_dense = [&](const T* from, int64_t elements) {
        for (int64_t i = 0; i < elements; i += lanes * most) {
            const int64_t part = std::min(lanes * most, elements - i), groups = part / lanes;
            const int64_t longer = part % lanes * count;
            const T* const x_part = from + i * count;
            for (int64_t line = 0; line < most * bytes; line += 64)
                __builtin_prefetch(reinterpret_cast<const char*>(x_part) + most * bytes + line);
            if (longer > 0) loops.sum_columns(x_part, groups + 1, longer, width, sums.data());
            if (groups > 0) loops.sum_columns(x_part + longer, groups, width - longer, width, sums.data() + longer);
        }
    };
    for (int64_t block = 0; block < n; block += size) {
        const T* const from = x + block * step;
        const int64_t elements = std::min(size, n - block);
        std::fill(sums.begin(), sums.end(), 0.0);
        if (step == count)
            add_dense(from, elements);
        else
            for (int64_t l = 0; l < std::min(lanes, elements); ++l)
                loops.sum_columns(from + l * step, (elements - l + lanes - 1) / lanes, count, lanes * step,
                                  sums.data() + l * count);
        join_lanes(sums.data(), lanes, count, [](double a, double b) { return a + b; });
        for (int64_t j = 0; j < count; ++j) totals[j] += sums[static_cast<size_t>(j)];
    }
}

// Integers may be added up in any order.
bool integer_sum_of_view(const KernelCall& c, const View& v) {
    if (c.out[0].dtype() != DType::i64 || (v.kept_step != 1 && v.step != 1)) return false;
    return with_integer(c.tensor(0).dtype(), [&](auto zero) {
        using T = decltype(zero);
        const auto& loops = integer_rows<T>().loops;
        const auto* x = static_cast<const T*>(c.tensor(0).raw());
        auto* out = c.out[0].data<int64_t>();
        over_results(v, [&](int64_t begin, int64_t end) {
            if (v.kept_step != 1) {
                for (int64_t o = begin; o < end; ++o) out[o] = loops.sum(x + o * v.kept_step, v.n);
                return;
            }
            std::fill(out + begin, out + end, 0);
            loops.sum_columns(x + begin, v.n, end - begin, v.step, out + begin);
        });
        return true;
    });
}

template <bool mean>
bool sum_of_view(const KernelCall& c, const View& given) {
    if (!mean && integer_sum_of_view(c, given)) return true;
    const DType dtype = c.out[0].dtype();
    if (c.tensor(0).dtype() != dtype) return false;
    // Each part of complex numbers is added up by itself; the other one lies beside it.
    const int64_t parts = is_complex(dtype) ? 2 : 1, lanes = lanes_of_sum(parts);
    View v = given;
    v.kept *= parts, v.step *= parts;
    const bool beside = v.is_row && v.kept_step == 1, row = v.is_row && v.step == 1;
    const bool turned = parts == 1 && !v.is_row && v.step == 1 && v.kept >= kSumLanes;
    if (!(beside || row || turned)) return false;
    return with_real(parts == 2 ? part_of(dtype) : dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto* x = static_cast<const T*>(c.tensor(0).raw());
        auto* out = static_cast<T*>(c.out[0].raw());
        over_results(v, [&](int64_t begin, int64_t end) {
            constexpr int64_t kMost = 256;
            double totals[kMost];
            for (int64_t o = begin; o < end; o += kMost) {
                const int64_t count = std::min(kMost, end - o);
                if (beside)
                    sum_beside(x + o, v.n, v.step, count, lanes, totals);
                else if (turned)
                    sum_turned(v, x, o, o + count, totals);
                else
                    for (int64_t i = 0; i < count; ++i)
                        totals[i] = reduce_loops<T>().sum(x + (o + i) * v.kept_step, v.n);
                store_results(totals, count, mean ? v.n : 1, out + o);
            }
        });
        return true;
    });
}

template <bool largest>
bool extremum_of_view(const KernelCall& c, const View& v) {
    if (c.out.size() != 1 || (v.step != 1 && v.kept_step != 1)) return false;
    return with_elements(c, [&](auto zero) {
        using T = decltype(zero);
        const auto& loops = best_loops<T>();
        const auto* x = static_cast<const T*>(c.tensor(0).raw());
        auto* out = static_cast<T*>(c.out[0].raw());
        over_results(v, [&](int64_t begin, int64_t end) {
            if (v.kept_step == 1) {
                std::copy(x + begin, x + end, out + begin);
                const auto columns = largest ? loops.largest_columns : loops.smallest_columns;
                columns(x + begin + v.step, v.n - 1, end - begin, v.step, out + begin);
            } else {
                const auto row = largest ? loops.largest : loops.smallest;
                for (int64_t o = begin; o < end; ++o) out[o] = row(x + o * v.kept_step, v.n);
            }
            std::transform(out + begin, out + end, out + begin, without_sign_of_zero<T>);
        });
        return true;
    });
}

// max, min with indices, argmax, argmin.
template <bool largest, bool only_index>
bool first_extremum_of_view(const KernelCall& c, const View& v) {
    if (!only_index && c.out.size() == 1) return extremum_of_view<largest>(c, v);
    if (v.step != 1 && v.kept_step != 1) return false;
    return with_elements(c, [&](auto zero) {
        using T = decltype(zero);
        const auto& loops = best_loops<T>();
        const auto* x = static_cast<const T*>(c.tensor(0).raw());
        auto* values = only_index ? nullptr : static_cast<T*>(c.out[0].raw());
        auto* at = c.out[only_index ? 0 : 1].template data<int64_t>();
        over_results(v, [&](int64_t begin, int64_t end) {
            std::vector<T> some(values ? 0 : static_cast<size_t>(end - begin));
            T* const best = values ? values + begin : some.data();
            if (v.kept_step == 1) {
                std::copy(x + begin, x + end, best);
                std::fill(at + begin, at + end, 0);
                const auto columns = largest ? loops.first_largest_columns : loops.first_smallest_columns;
                columns(x + begin + v.step, v.n - 1, end - begin, v.step, 1, best, at + begin);
                return;
            }
            const auto row = largest ? loops.largest : loops.smallest;
            for (int64_t o = begin; o < end; ++o) {
                const T* const from = x + o * v.kept_step;
                best[o - begin] = row(from, v.n);
                at[o] = loops.find(from, v.n, best[o - begin]);
            }
        });
        return true;
    });
}

template <bool all>
bool truth_of_view(const KernelCall& c, const View& v) {
    if (v.kept_step != 1) return false;
    return with_elements(c, [&](auto zero) {
        using T = decltype(zero);
        const TruthLoops<T>& loops = truth_loops<T>();
        const auto* x = static_cast<const T*>(c.tensor(0).raw());
        auto* out = static_cast<uint8_t*>(c.out[0].raw());
        over_results(v, [&](int64_t begin, int64_t end) {
            std::fill(out + begin, out + end, static_cast<uint8_t>(all));
            (all ? loops.all_columns : loops.any_columns)(x + begin, v.n, end - begin, v.step, out + begin);
        });
        return true;
    });
}

// The call with another first operand and other results, by the kernels for dense tensors.
bool reduce_dense(const KernelCall& c, const Tensor& x, std::span<Tensor> out) {
    std::vector<Value> args(c.args.begin(), c.args.end());
    args[0] = Value(x);
    const KernelCall dense{c.op, args, out, is_half(c.dtype) ? DType::f32 : c.dtype};
    size_t count = 0;
    const Kernel* kernels = c.op.kernels(device(), count);
    return std::any_of(kernels, kernels + count, [&](Kernel kernel) { return kernel(dense); });
}

// The kernel of an operator for views: by `direct`, or by the other kernels on a copy.
template <bool (*direct)(const KernelCall&, const View&)>
bool reduce_view(const KernelCall& c) {
    if (c.tensor(0).is_contiguous() || is_half(c.tensor(0).dtype())) return false;
    const std::optional<View> view = view_of(c);
    return (view && direct(c, *view)) || reduce_dense(c, c.tensor(0).contiguous(), c.out);
}

// The elements in f32. Those of a transposed matrix keep their order in memory.
Tensor widened(const Tensor& x) {
    if (x.rank() != 2 || x.strides()[0] != 1 || x.strides()[1] < x.dim(0)) return x.cast(DType::f32);
    const Tensor turned = x.view({x.dim(1), x.dim(0)}, {x.strides()[1], 1}).cast(DType::f32);
    return turned.view(x.shape(), {1, x.dim(0)});
}

// Floats of 16 bits are computed in f32: some parts along the first axis at a time, which stay in the cache, unless it
// is reduced.
bool reduce_halves(const KernelCall& c) {
    if (!is_half(c.tensor(0).dtype())) return false;
    constexpr int64_t kPart = 32 * 1024;
    // Long rows are read one by one.
    const bool is_long = c.tensor(0).rank() > 0 && c.tensor(0).size() > kPart * c.tensor(0).dim(0);
    const Tensor x = is_long ? c.tensor(0).contiguous() : c.tensor(0);
    std::vector<Tensor> wide;
    for (const Tensor& t : c.out) wide.push_back(is_half(t.dtype()) ? Tensor::empty(DType::f32, t.shape()) : t);
    const Shape axes = Call(c.op, c.args, c.dtype).axes(1, 0);
    const bool first_reduced = x.rank() == 0 || std::find(axes.begin(), axes.end(), 0) != axes.end();
    bool done = true;
    if (first_reduced || x.size() == 0) {
        done = reduce_dense(c, widened(x), wide);
    } else {
        const int64_t row = x.size() / x.dim(0), rows = std::max<int64_t>(1, kPart / row);
        auto part_of = [](const Tensor& t, int64_t begin, int64_t end) {
            Shape shape = t.shape();
            shape[0] = end - begin;
            return t.view(shape, t.strides(), begin * t.strides()[0]);
        };
        parallel_for(x.dim(0), std::max(rows, worthwhile_rows(row)), [&](int64_t begin, int64_t end) {
            for (int64_t at = begin; at < end; at += rows) {
                const int64_t last = std::min(at + rows, end);
                std::vector<Tensor> out;
                for (const Tensor& t : wide) out.push_back(part_of(t, at, last));
                reduce_dense(c, widened(part_of(x, at, last)), out);
            }
        });
    }
    for (size_t i = 0; i < wide.size(); ++i)
        if (!wide[i].same_body(c.out[i])) copy_elements(wide[i], c.out[i]);
    return done;
}

struct Entry {
    std::string_view op;
    Kernel view;  // null: views are copied first
};
constexpr Entry kEntries[] = {{"sum", reduce_view<sum_of_view<false>>},
                              {"mean", reduce_view<sum_of_view<true>>},
                              {"amax", reduce_view<extremum_of_view<true>>},
                              {"amin", reduce_view<extremum_of_view<false>>},
                              {"max", reduce_view<first_extremum_of_view<true, false>>},
                              {"min", reduce_view<first_extremum_of_view<false, false>>},
                              {"argmax", reduce_view<first_extremum_of_view<true, true>>},
                              {"argmin", reduce_view<first_extremum_of_view<false, true>>},
                              {"all", reduce_view<truth_of_view<true>>},
                              {"any", reduce_view<truth_of_view<false>>},
                              {"prod", nullptr},
                              {"nansum", nullptr},
                              {"var", nullptr},
                              {"std", nullptr}};

const Entry* entry_of(const Op& op) {
    const auto found = std::ranges::find(kEntries, op.name(), &Entry::op);
    return found == std::end(kEntries) ? nullptr : found;
}

}  // namespace

bool reduces_halves(const Op& op) { return entry_of(op) != nullptr; }
bool reduces_views(const Op& op) {
    const Entry* const entry = entry_of(op);
    return entry && entry->view;
}

void add_view_reduce_kernels(KernelTable& table) {
    for (const Entry& e : kEntries) {
        if (e.view) table.fast(e.op, e.view);
        table.fast(e.op, reduce_halves);
    }
}

}  // namespace lunaria::cpu
