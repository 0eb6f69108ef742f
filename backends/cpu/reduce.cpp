// CPU kernels: reductions over axes, plain.
// Sums are accumulated in double (integers in int64), in the order of core/loops/sum_order.h.
#include "backends/cpu/reduce_pattern.h"
#include "backends/cpu/reduce_views.h"
#include "backends/cpu/row_loops.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/nan.h"
#include "backends/cpu/wrapping.h"
#include "core/base/error.h"
#include "core/ops/reduce.h"

namespace lunaria::cpu {

namespace {

template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>, int64_t, std::conditional_t<kIsComplex<T>, std::complex<double>, double>>;

struct Sum {
    template <class A>
    static A identity() {
        return A(0);
    }
    template <class A>
    static A join(A a, A b) {
        return wrapping(a, b, [](auto x, auto y) { return x + y; });
    }
};
struct Product {
    template <class A>
    static A identity() {
        return A(1);
    }
    template <class A>
    static A join(A a, A b) {
        return wrapping(a, b, [](auto x, auto y) { return x * y; });
    }
};
struct Largest {
    template <class A>
    static A identity() {
        return std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity()
                                                    : std::numeric_limits<A>::lowest();
    }
    template <class A>
    static A join(A a, A b) {
        return b > a || is_nan(b) ? b : a;
    }
};
struct Smallest {
    template <class A>
    static A identity() {
        return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity()
                                                    : std::numeric_limits<A>::max();
    }
    template <class A>
    static A join(A a, A b) {
        return b < a || is_nan(b) ? b : a;
    }
};

// Reduces all elements of one result. Only sums of floats have leaves in the dtype of the elements.
template <class R, class A, class T>
A reduce_one(const T* in, const ReduceLayout& layout, int64_t start) {
    using Leaf = std::conditional_t<std::is_same_v<R, Sum> && std::is_floating_point_v<T>, T, A>;
    return layout.total(
        start, R::template identity<A>(), [in](int64_t at) { return static_cast<Leaf>(in[at]); },
        [](auto a, auto b) { return R::template join<decltype(a)>(a, b); });
}

// Sums and products, computed on the tensor converted to the result's dtype; integers in int64, then converted.
template <class R>
bool accumulate(const KernelCall& c, bool mean) {
    ReduceLayout layout = reduce_layout(c);
    DType to = c.out[0].dtype();
    bool whole = is_integer(to) || to == DType::boolean;
    bool from_whole = is_integer(c.tensor(0).dtype()) || c.tensor(0).dtype() == DType::boolean;
    Tensor x = whole && from_whole ? c.tensor(0) : c.tensor(0).cast(whole ? DType::i64 : to);
    Tensor result = whole && to != DType::i64 ? Tensor::empty(DType::i64, c.out[0].shape()) : c.out[0];
    visit_dtype(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        using A = Accumulator<T>;
        auto reduce = [&]<class Element, class Out, class Total>(const Element* in, Out* out, Total) {
            for (int64_t o = 0; o < layout.outputs; ++o) {
                Total total = reduce_one<R, Total>(in, layout, layout.start(o));
                if (mean) total = total / static_cast<Total>(static_cast<double>(layout.count));
                out[o] = static_cast<Out>(total);
            }
        };
        if constexpr (kIsComplex<T> && std::is_same_v<R, Sum>) {
            using Part = typename T::value_type;
            layout = layout.of_parts();
            reduce(static_cast<const Part*>(x.raw()), static_cast<Part*>(result.raw()), double{});
        } else if constexpr (std::is_arithmetic_v<T> || kIsComplex<T>) {
            using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
            reduce(x.data<T>(), result.data<Out>(), A{});
        }
    });
    if (!result.same_body(c.out[0])) copy_elements(result, c.out[0]);
    return true;
}

bool sum_plain(const KernelCall& c) { return accumulate<Sum>(c, false); }
// The sum with NaN replaced by 0.
bool nansum_plain(const KernelCall& c) {
    static const Op &sum = registry().get("sum"), &isnan = registry().get("isnan"), &where = registry().get("where");
    Value x(c.tensor(0));
    if (is_float(c.tensor(0).dtype())) x = run(where, {run(isnan, {x}), Value(0.0), x});
    copy_elements(run(sum, {x, c.args[1], c.args[2], c.args[3]}).tensor(), c.out[0]);
    return true;
}
bool mean_plain(const KernelCall& c) { return accumulate<Sum>(c, true); }
bool prod_plain(const KernelCall& c) { return accumulate<Product>(c, false); }

template <class R>
bool extremum_plain(const KernelCall& c) {
    ReduceLayout layout = reduce_layout(c);
    visit_dtype(c.tensor(0).dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>) {
            T* out = c.out[0].data<T>();
            for (int64_t o = 0; o < layout.outputs; ++o)
                out[o] = without_sign_of_zero(reduce_one<R, T>(c.tensor(0).data<T>(), layout, layout.start(o)));
        }
    });
    return true;
}

