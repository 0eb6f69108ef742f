// CPU kernels: scans along an axis.
// All lines that are adjacent in memory advance together, so that the inner loop is over neighbours.
#include <cmath>
#include <complex>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/row_loops.h"
#include "core/base/interrupt.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                   std::conditional_t<kIsComplex<T>, std::complex<double>, double>>;

// Elements between two looks at an interrupt.
constexpr int64_t kBlock = 1 << 20;

// Calls step(position in the line, its offset, state of the line) in the order of the scan.
template <class State, class Step>
void scan(const AxisView& view, bool reverse, State initial, Step step) {
    // An empty axis beside a large one: a great number of empty lines.
    if (view.n == 0 || view.inner == 0) return;
    std::vector<State> states(static_cast<size_t>(view.inner));
    for (int64_t o = 0; o < view.outer; ++o) {
        std::fill(states.begin(), states.end(), initial);
        for (int64_t j = 0; j < view.n; ++j) {
            if ((j + 1) * view.inner % kBlock < view.inner) poll_interrupt();
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
    // Results in narrow integers are those of 64 bits, truncated.
    DType to = c.out[0].dtype(), in = is_integer(to) || to == DType::boolean ? DType::i64 : to;
    Tensor x = c.tensor(0).cast(in);
    Tensor y = in == to ? c.out[0] : Tensor::empty(in, c.out[0].shape());
    visit_dtype(in, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T> || kIsComplex<T>) {
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

// Lines along the last axis: four lines of floats at a time, because each addition waits for the one before.
template <bool product, class T, class Out>
void run_lines(const T* in, Out* out, int64_t lines, int64_t n, bool exclusive, bool reverse) {
    using R = Running<Out>;
    constexpr int64_t kLines = std::is_integral_v<R> ? 1 : 4;
    const R initial(product ? 1 : 0);
    auto step = [&](R& state, int64_t at) {
        const R before = state, x = static_cast<R>(in[at]);
        state = product ? state * x : state + x;
        out[at] = static_cast<Out>(exclusive ? before : state);
    };
    auto in_blocks = [&](auto one) {
        for (int64_t begin = 0; begin < n; begin += kBlock) {
            if (begin > 0) poll_interrupt();
            for (int64_t j = begin, end = std::min(n, begin + kBlock); j < end; ++j) one(reverse ? n - 1 - j : j);
        }
    };
    int64_t l = 0;
    for (; kLines > 1 && l + kLines <= lines; l += kLines) {
        R a = initial, b = initial, c = initial, d = initial;
        in_blocks([&](int64_t j) {
            const int64_t at = l * n + j;
            step(a, at);
            step(b, at + n);
            step(c, at + 2 * n);
            step(d, at + 3 * n);
        });
    }
    const bool plain = !exclusive && !reverse;
    for (; l < lines; ++l) {
        R a = initial;
        const T* from = in + l * n;
        Out* to = out + l * n;
        if (!plain) {
            in_blocks([&](int64_t j) { step(a, l * n + j); });
            continue;
        }
        for (int64_t begin = 0; begin < n; begin += kBlock) {
            if (begin > 0) poll_interrupt();
            for (int64_t j = begin, end = std::min(n, begin + kBlock); j < end; ++j) {
                a = product ? a * static_cast<R>(from[j]) : a + static_cast<R>(from[j]);
                to[j] = static_cast<Out>(a);
            }
        }
    }
}

template <bool product>
bool running_fast(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    const DType from = c.tensor(0).dtype(), to = c.out[0].dtype();
    if (view.inner != 1 || (from != to && to != DType::i64)) return false;
    bool exclusive = !product && c.args[3].boolean(), reverse = !product && c.args[4].boolean();
    auto run = [&](auto in, auto out) {
        using T = decltype(in);
        using Out = decltype(out);
        parallel_for(view.outer, worthwhile_rows(view.n, 2), 4, [&](int64_t begin, int64_t end) {
            run_lines<product>(c.tensor(0).data<T>() + begin * view.n, c.out[0].data<Out>() + begin * view.n,
                               end - begin, view.n, exclusive, reverse);
        });
        return true;
    };
    if (to != DType::i64) return with_real(to, [&](auto zero) { return run(zero, zero); });
    bool done = false;
    visit_dtype(from, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>) done = run(T(), int64_t());
    });
    return done;
}

// Calls f(view, elements, results, their places) for a type that has an order.
template <class F>
bool with_extremum(const KernelCall& c, F f) {
    visit_dtype(c.out[0].dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>)
            f(axis_view(c, 1), c.tensor(0).data<T>(), c.out[0].data<T>(), c.out[1].data<int64_t>());
    });
    return true;
}

