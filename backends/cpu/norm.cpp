// CPU kernels: normalisation, plain.
// Statistics are computed in double and in two passes: the mean first, then the squares of the differences from it.
#include "backends/cpu/norm.h"

#include <cmath>
#include <vector>

#include "backends/cpu/row_loops.h"

namespace lunaria::cpu {

namespace {

// Calls f with the C++ type of the operands; only f32 and f64 reach these kernels.
template <class F>
bool with_float_sums(DType t, F f) {
    return with_real(t, [&](auto zero) {
        f(zero);
        return true;
    });
}

template <class T>
const T* data_or_null(const KernelCall& c, size_t i) {
    return c.has(i) ? c.tensor(i).data<T>() : nullptr;
}

struct Moments {
    double mean = 0, rstd = 0, var = 0;
};

// `elements(f)` calls f for each element of the block, in the same order every time.
template <class Elements>
Moments moments(int64_t count, double eps, Elements elements) {
    Moments m;
    double sum = 0, squares = 0;
    elements([&](auto x) { sum += static_cast<double>(x); });
    m.mean = sum / static_cast<double>(count);
    elements([&](auto x) { squares += (static_cast<double>(x) - m.mean) * (static_cast<double>(x) - m.mean); });
    m.var = squares / static_cast<double>(count);
    m.rstd = 1 / std::sqrt(m.var + eps);
    return m;
}

template <class T>
Moments row_moments(const T* x, int64_t length, double eps) {
    return moments(length, eps, [&](auto f) {
        for (int64_t i = 0; i < length; ++i) f(x[i]);
    });
}

template <class T>
void row_norm(const RowNorm& n, const T* x, const T* weight, const T* bias, double eps, T* y) {
    for (int64_t r = 0; r < n.rows; ++r) {
        const T* in = x + r * n.length();
        T* out = y + r * n.length();
        Moments m = row_moments(in, n.length(), eps);
        for (int64_t i = 0; i < n.length(); ++i) {
            int64_t channel = n.first_channel(r) + i / n.inner;
            double v = (static_cast<double>(in[i]) - m.mean) * m.rstd;
            if (weight) v *= static_cast<double>(weight[channel]);
            if (bias) v += static_cast<double>(bias[channel]);
            out[i] = static_cast<T>(v);
        }
    }
}

template <class T>
void row_norm_grad(const RowNorm& n, const KernelCall& c, double eps) {
    const T *dy = c.tensor(0).data<T>(), *x = c.tensor(1).data<T>(), *weight = data_or_null<T>(c, 2);
    T* dx = c.out[0].data<T>();
    std::vector<double> dweight(static_cast<size_t>(n.groups * n.channels)), dbias(dweight.size());
    for (int64_t r = 0; r < n.rows; ++r, x += n.length(), dy += n.length(), dx += n.length()) {
        Moments m = row_moments(x, n.length(), eps);
        auto at = [&](int64_t i) { return static_cast<size_t>(n.first_channel(r) + i / n.inner); };
        auto pulled = [&](int64_t i) {
            return static_cast<double>(dy[i]) * (weight ? static_cast<double>(weight[at(i)]) : 1.0);
        };
        auto xhat = [&](int64_t i) { return (static_cast<double>(x[i]) - m.mean) * m.rstd; };
        double sum = 0, slope = 0;
        for (int64_t i = 0; i < n.length(); ++i) {
            sum += pulled(i);
            slope += pulled(i) * xhat(i);
            dweight[at(i)] += static_cast<double>(dy[i]) * xhat(i);
            dbias[at(i)] += static_cast<double>(dy[i]);
        }
        double count = static_cast<double>(n.length());
        for (int64_t i = 0; i < n.length(); ++i)
            dx[i] = static_cast<T>(m.rstd * (pulled(i) - sum / count - xhat(i) * slope / count));
    }
    for (size_t i = 0; i < dweight.size(); ++i) {
        c.out[1].data<T>()[i] = static_cast<T>(dweight[i]);
        c.out[2].data<T>()[i] = static_cast<T>(dbias[i]);
    }
}

// All elements of channel k, as offsets.
template <class F>
void over_channel(const ChannelNorm& n, int64_t k, F f) {
    for (int64_t o = 0; o < n.outer; ++o)
        for (int64_t i = 0; i < n.inner; ++i) f((o * n.channels + k) * n.inner + i);
}

template <class T>
Moments channel_moments(const ChannelNorm& n, const T* x, int64_t k, double eps) {
    return moments(n.count(), eps, [&](auto f) { over_channel(n, k, [&](int64_t at) { f(x[at]); }); });
}

bool layer_norm(const KernelCall& c) {
    Call call(c.op, c.args, c.dtype);
    RowNorm n = row_norm_of_last(c.tensor(0).shape(), static_cast<int64_t>(call.ints(1).size()));
    return with_float_sums(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        row_norm(n, c.tensor(0).data<T>(), data_or_null<T>(c, 2), data_or_null<T>(c, 3), call.number(4),
                 c.out[0].data<T>());
    });
}

bool layer_norm_grad(const KernelCall& c) {
    RowNorm n = row_norm_of_last(c.tensor(1).shape(), c.args[3].integer());
    return with_float_sums(c.out[0].dtype(),
                           [&](auto zero) { row_norm_grad<decltype(zero)>(n, c, c.args[4].number()); });
}

bool group_norm(const KernelCall& c) {
    RowNorm n = row_norm_of_groups(c.tensor(0).shape(), c.args[1].integer());
    return with_float_sums(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        row_norm(n, c.tensor(0).data<T>(), data_or_null<T>(c, 2), data_or_null<T>(c, 3), c.args[4].number(),
                 c.out[0].data<T>());
    });
}

