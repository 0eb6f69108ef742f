// CPU kernels: scans along an axis.
// All lines that lie side by side in memory advance together, so that the inner loop is over neighbours.
#include <cmath>
#include <complex>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/row_loops.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                   std::conditional_t<std::is_same_v<T, Complex64>, std::complex<double>, double>>;

// Calls step(position in the line, its offset, state of the line) in the order of the scan.
template <class State, class Step>
void scan(const AxisView& view, bool reverse, State initial, Step step) {
    std::vector<State> states(static_cast<size_t>(view.inner));
    for (int64_t o = 0; o < view.outer; ++o) {
        std::fill(states.begin(), states.end(), initial);
        for (int64_t j = 0; j < view.n; ++j) {
            int64_t k = reverse ? view.n - 1 - j : j;
            int64_t offset = (o * view.n + k) * view.inner;
            for (int64_t i = 0; i < view.inner; ++i) step(k, offset + i, states[static_cast<size_t>(i)]);
        }
    }
}

// Sums and products run in double (integers in 64 bits, where they wrap).
template <bool product>
bool running(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    bool exclusive = !product && c.args[3].boolean(), reverse = !product && c.args[4].boolean();
    // Narrow integer results are those of 64 bits, cut off.
    DType to = c.out[0].dtype(), in = is_integer(to) || to == DType::boolean ? DType::i64 : to;
    Tensor x = c.tensor(0).cast(in);
    Tensor y = in == to ? c.out[0] : Tensor::empty(in, c.out[0].shape());
    visit_dtype(in, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, Complex64>) {
            using R = Running<T>;
            const T* from = x.data<T>();
            T* out = y.data<T>();
            scan(view, reverse, R(product ? 1 : 0), [&](int64_t, int64_t at, R& state) {
                R before = state;
                if constexpr (product)
                    state *= static_cast<R>(from[at]);
                else
                    state += static_cast<R>(from[at]);
                out[at] = static_cast<T>(exclusive ? before : state);
            });
        }
    });
    if (in != to) copy_elements(y, c.out[0]);
    return true;
}

// Lines along the last axis: four at a time, because each addition waits for the one before.
template <bool product, class T>
void run_lines(const T* in, T* out, int64_t lines, int64_t n, bool exclusive, bool reverse) {
    constexpr int64_t kLines = 4;
    double initial = product ? 1 : 0;
    auto step = [&](double& state, int64_t at) {
        double before = state, x = static_cast<double>(in[at]);
        state = product ? state * x : state + x;
        out[at] = static_cast<T>(exclusive ? before : state);
    };
    int64_t l = 0;
    for (; l + kLines <= lines; l += kLines) {
        double a = initial, b = initial, c = initial, d = initial;
        for (int64_t j = 0; j < n; ++j) {
            int64_t at = l * n + (reverse ? n - 1 - j : j);
            step(a, at);
            step(b, at + n);
            step(c, at + 2 * n);
            step(d, at + 3 * n);
        }
    }
    for (; l < lines; ++l) {
        double a = initial;
        for (int64_t j = 0; j < n; ++j) step(a, l * n + (reverse ? n - 1 - j : j));
    }
}

template <bool product>
bool running_fast(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    if (view.inner != 1 || c.tensor(0).dtype() != c.out[0].dtype()) return false;
    bool exclusive = !product && c.args[3].boolean(), reverse = !product && c.args[4].boolean();
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
        parallel_for(view.outer, worthwhile_rows(view.n, 2), 4, [&](int64_t begin, int64_t end) {
            run_lines<product>(c.tensor(0).data<T>() + begin * view.n, c.out[0].data<T>() + begin * view.n, end - begin,
                               view.n, exclusive, reverse);
        });
        return true;
    });
}

template <bool largest>
bool running_extremum(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    visit_dtype(c.out[0].dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>) {
            const T* in = c.tensor(0).data<T>();
            T* values = c.out[0].data<T>();
            int64_t* indices = c.out[1].data<int64_t>();
            scan(view, false, int64_t{-1}, [&](int64_t k, int64_t at, int64_t& best) {
                int64_t line = at - k * view.inner;
                bool better = best < 0;
                if (!better) {
                    T x = in[at], y = in[line + best * view.inner];
                    better = x != x || (y == y && (largest ? x >= y : x <= y));
                }
                if (better) best = k;
                values[at] = in[line + best * view.inner];
                indices[at] = best;
            });
        }
    });
    return true;
}

struct LogSum {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;  // log of the sum: largest + log(sum)
};

bool logcumsumexp(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    visit_dtype(c.out[0].dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_floating_point_v<T>) {
            const T* in = c.tensor(0).data<T>();
            T* out = c.out[0].data<T>();
            scan(view, false, LogSum{}, [&](int64_t, int64_t at, LogSum& s) {
                double x = static_cast<double>(in[at]);
                if (std::isnan(x)) s.largest = x;
                if (x > s.largest) {
                    s.sum = std::isinf(x) ? 1 : s.sum * std::exp(s.largest - x) + 1;
                    s.largest = x;
                } else if (std::isfinite(s.largest)) {
                    s.sum += std::exp(x - s.largest);
                }
                out[at] = static_cast<T>(std::isfinite(s.largest) ? s.largest + std::log(s.sum) : s.largest);
            });
        }
    });
    return true;
}

bool linear_recurrence(const KernelCall& c) {
    AxisView view = axis_view(c, 2);
    bool reverse = c.args[3].boolean();
    visit_dtype(c.out[0].dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_floating_point_v<T>) {
            const T *a = c.tensor(0).data<T>(), *b = c.tensor(1).data<T>();
            T* out = c.out[0].data<T>();
            int64_t first = reverse ? view.n - 1 : 0;
            scan(view, reverse, 0.0, [&](int64_t k, int64_t at, double& s) {
                // The first state has no predecessor: its weight is not looked at, it may be anything.
                double weight = k == first ? 0 : static_cast<double>(reverse ? a[at + view.inner] : a[at]);
                s = static_cast<double>(b[at]) + (k == first ? 0 : weight * s);
                out[at] = static_cast<T>(s);
            });
        }
    });
    return true;
}

}  // namespace

void add_scan_kernels(KernelTable& table) {
    table.plain("cumsum", running<false>);
    table.plain("cumprod", running<true>);
    table.fast("cumsum", running_fast<false>);
    table.fast("cumprod", running_fast<true>);
    table.plain("cummax", running_extremum<true>);
    table.plain("cummin", running_extremum<false>);
    table.plain("logcumsumexp", logcumsumexp);
    table.plain("linear_recurrence", linear_recurrence);
}

}  // namespace lunaria::cpu
