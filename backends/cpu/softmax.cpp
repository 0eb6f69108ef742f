// CPU kernels: softmax and its kin, plain.
// Every exponential is taken relative to the largest element of its line, so that none overflows and the sum is at
// least 1. A line of -inf has no distribution: softmax gives NaN there, as its definition does, logsumexp gives -inf.
#include <cmath>
#include <limits>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/row_loops.h"

namespace lunaria::cpu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The largest element of a line; NaN if the line has one.
template <class T>
double largest_of(const T* line, int64_t n, int64_t stride) {
    double largest = -kInf;
    for (int64_t k = 0; k < n; ++k) {
        double x = static_cast<double>(line[k * stride]);
        if (x > largest || std::isnan(x)) largest = x;
        if (std::isnan(largest)) break;
    }
    return largest;
}

template <bool logarithm>
bool softmax_plain(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    Tensor x = c.tensor(0).cast(c.out[0].dtype());
    return with_real(x.dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t l = 0; l < view.lines(); ++l) {
            const T* in = x.data<T>() + view.start(l);
            T* out = c.out[0].data<T>() + view.start(l);
            double largest = largest_of(in, view.n, view.inner), sum = 0;
            for (int64_t k = 0; k < view.n; ++k) sum += std::exp(static_cast<double>(in[k * view.inner]) - largest);
            for (int64_t k = 0; k < view.n; ++k) {
                double shifted = static_cast<double>(in[k * view.inner]) - largest;
                out[k * view.inner] = static_cast<T>(logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
            }
        }
        return true;
    });
}

template <bool logarithm>
bool softmax_grad_plain(const KernelCall& c) {
    AxisView view = axis_view(c, 2);
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t l = 0; l < view.lines(); ++l) {
            const T *d = c.tensor(0).data<T>() + view.start(l), *y = c.tensor(1).data<T>() + view.start(l);
            T* out = c.out[0].data<T>() + view.start(l);
            double sum = 0;
            for (int64_t k = 0; k < view.n; ++k) {
                double dk = static_cast<double>(d[k * view.inner]);
                sum += logarithm ? dk : dk * static_cast<double>(y[k * view.inner]);
            }
            for (int64_t k = 0; k < view.n; ++k) {
                double dk = static_cast<double>(d[k * view.inner]), yk = static_cast<double>(y[k * view.inner]);
                out[k * view.inner] = static_cast<T>(logarithm ? dk - std::exp(yk) * sum : yk * (dk - sum));
            }
        }
        return true;
    });
}

bool logsumexp_plain(const KernelCall& c) {
    ReduceLayout layout = reduce_layout(c);
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* in = c.tensor(0).data<T>();
        for (int64_t o = 0; o < layout.outputs; ++o) {
            int64_t start = layout.start(o);
            double largest = -kInf, sum = 0;
            layout.runs(start, [&](int64_t offset, int64_t n, int64_t stride) {
                double run = largest_of(in + offset, n, stride);
                if (run > largest || std::isnan(run)) largest = run;
            });
            if (std::isfinite(largest))
                layout.runs(start, [&](int64_t offset, int64_t n, int64_t stride) {
                    for (int64_t j = 0; j < n; ++j)
                        sum += std::exp(static_cast<double>(in[offset + j * stride]) - largest);
                });
            c.out[0].data<T>()[o] = static_cast<T>(std::isfinite(largest) ? largest + std::log(sum) : largest);
        }
        return true;
    });
}

}  // namespace

void add_softmax_kernels(KernelTable& table) {
    table.plain("softmax", softmax_plain<false>);
    table.plain("log_softmax", softmax_plain<true>);
    table.plain("softmax_grad", softmax_grad_plain<false>);
    table.plain("log_softmax_grad", softmax_grad_plain<true>);
    table.plain("logsumexp", logsumexp_plain);
    add_fast_softmax_kernels(table);
}

}  // namespace lunaria::cpu