bool group_norm_grad(const KernelCall& c) {
    RowNorm n = row_norm_of_groups(c.tensor(1).shape(), c.args[3].integer());
    return with_float_sums(c.out[0].dtype(),
                           [&](auto zero) { row_norm_grad<decltype(zero)>(n, c, c.args[4].number()); });
}

bool batch_norm_train(const KernelCall& c) {
    ChannelNorm n = channel_norm(c.tensor(0).shape());
    return with_float_sums(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T *x = c.tensor(0).data<T>(), *weight = data_or_null<T>(c, 1), *bias = data_or_null<T>(c, 2);
        for (int64_t k = 0; k < n.channels; ++k) {
            Moments m = channel_moments(n, x, k, c.args[3].number());
            double scale = m.rstd * (weight ? static_cast<double>(weight[k]) : 1.0);
            double shift = bias ? static_cast<double>(bias[k]) : 0.0;
            over_channel(n, k, [&](int64_t at) {
                c.out[0].data<T>()[at] = static_cast<T>((static_cast<double>(x[at]) - m.mean) * scale + shift);
            });
            c.out[1].data<T>()[k] = static_cast<T>(m.mean);
            c.out[2].data<T>()[k] = static_cast<T>(m.var);
        }
    });
}

bool batch_norm_grad(const KernelCall& c) {
    ChannelNorm n = channel_norm(c.tensor(1).shape());
    return with_float_sums(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T *dy = c.tensor(0).data<T>(), *x = c.tensor(1).data<T>(), *weight = data_or_null<T>(c, 2);
        for (int64_t k = 0; k < n.channels; ++k) {
            Moments m = channel_moments(n, x, k, c.args[3].number());
            double sum = 0, slope = 0, count = static_cast<double>(n.count());
            auto xhat = [&](int64_t at) { return (static_cast<double>(x[at]) - m.mean) * m.rstd; };
            over_channel(n, k, [&](int64_t at) {
                sum += static_cast<double>(dy[at]);
                slope += static_cast<double>(dy[at]) * xhat(at);
            });
            double scale = m.rstd * (weight ? static_cast<double>(weight[k]) : 1.0);
            over_channel(n, k, [&](int64_t at) {
                c.out[0].data<T>()[at] =
                    static_cast<T>(scale * (static_cast<double>(dy[at]) - sum / count - xhat(at) * slope / count));
            });
            c.out[1].data<T>()[k] = static_cast<T>(slope);
            c.out[2].data<T>()[k] = static_cast<T>(sum);
        }
    });
}

bool rms_norm(const KernelCall& c) {
    RowNorm n = row_norm_of_last(c.tensor(0).shape(), c.tensor(1).rank());
    return with_float_sums(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t r = 0; r < n.rows; ++r) {
            const T* x = c.tensor(0).data<T>() + r * n.length();
            double squares = 0;
            for (int64_t i = 0; i < n.length(); ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
            double rstd = 1 / std::sqrt(squares / static_cast<double>(n.length()) + c.args[2].number());
            for (int64_t i = 0; i < n.length(); ++i)
                c.out[0].data<T>()[r * n.length() + i] =
                    static_cast<T>(static_cast<double>(x[i]) * rstd * static_cast<double>(c.tensor(1).data<T>()[i]));
            c.out[1].data<T>()[r] = static_cast<T>(rstd);
        }
    });
}

}  // namespace

void add_norm_kernels(KernelTable& table) {
    table.plain("layer_norm", layer_norm);
    table.plain("layer_norm_grad", layer_norm_grad);
    table.plain("group_norm", group_norm);
    table.plain("group_norm_grad", group_norm_grad);
    table.plain("batch_norm_train", batch_norm_train);
    table.plain("batch_norm_grad", batch_norm_grad);
    table.plain("rms_norm", rms_norm);
    add_fast_norm_kernels(table);
}

}  // namespace lunaria::cpu