template <bool largest>
bool running_extremum(const KernelCall& c) {
    return with_extremum(c, []<class T>(const AxisView& view, const T* in, T* values, int64_t* indices) {
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
    });
}

// Along the last axis one line after the other: the best element so far stays in a register, and new ones are rare.
template <bool largest, class T>
void best_of_line(const T* in, T* values, int64_t* indices, int64_t n) {
    T best = in[0];
    int64_t at = 0;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
        if (begin > 0) poll_interrupt();
        int64_t j = begin;
        const int64_t end = std::min(n, begin + kBlock);
        // Not worse includes NaN, after which only NaN is better.
        for (; j < end && best == best; ++j) {
            const T x = in[j];
            if (!(largest ? x < best : x > best)) {
                best = x;
                at = j;
            }
            values[j] = best;
            indices[j] = at;
        }
        for (; j < end; ++j) {
            if (in[j] != in[j]) at = j;
            values[j] = best;
            indices[j] = at;
        }
    }
}

// Along another axis row after row, each from the row before.
template <bool largest, class T>
void best_of_columns(const T* in, T* values, int64_t* indices, int64_t n, int64_t width) {
    std::copy_n(in, width, values);
    std::fill_n(indices, width, int64_t{0});
    for (int64_t k = 1; k < n; ++k) {
        if ((k + 1) * width % kBlock < width) poll_interrupt();
        const T *x = in + k * width, *best = values + (k - 1) * width;
        const int64_t* at = indices + (k - 1) * width;
        T* new_best = values + k * width;
        int64_t* new_at = indices + k * width;
        for (int64_t i = 0; i < width; ++i) {
            const bool better = (x[i] != x[i]) | ((best[i] == best[i]) & (largest ? x[i] >= best[i] : x[i] <= best[i]));
            new_best[i] = better ? x[i] : best[i];
            new_at[i] = better ? k : at[i];
        }
    }
}

template <bool largest>
bool running_extremum_fast(const KernelCall& c) {
    return with_extremum(c, []<class T>(const AxisView& view, const T* in, T* values, int64_t* indices) {
        const int64_t size = view.n * view.inner;
        parallel_for(size > 0 ? view.outer : 0, worthwhile_rows(size, 2), [&](int64_t begin, int64_t end) {
            for (int64_t o = begin; o < end; ++o) {
                const int64_t from = o * size;
                if (view.inner == 1)
                    best_of_line<largest>(in + from, values + from, indices + from, view.n);
                else
                    best_of_columns<largest>(in + from, values + from, indices + from, view.n, view.inner);
            }
        });
    });
}

struct LogSum {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;  // log of the sum: largest + log(sum)
};

bool logcumsumexp(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    return with_real(c.out[0].dtype(), [&](auto zero) {
        using T = decltype(zero);
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
        return true;
    });
}

bool linear_recurrence(const KernelCall& c) {
    AxisView view = axis_view(c, 2);
    bool reverse = c.args[3].boolean();
    auto run = [&](auto zero) {
        using T = decltype(zero);
        using State = Running<T>;
        const T *a = c.tensor(0).data<T>(), *b = c.tensor(1).data<T>();
        T* out = c.out[0].data<T>();
        int64_t first = reverse ? view.n - 1 : 0;
        scan(view, reverse, State(0), [&](int64_t k, int64_t at, State& s) {
            // The first state has no predecessor: its weight is not read, since it may have any value.
            s = k == first ? static_cast<State>(b[at])
                           : static_cast<State>(b[at]) + static_cast<State>(reverse ? a[at + view.inner] : a[at]) * s;
            out[at] = static_cast<T>(s);
        });
        return true;
    };
    const DType to = c.out[0].dtype();
    if (is_complex(to)) return to == DType::c64 ? run(Complex64()) : run(Complex128());
    return with_real(to, run);
}