// The index of the first best element within the line, counting along the reduced axes; NaN is best.
template <class R, class T>
int64_t best_index(const T* in, const ReduceLayout& layout, int64_t start, T& best) {
    int64_t at = 0, seen = 0;
    best = in[start];
    layout.runs(start, [&](int64_t offset, int64_t n, int64_t stride) {
        for (int64_t j = 0; j < n; ++j, ++seen) {
            T x = in[offset + j * stride];
            bool better = R::template join<T>(best, x) != best || (is_nan(x) && !is_nan(best));
            if (better && !is_nan(best)) {
                best = x;
                at = seen;
            }
        }
    });
    return at;
}

template <class R>
bool arg_plain(const KernelCall& c) {
    ReduceLayout layout = reduce_layout(c);
    visit_dtype(c.tensor(0).dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>) {
            T best;
            for (int64_t o = 0; o < layout.outputs; ++o)
                c.out[0].data<int64_t>()[o] = best_index<R>(c.tensor(0).data<T>(), layout, layout.start(o), best);
        }
    });
    return true;
}

template <class R>
bool with_index_plain(const KernelCall& c) {
    if (c.out.size() == 1) return extremum_plain<R>(c);
    ReduceLayout layout = reduce_layout(c);
    visit_dtype(c.tensor(0).dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>)
            for (int64_t o = 0; o < layout.outputs; ++o)
                c.out[1].data<int64_t>()[o] =
                    best_index<R>(c.tensor(0).data<T>(), layout, layout.start(o), c.out[0].data<T>()[o]);
    });
    return true;
}

template <bool all>
bool truth_plain(const KernelCall& c) {
    ReduceLayout layout = reduce_layout(c);
    visit_dtype(c.tensor(0).dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T* in = c.tensor(0).data<T>();
        for (int64_t o = 0; o < layout.outputs; ++o) {
            bool result = all;
            layout.runs(layout.start(o), [&](int64_t offset, int64_t n, int64_t stride) {
                for (int64_t j = 0; j < n && result == all; ++j) {
                    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
                        result = static_cast<float>(in[offset + j * stride]) != 0.0f;
                    else
                        result = in[offset + j * stride] != T(0);
                }
            });
            c.out[0].data<bool>()[o] = result;
        }
    });
    return true;
}

// Two passes: the textbook difference of mean square and squared mean cancels when the mean is large.
template <bool root>
bool var_plain(const KernelCall& c) {
    ReduceLayout layout = reduce_layout(c);
    double freedom = static_cast<double>(layout.count) - c.args[2].number();
    return with_real(c.tensor(0).dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* in = c.tensor(0).data<T>();
        for (int64_t o = 0; o < layout.outputs; ++o) {
            int64_t start = layout.start(o);
            double mean = reduce_one<Sum, double>(in, layout, start) / static_cast<double>(layout.count);
            auto squares_in = [&](auto wide) {
                using S = decltype(wide);
                const auto square = [in, centre = static_cast<T>(mean)](int64_t at) {
                    const S d = static_cast<S>(in[at] - centre);
                    return d * d;
                };
                return layout.total(start, 0.0, square, [](auto a, auto b) { return a + b; });
            };
            // The squares of large floats leave their range.
            double squares = squares_in(T());
            if (!std::isfinite(squares)) squares = squares_in(double());
            double var = squares / std::max(freedom, 0.0);
            c.out[0].data<T>()[o] = static_cast<T>(root ? std::sqrt(var) : var);
        }
        return true;
    });
}

