// CPU kernels: normalisation of f32 and f64, by the loops over rows and columns.
#include <cmath>

#include "backends/cpu/columns.h"
#include "backends/cpu/norm.h"
#include "backends/cpu/row_loops.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The number of passes over a row that find it in the cache, in units of the first.
constexpr int64_t kCost = 2;
// The number of rows whose shares of the weight's gradient are added up before they join the total, as in every sum
// over rows.
constexpr int64_t kPartRows = kSumRows;

template <class T>
const T* data_or_null(const KernelCall& c, size_t i) {
    return c.has(i) ? c.tensor(i).data<T>() : nullptr;
}

struct Moments {
    double mean, rstd;
};

template <class T>
Moments row_moments(const T* x, int64_t n, double eps) {
    const ReduceLoops<T>& loops = reduce_loops<T>();
    double mean = loops.sum(x, n) / static_cast<double>(n);
    return {mean, 1 / std::sqrt(loops.squares(x, n, mean) / static_cast<double>(n) + eps)};
}

template <class T>
bool row_norm(const RowNorm& n, const KernelCall& c, double eps) {
    const NormLoops<T>& loops = norm_loops<T>();
    const T *x = c.tensor(0).data<T>(), *weight = data_or_null<T>(c, 2), *bias = data_or_null<T>(c, 3);
    T* y = c.out[0].data<T>();
    int64_t length = n.length();
    if (length == 0) return true;
    parallel_for(n.rows, worthwhile_rows(length, kCost), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const T* in = x + r * length;
            T* out = y + r * length;
            Moments m = row_moments(in, length, eps);
            int64_t first = n.first_channel(r);
            if (n.inner == 1) {
                loops.apply(in, out, length, m.mean, m.rstd, weight ? weight + first : nullptr,
                            bias ? bias + first : nullptr);
                continue;
            }
            for (int64_t k = 0; k < n.channels; ++k)
                loops.apply_scalar(in + k * n.inner, out + k * n.inner, n.inner, m.mean,
                                   weight ? m.rstd * static_cast<double>(weight[first + k]) : m.rstd,
                                   bias ? static_cast<double>(bias[first + k]) : 0.0);
        }
    });
    return true;
}

bool layer_norm(const KernelCall& c) {
    int64_t axes = c.args[1].is_list() ? static_cast<int64_t>(c.args[1].items().size()) : 1;
    RowNorm n = row_norm_of_last(c.tensor(0).shape(), axes);
    return with_real(c.out[0].dtype(), [&](auto zero) { return row_norm<decltype(zero)>(n, c, c.args[4].number()); });
}

bool group_norm(const KernelCall& c) {
    RowNorm n = row_norm_of_groups(c.tensor(0).shape(), c.args[1].integer());
    return with_real(c.out[0].dtype(), [&](auto zero) { return row_norm<decltype(zero)>(n, c, c.args[4].number()); });
}

// Only weights along the row; group norms of images are left to the plain kernel.
template <class T>
bool row_norm_grad(const RowNorm& n, const KernelCall& c, double eps) {
    int64_t length = n.length();
    if (n.inner != 1 || n.groups != 1 || length == 0) return false;
    const NormLoops<T>& loops = norm_loops<T>();
    const T *dy = c.tensor(0).data<T>(), *x = c.tensor(1).data<T>(), *weight = data_or_null<T>(c, 2);
    T* dx = c.out[0].data<T>();
    int64_t parts = (n.rows + kPartRows - 1) / kPartRows;
    std::vector<double> dweight(static_cast<size_t>(parts * length)), dbias(dweight.size());
    parallel_for(parts, worthwhile_rows(length * kPartRows, 2 * kCost), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
            const int64_t first = p * kPartRows, rows = std::min(n.rows - first, kPartRows);
            loops.pull_rows(dy + first * length, x + first * length, weight, rows, length, eps, dx + first * length,
                            dweight.data() + p * length, dbias.data() + p * length);
        }
    });
    auto join = [&](const std::vector<double>& shares, T* out) {
        std::vector<double> totals(static_cast<size_t>(length));
        for (int64_t p = 0; p < parts; ++p)
            copy_loops().add_f64(totals.data(), shares.data() + p * length, 1.0, length);
        std::copy(totals.begin(), totals.end(), out);
    };
    join(dweight, c.out[1].data<T>());
    join(dbias, c.out[2].data<T>());
    return true;
}

bool layer_norm_grad(const KernelCall& c) {
    RowNorm n = row_norm_of_last(c.tensor(1).shape(), c.args[3].integer());
    return with_real(c.out[0].dtype(),
                     [&](auto zero) { return row_norm_grad<decltype(zero)>(n, c, c.args[4].number()); });
}

bool rms_norm(const KernelCall& c) {
    RowNorm n = row_norm_of_last(c.tensor(0).shape(), c.tensor(1).rank());
    int64_t length = n.length();
    double eps = c.args[2].number();
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        if (length == 0) return false;
        const T *x = c.tensor(0).data<T>(), *gamma = c.tensor(1).data<T>();
        T *y = c.out[0].data<T>(), *rstds = c.out[1].data<T>();
        parallel_for(n.rows, worthwhile_rows(length, kCost), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                const T* in = x + r * length;
                double squares = reduce_loops<T>().squares(in, length, 0) / static_cast<double>(length);
                double rstd = 1 / std::sqrt(squares + eps);
                rstds[r] = static_cast<T>(rstd);
                norm_loops<T>().apply(in, y + r * length, length, 0, rstd, gamma, nullptr);
            }
        });
        return true;
    });
}