double times_power_of_2(double x, int64_t e) {
    constexpr int64_t kBeyond = 5000;  // the product so far is 0 or infinite
    return std::ldexp(x, static_cast<int>(std::clamp(e, -kBeyond, kBeyond)));
}
Complex128 times_power_of_2(Complex128 z, int64_t e) {
    return {times_power_of_2(z.real(), e), times_power_of_2(z.imag(), e)};
}
double magnitude(double x) { return std::abs(x); }
double magnitude(Complex128 z) { return std::max(std::abs(z.real()), std::abs(z.imag())); }

// m 2^e, since products of many numbers leave the range of doubles on the way to a result within it.
template <class R>
struct Scaled {
    R m;
    int64_t e = 0;

    explicit Scaled(R x) : m(x) { bound(); }
    Scaled& operator*=(const Scaled& by) {
        m *= by.m;
        e += by.e;
        bound();
        return *this;
    }
    Scaled& operator+=(Scaled other) {
        if (magnitude(other.m) == 0) return *this;
        if (magnitude(m) == 0) return *this = other;
        normalise();
        other.normalise();
        if (e < other.e) std::swap(*this, other);
        m += times_power_of_2(other.m, other.e - e);
        return *this;
    }
    R value() const { return times_power_of_2(m, e); }

  private:
    // Bounds the factors so that the product of two does not overflow.
    void bound() {
        if (const double size = magnitude(m); size > 0x1p400 || size < 0x1p-400) normalise();
    }
    void normalise() {
        const double size = magnitude(m);
        if (size == 0 || !std::isfinite(size)) return;
        int power = 0;
        std::frexp(size, &power);
        m = times_power_of_2(m, -power);
        e += power;
    }
};

// d x[i] = (product of the elements before i) * t[i], with t[i] = d[i] + x[i+1] t[i+1].
bool cumprod_grad(const KernelCall& c) {
    const AxisView view = axis_view(c, 2);
    auto run = [&](auto zero) {
        using T = decltype(zero);
        using R = Running<T>;
        const int64_t block = view.n * view.inner;
        if (block == 0) return true;
        parallel_for(view.outer, worthwhile_rows(block, 8), [&](int64_t begin, int64_t end) {
            std::vector<Scaled<R>> sums(static_cast<size_t>(block), Scaled<R>(R(0)));
            std::vector<Scaled<R>> before(static_cast<size_t>(view.inner), Scaled<R>(R(1)));
            for (int64_t o = begin; o < end; ++o) {
                const T *d = c.tensor(0).data<T>() + o * block, *x = c.tensor(1).data<T>() + o * block;
                T* out = c.out[0].data<T>() + o * block;
                for (int64_t i = block; i-- > 0;) {
                    if (i % kBlock == 0) poll_interrupt();
                    Scaled<R>& sum = sums[static_cast<size_t>(i)];
                    sum = Scaled<R>(R(0));
                    if (i + view.inner < block) {
                        sum = sums[static_cast<size_t>(i + view.inner)];
                        sum *= Scaled<R>(static_cast<R>(x[i + view.inner]));
                    }
                    sum += Scaled<R>(static_cast<R>(d[i]));
                }
                std::fill(before.begin(), before.end(), Scaled<R>(R(1)));
                for (int64_t i = 0; i < block; ++i) {
                    if (i % kBlock == 0) poll_interrupt();
                    Scaled<R>& product = before[static_cast<size_t>(i % view.inner)];
                    Scaled<R> element = sums[static_cast<size_t>(i)];
                    element *= product;
                    out[i] = static_cast<T>(element.value());
                    product *= Scaled<R>(static_cast<R>(x[i]));
                }
            }
        });
        return true;
    };
    const DType to = c.out[0].dtype();
    if (is_complex(to)) return to == DType::c64 ? run(Complex64()) : run(Complex128());
    return with_real(to, run);
}

}  // namespace

void add_scan_kernels(KernelTable& table) {
    table.plain("cumsum", running<false>);
    table.plain("cumprod", running<true>);
    table.fast("cumsum", running_fast<false>);
    table.fast("cumprod", running_fast<true>);
    table.plain("cummax", running_extremum<true>);
    table.plain("cummin", running_extremum<false>);
    table.fast("cummax", running_extremum_fast<true>);
    table.fast("cummin", running_extremum_fast<false>);
    table.plain("logcumsumexp", logcumsumexp);
    table.plain("linear_recurrence", linear_recurrence);
    table.plain("cumprod_grad", cumprod_grad);
}

}  // namespace lunaria::cpu