// The moduli of complex numbers; other numbers themselves.
Tensor moduli(const Tensor& x) {
    if (!is_complex(x.dtype())) return x;
    Tensor result = Tensor::empty(part_of(x.dtype()), x.shape());
    auto fill = [&]<class T>(T) {
        std::transform(x.data<std::complex<T>>(), x.data<std::complex<T>>() + x.size(), result.data<T>(),
                       [](std::complex<T> z) { return std::abs(z); });
    };
    x.dtype() == DType::c64 ? fill(float()) : fill(double());
    return result;
}

}  // namespace

bool vector_norm_plain(const KernelCall& c) { return vector_norm_of(c, nullptr); }

bool vector_norm_of(const KernelCall& c, const uint8_t* wanted) {
    ReduceLayout layout = reduce_layout(c, 2);
    double order = norm_order(c.args[1]);
    Tensor x = moduli(c.tensor(0)).cast(c.out[0].dtype());
    return with_real(x.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* in = x.data<T>();
        auto magnitude = [in](int64_t at) { return std::abs(static_cast<double>(in[at])); };
        auto sum = [&](int64_t start, auto of) {
            return layout.total(
                start, 0.0, [&](int64_t at) { return of(magnitude(at)); }, Sum::join<double>);
        };
        for (int64_t o = 0; o < layout.outputs; ++o) {
            if (wanted && !wanted[o]) continue;
            int64_t start = layout.start(o);
            double largest = layout.total(start, 0.0, magnitude, Largest::join<double>), norm = largest;
            if (order == -std::numeric_limits<double>::infinity()) {
                norm = layout.total(start, std::numeric_limits<double>::infinity(), magnitude, Smallest::join<double>);
            } else if (order == 0) {
                norm = sum(start, [](double a) { return a != 0 ? 1.0 : 0.0; });
            } else if (!std::isinf(order) && largest > 0 && std::isfinite(largest)) {
                double scale = sizeof(T) == 8 || order != 2 ? largest : 1.0;
                if (order == 2)
                    norm = scale * std::sqrt(sum(start, [=](double a) { return a / scale * (a / scale); }));
                else if (order == 1)
                    norm = sum(start, [](double a) { return a; });
                else
                    norm =
                        scale * std::pow(sum(start, [=](double a) { return std::pow(a / scale, order); }), 1 / order);
            }
            c.out[0].data<T>()[o] = static_cast<T>(norm);
        }
        return true;
    });
}

void add_reduce_kernels(KernelTable& table) {
    table.plain("sum", sum_plain);
    table.plain("nansum", nansum_plain);
    table.plain("mean", mean_plain);
    table.plain("prod", prod_plain);
    table.plain("amax", extremum_plain<Largest>);
    table.plain("amin", extremum_plain<Smallest>);
    table.plain("max", with_index_plain<Largest>);
    table.plain("min", with_index_plain<Smallest>);
    table.plain("argmax", arg_plain<Largest>);
    table.plain("argmin", arg_plain<Smallest>);
    table.plain("all", truth_plain<true>);
    table.plain("any", truth_plain<false>);
    table.plain("var", var_plain<false>);
    table.plain("std", var_plain<true>);
    table.plain("vector_norm", vector_norm_plain);
    add_scan_kernels(table);
    add_view_reduce_kernels(table);
    add_fast_reduce_kernels(table);
}

}  // namespace lunaria::cpu
