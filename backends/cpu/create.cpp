// CPU kernels: constructors, ranges, windows.
#include <cmath>
#include <cstring>
#include <numbers>

#include "backends/cpu/kernel_table.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"

namespace lunaria::cpu {

namespace {

Tensor fill_element(const KernelCall& call, const Value& v) {
    DType dtype = call.out[0].dtype();
    if (v.is_tensor()) return v.tensor().reshaped({}).cast(dtype);
    if (v.kind() == Value::Kind::integer) return Tensor::scalar(v.integer()).cast(dtype);
    return Tensor::scalar(dtype, v.kind() == Value::Kind::boolean ? (v.boolean() ? 1.0 : 0.0) : v.number());
}

bool fill_with(Tensor& out, const Tensor& element) {
    Strides still;
    still.resize(out.rank(), 0);
    if (out.size()) copy_elements(element.view(out.shape(), still), out);
    return true;
}

bool fill(const KernelCall& call) { return fill_with(call.out[0], fill_element(call, call.args[1])); }

bool zeros(const KernelCall& call) {
    constexpr size_t kSmall = 1 << 16;
    Tensor& out = call.out[0];
    if (out.nbytes() > kSmall) return fill_with(out, Tensor::zeros(out.dtype(), {}));
    if (out.nbytes()) std::memset(out.raw(), 0, out.nbytes());
    return true;
}

bool ones(const KernelCall& call) { return fill_with(call.out[0], Tensor::scalar(call.out[0].dtype(), 1)); }

// out[i] = element(i), computed in `Wide` and converted.
template <class Wide, class F>
bool generate(const KernelCall& call, F element) {
    Tensor& out = call.out[0];
    if (out.dtype() == dtype_of<Wide>()) {
        Wide* const to = out.data<Wide>();
        for_elements(out.size(), [&](int64_t i) { to[i] = element(i); });
        return true;
    }
    Tensor wide = Tensor::empty(dtype_of<Wide>(), out.shape());
    Wide* const to = wide.data<Wide>();
    for_elements(out.size(), [&](int64_t i) { to[i] = element(i); });
    copy_elements(wide, out);
    return true;
}

bool arange(const KernelCall& call) {
    Value start = call.has(1) ? call.args[0] : Value(0), step = call.args[2];
    if (start.kind() == Value::Kind::integer && step.kind() == Value::Kind::integer) {
        int64_t first = start.integer(), pace = step.integer();
        // The last element is in range, whatever the product is for a float stop.
        return generate<int64_t>(call, [=](int64_t i) {
            return static_cast<int64_t>(static_cast<uint64_t>(first) +
                                        static_cast<uint64_t>(i) * static_cast<uint64_t>(pace));
        });
    }
    double first = start.number(), pace = step.number();
    return generate<double>(call, [=](int64_t i) { return first + static_cast<double>(i) * pace; });
}

// Computed from both ends, so that both are exact.
double between(double start, double stop, int64_t steps, int64_t i) {
    if (steps == 1) return start;
    double step = (stop - start) / static_cast<double>(steps - 1);
    return i < steps / 2 ? start + step * static_cast<double>(i) : stop - step * static_cast<double>(steps - 1 - i);
}

bool linspace(const KernelCall& call) {
    double start = call.args[0].number(), stop = call.args[1].number();
    int64_t steps = call.args[2].integer();
    return generate<double>(call, [=](int64_t i) { return between(start, stop, steps, i); });
}

bool logspace(const KernelCall& call) {
    double start = call.args[0].number(), stop = call.args[1].number(), base = call.args[3].number();
    int64_t steps = call.args[2].integer();
    return generate<double>(call, [=](int64_t i) { return std::pow(base, between(start, stop, steps, i)); });
}

bool eye(const KernelCall& call) {
    Tensor& out = call.out[0];
    if (out.size() == 0) return true;
    std::memset(out.raw(), 0, out.nbytes());
    int64_t diagonal = std::min(out.dim(0), out.dim(1));
    Strides still{0};
    copy_elements(Tensor::scalar(out.dtype(), 1).view({diagonal}, still), out.view({diagonal}, {out.dim(1) + 1}));
    return true;
}

template <bool kLower>
bool triangle_indices(const KernelCall& call) {
    int64_t rows = call.args[0].integer(), columns = call.args[1].integer();
    int64_t offset = std::clamp(call.args[2].integer(), -rows - 1, columns + 1);
    auto from = [=](int64_t row) { return kLower ? 0 : std::clamp<int64_t>(row + offset, 0, columns); };
    auto to = [=](int64_t row) { return kLower ? std::clamp<int64_t>(row + offset + 1, 0, columns) : columns; };
    // Only rows with an element in the triangle are visited; if there are too many for memory, that is reported first.
    int64_t first_row = kLower ? std::clamp<int64_t>(-offset, 0, rows) : 0;
    int64_t last_row = kLower ? rows : std::clamp<int64_t>(columns - offset, 0, rows);
    if (columns == 0) last_row = first_row;
    if (last_row - first_row > (int64_t{1} << 26)) Tensor::empty(DType::i64, {2, last_row - first_row});
    int64_t count = 0;
    for (int64_t row = first_row; row < last_row; ++row) count += to(row) - from(row);
    Tensor pairs = Tensor::empty(DType::i64, {2, count});
    int64_t *first = pairs.data<int64_t>(), *second = first + count;
    for (int64_t row = first_row; row < last_row; ++row)
        for (int64_t column = from(row); column < to(row); ++column) {
            *first++ = row;
            *second++ = column;
        }
    DType dtype = call.has(3) ? call.args[3].dtype() : DType::i64;
    call.out[0] = pairs.cast(dtype);
    return true;
}

// Modified Bessel function of the first kind, order 0, by its power series, which converges everywhere.
double bessel_i0(double x) {
    double sum = 1, term = 1, quarter = x * x / 4;
    for (int k = 1; k < 1000 && term > sum * 1e-17; ++k) {
        term *= quarter / (static_cast<double>(k) * k);
        sum += term;
    }
    return sum;
}

// `shape` maps a point of [0, 1] to the window's value.
template <class F>
bool window(const KernelCall& call, F shape) {
    int64_t length = call.args[0].integer();
    double last = static_cast<double>(call.args[1].boolean() ? length : length - 1);
    return generate<double>(call, [=](int64_t i) { return length == 1 ? 1.0 : shape(static_cast<double>(i) / last); });
}

double cosine(double x, int times) { return std::cos(2 * std::numbers::pi * times * x); }

}  // namespace

void add_create_kernels(KernelTable& table) {
    table.plain("zeros", zeros);
    table.plain("ones", ones);
    table.plain("full", fill);
    table.plain("full_like", fill);
    table.plain("arange", arange);
    table.plain("linspace", linspace);
    table.plain("logspace", logspace);
    table.plain("eye", eye);
    table.plain("tril_indices", triangle_indices<true>);
    table.plain("triu_indices", triangle_indices<false>);
    table.plain("bartlett_window",
                [](const KernelCall& call) { return window(call, [](double x) { return 1 - std::abs(2 * x - 1); }); });
    table.plain("blackman_window", [](const KernelCall& call) {
        return window(call, [](double x) { return 0.42 - 0.5 * cosine(x, 1) + 0.08 * cosine(x, 2); });
    });
    table.plain("hann_window",
                [](const KernelCall& call) { return window(call, [](double x) { return 0.5 - 0.5 * cosine(x, 1); }); });
    table.plain("hamming_window", [](const KernelCall& call) {
        double alpha = call.args[2].number(), beta = call.args[3].number();
        return window(call, [=](double x) { return alpha - beta * cosine(x, 1); });
    });
    table.plain("kaiser_window", [](const KernelCall& call) {
        double beta = call.args[2].number();
        return window(call, [=](double x) {
            return bessel_i0(beta * std::sqrt(std::max(0.0, 4 * x * (1 - x)))) / bessel_i0(beta);
        });
    });
}

}  // namespace lunaria::cpu