// Channels in columns: a batch of vectors.
template <class T>
bool batch_norm_columns(const ChannelNorm& n, const KernelCall& c, double eps) {
    const ReduceLoops<T>& loops = reduce_loops<T>();
    const T *x = c.tensor(0).data<T>(), *weight = data_or_null<T>(c, 1), *bias = data_or_null<T>(c, 2);
    std::vector<double> mean = column_totals(
        x, n.outer, n.channels, [&](const T* part, int64_t rows, int64_t width, int64_t stride, int64_t, double* out) {
            loops.sum_columns(part, rows, width, stride, out);
        });
    for (double& m : mean) m /= static_cast<double>(n.count());
    std::vector<double> var =
        square_totals(x, n.outer, n.channels, [&](int64_t k) { return mean[static_cast<size_t>(k)]; });
    std::vector<T> means(mean.size()), scales(mean.size()), shifts(mean.size());
    for (size_t k = 0; k < mean.size(); ++k) {
        var[k] /= static_cast<double>(n.count());
        double scale = 1 / std::sqrt(var[k] + eps);
        c.out[1].data<T>()[k] = means[k] = static_cast<T>(mean[k]);
        c.out[2].data<T>()[k] = static_cast<T>(var[k]);
        scales[k] = static_cast<T>(weight ? scale * static_cast<double>(weight[k]) : scale);
        shifts[k] = bias ? bias[k] : T(0);
    }
    T* y = c.out[0].data<T>();
    parallel_for(n.outer, worthwhile_rows(n.channels), [&](int64_t begin, int64_t end) {
        norm_loops<T>().apply_columns(x + begin * n.channels, y + begin * n.channels, end - begin, n.channels,
                                      means.data(), scales.data(), shifts.data());
    });
    return true;
}

// Channels in runs: a batch of images.
template <class T>
bool batch_norm_runs(const ChannelNorm& n, const KernelCall& c, double eps) {
    const ReduceLoops<T>& loops = reduce_loops<T>();
    const T *x = c.tensor(0).data<T>(), *weight = data_or_null<T>(c, 1), *bias = data_or_null<T>(c, 2);
    T* y = c.out[0].data<T>();
    double count = static_cast<double>(n.count());
    parallel_for(n.channels, worthwhile_rows(n.count(), kCost), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            auto run = [&](int64_t o) { return (o * n.channels + k) * n.inner; };
            double sum = 0, squares = 0;
            for (int64_t o = 0; o < n.outer; ++o) sum += loops.sum(x + run(o), n.inner);
            double mean = sum / count;
            for (int64_t o = 0; o < n.outer; ++o) squares += loops.squares(x + run(o), n.inner, mean);
            double var = squares / count, scale = 1 / std::sqrt(var + eps);
            c.out[1].data<T>()[k] = static_cast<T>(mean);
            c.out[2].data<T>()[k] = static_cast<T>(var);
            if (weight) scale *= static_cast<double>(weight[k]);
            for (int64_t o = 0; o < n.outer; ++o)
                norm_loops<T>().apply_scalar(x + run(o), y + run(o), n.inner, mean, scale,
                                             bias ? static_cast<double>(bias[k]) : 0.0);
        }
    });
    return true;
}

bool batch_norm_train(const KernelCall& c) {
    ChannelNorm n = channel_norm(c.tensor(0).shape());
    double eps = c.args[3].number();
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        return n.inner == 1 ? batch_norm_columns<T>(n, c, eps) : batch_norm_runs<T>(n, c, eps);
    });
}

bool batch_norm_grad(const KernelCall& c) {
    ChannelNorm n = channel_norm(c.tensor(1).shape());
    if (n.inner == 1 || n.count() == 0) return false;
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const ReduceLoops<T>& loops = reduce_loops<T>();
        const NormLoops<T>& norms = norm_loops<T>();
        const T *dy = c.tensor(0).data<T>(), *x = c.tensor(1).data<T>(), *weight = data_or_null<T>(c, 2);
        double count = static_cast<double>(n.count()), eps = c.args[3].number();
        parallel_for(n.channels, worthwhile_rows(n.count(), 2 * kCost), [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) {
                auto run = [&](int64_t o) { return (o * n.channels + k) * n.inner; };
                double mean = 0, squares = 0, sum = 0, slope = 0;
                for (int64_t o = 0; o < n.outer; ++o) mean += loops.sum(x + run(o), n.inner);
                mean /= count;
                for (int64_t o = 0; o < n.outer; ++o) squares += loops.squares(x + run(o), n.inner, mean);
                double rstd = 1 / std::sqrt(squares / count + eps);
                for (int64_t o = 0; o < n.outer; ++o) {
                    double s = 0, t = 0;
                    norms.dots(dy + run(o), x + run(o), n.inner, mean, rstd, &s, &t);
                    sum += s;
                    slope += t;
                }
                // pull() multiplies by rstd; the weight is a single number, so it is applied to the cotangent's
                // statistics.
                c.out[1].data<T>()[k] = static_cast<T>(slope);
                c.out[2].data<T>()[k] = static_cast<T>(sum);
                for (int64_t o = 0; o < n.outer; ++o) {
                    T* dx = c.out[0].data<T>() + run(o);
                    norms.pull(dy + run(o), x + run(o), n.inner, mean, rstd, sum / count, slope / count, dx);
                    if (weight) norms.apply_scalar(dx, dx, n.inner, 0, static_cast<double>(weight[k]), 0);
                }
            }
        });
        return true;
    });
}

}  // namespace

void add_fast_norm_kernels(KernelTable& table) {
    table.fast("layer_norm", layer_norm);
    table.fast("layer_norm_grad", layer_norm_grad);
    table.fast("group_norm", group_norm);
    table.fast("rms_norm", rms_norm);
    table.fast("batch_norm_train", batch_norm_train);
    table.fast("batch_norm_grad", batch_norm_grad);
}

}  // namespace lunaria::cpu
