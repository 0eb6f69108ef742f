// The float epilogue alone. Compiled once for each instruction set.
#include "core/lite/kernels/rows.h"
#include "core/ops/formulas_activation.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

template <class F>
[[gnu::noinline]] void each_row(const Epilogue& e, int64_t rows, int64_t columns, const float* x, int64_t x_row,
                                float* y, int64_t y_row, F act) {
    for (int64_t i = 0; i < rows; ++i) {
        const float* from = x + i * x_row;
        float* to = y + i * y_row;
        const float* residual = e.residual ? e.residual + i * e.residual_row : nullptr;
        for (int64_t j = 0; j < columns; j += kLanes) {
            const int64_t count = columns - j < kLanes ? columns - j : kLanes;
            auto at = [&](const float* p) __attribute__((always_inline)) {
                return count == kLanes ? load(p + j) : load_part(p + j, count);
            };
            Floats v = at(from);
            if (e.scale) v *= at(e.scale);
            if (e.bias) v += at(e.bias);
            if (residual && !e.residual_last) v += at(residual);
            v = act(Number(v)).v;
            if (residual && e.residual_last) v += at(residual);
            if (count == kLanes)
                store(to + j, v);
            else
                store_part(to + j, v, count);
        }
    }
}

}  // namespace

void apply(const Epilogue& e, int64_t rows, int64_t columns, const float* x, int64_t x_row, float* y, int64_t y_row) {
    const Number alpha(e.alpha), beta(e.beta);
    auto with = [&](auto act) { each_row(e, rows, columns, x, x_row, y, y_row, act); };
    switch (e.activation) {
        case Activation::none:
            return with([](Number v) { return v; });
        case Activation::relu:
            return with(formula::Relu{});
        case Activation::relu6:
            return with(formula::Relu6{});
        case Activation::clip:
            return with([=](Number v) { return Number(smaller(larger(v.v, alpha.v), beta.v)); });
        case Activation::leaky_relu:
            return with([=](Number v) { return formula::LeakyRelu{}(v, alpha); });
        case Activation::elu:
            return with([=](Number v) { return formula::Elu{}(v, alpha); });
        case Activation::hard_sigmoid:
            return with(formula::Hardsigmoid{});
        case Activation::hard_swish:
            return with(formula::Hardswish{});
        case Activation::sigmoid:
            return with(formula::Sigmoid{});
        case Activation::silu:
            return with(formula::Silu{});
        case Activation::gelu:
            return with(formula::Gelu{});
        case Activation::gelu_tanh:
            return with(formula::GeluTanh{});
        case Activation::tanh:
            return with([](Number v) { return tanh(v); });
        case Activation::mish:
            return with(formula::Mish{});
    }
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
