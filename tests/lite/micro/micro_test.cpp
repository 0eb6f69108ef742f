#include <map>
#include <set>

#include "core/loops/loop_check.h"
#include "tests/lite/micro/net.h"

namespace lunaria::lite::micro {

namespace {

using kernels::ConvolutionShape;
using kernels::IntegerType;
using Bytes = std::vector<std::byte>;

const std::string kWarnings =
    "-std=c99 -pedantic -ffp-contract=off -fno-strict-aliasing -Wall -Wextra -Wconversion -Wshadow -Werror";

// Every compiler that is there builds the program without a warning, and it gives the expected outputs.
void builds_and_passes(const Written& written, const std::string& more = "") {
    const Folder folder(written);
    std::vector<std::string> compilers{"gcc -O2", "gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"};
    for (const char* clang : {"clang", "clang-19"})
        if (Folder::has(clang)) {
            compilers.push_back(std::string(clang) + " -O2");
            break;
        }
    if (folder.run("echo 'int main(void) { return 0; }' >a.c && gcc -m32 a.c -o a").first)
        compilers.push_back("gcc -m32 -O2");
    for (const std::string& compiler : compilers) {
        const auto [good, text] = folder.run(compiler + " " + kWarnings + " " + more +
                                             " net.c weights.c test.c -lm -o net_test && ./net_test");
        EXPECT_TRUE(good) << compiler << "\n" << text.substr(0, 3000);
        EXPECT_NE(text.find("passed: 1 samples"), std::string::npos) << text.substr(0, 3000);
    }
}

bool has_board() {
    return Folder::has("arm-none-eabi-gcc") && Folder::has("qemu-system-arm") &&
           std::system("test -e \"$(arm-none-eabi-gcc -print-file-name=rdimon.specs)\"") == 0;
}

// A network of floats: each method adds a step and gives its result.
class FloatNet : public Net {
  public:
    using Net::Net;
    uint32_t product(uint32_t x, int64_t rows, int64_t k, int64_t n, const std::string& activation,
                     uint32_t y = kNone) {
        const std::vector<float> w = random(k * n, 1 / std::sqrt(static_cast<double>(k)));
        const uint32_t weight = packed(kernels::weight_bytes(kernels::WeightType::f32, k, n), [&](void* to) {
            kernels::pack_weight(kernels::WeightType::f32, k, n, w.data(), 1, k, to);
        });
        const uint32_t bias = constant(DType::f32, {n}, random(n));
        if (y == kNone) y = temporary(DType::f32, {rows, n});
        Step& s = step("product", {x, weight, bias}, y);
        set(s, "k", std::vector<int64_t>{k});
        set(s, "n", std::vector<int64_t>{n});
        set(s, "type", std::string("f32"));
        set(s, "activation", activation);
        return y;
    }
    uint32_t convolution(uint32_t x, const ConvolutionShape& s, const std::string& activation,
                         uint32_t residual = kNone, bool exact = true) {
        const auto method = kernels::convolution_method(s, exact);
        const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
        const std::vector<float> w = random(s.out_channels * s.channels / s.groups * taps,
                                            1 / std::sqrt(static_cast<double>(taps * s.channels / s.groups)));
        const uint32_t weight =
            packed(kernels::convolution_weight_bytes(s, method, kernels::WeightType::f32),
                   [&](void* to) { kernels::pack_convolution(s, method, kernels::WeightType::f32, w.data(), to); });
        const uint32_t bias = constant(DType::f32, {s.out_channels}, random(s.out_channels));
        const uint32_t y = temporary(DType::f32, {s.batch, s.out[1], s.out[2], s.out_channels});
        Step& c = step("convolution", {x, weight, bias, kNone, residual}, y);
        constexpr const char* methods[] = {"direct", "winograd2", "winograd4", "depthwise"};
        set(c, "method", std::string(methods[static_cast<int>(method)]));
        set_window(c, s);
        set(c, "activation", activation);
        set(c, "transposed", std::vector<int64_t>{s.transposed});
        set(c, "channels", std::vector<int64_t>{s.channels});
        set(c, "out_channels", std::vector<int64_t>{s.out_channels});
        return y;
    }
    static void set_window(Step& c, const ConvolutionShape& s) {
        set(c, "kernel", std::vector<int64_t>(s.kernel, s.kernel + 3));
        set(c, "stride", std::vector<int64_t>(s.stride, s.stride + 3));
        set(c, "dilation", std::vector<int64_t>(s.dilation, s.dilation + 3));
        set(c, "pad", std::vector<int64_t>(s.pad, s.pad + 3));
        set(c, "groups", std::vector<int64_t>{s.groups});
    }
    uint32_t pool(const std::string& kind, uint32_t x, const ConvolutionShape& s, bool counts_pad = true) {
        const uint32_t y = temporary(model.values[x].dtype, {s.batch, s.out[1], s.out[2], s.channels});
        Step& p = step(kind, {x}, y);
        set_window(p, s);
        set(p, "count_include_pad", std::vector<int64_t>{counts_pad});
        return y;
    }
    // softmax along the last axis.
    uint32_t softmax(uint32_t x, int64_t rows, int64_t inner, uint32_t y) {
        using graph::LoopInstruction;
        using Kind = LoopInstruction::Kind;
        Loop loop;
        graph::LoopProgram& p = loop.program;
        p.outer_rank = 1;
        p.has_rows = true;
        p.operands = {{DType::f32, graph::LoopOperand::Step::dense, false},
                      {DType::f32, graph::LoopOperand::Step::dense, true}};
        auto add = [&](Kind kind, std::string name, std::vector<uint16_t> args, bool row = false, uint16_t index = 0) {
            LoopInstruction i;
            i.kind = kind;
            i.name = std::move(name);
            i.args = std::move(args);
            i.row = row;
            i.index = index;
            p.code.push_back(i);
        };
        add(Kind::load, "", {});
        add(Kind::reduce, "max", {0}, true);
        add(Kind::formula, "sub", {0, 1});
        add(Kind::formula, "exp", {2});
        add(Kind::reduce, "sum", {3}, true);
        add(Kind::formula, "div", {3, 4});
        add(Kind::store, "", {5}, false, 1);
        model.loops.push_back(loop);
        Step& s = step("loop", {x}, y);
        s.label = "softmax";
        s.loop = static_cast<uint32_t>(model.loops.size() - 1);
        s.sizes = {rows, inner, inner, inner};
        return y;
    }
};

ConvolutionShape shape(int64_t size, int64_t channels, int64_t out_channels, int64_t kernel, int64_t stride,
                       int64_t pad, int64_t groups = 1) {
    ConvolutionShape s;
    s.channels = channels;
    s.out_channels = out_channels;
    s.groups = groups;
    for (int axis = 1; axis < 3; ++axis) {
        s.in[axis] = size;
        s.kernel[axis] = kernel;
        s.stride[axis] = stride;
        s.pad[axis] = pad;
        s.out[axis] = (size + 2 * pad - kernel) / stride + 1;
    }
    return s;
}

void float_net_passes(const FloatNet& net, const std::vector<Bytes>& inputs) {
    builds_and_passes(net.written(inputs, net.outputs(inputs)));
}

TEST(Micro, a_perceptron_of_floats_is_c) {
    FloatNet net(1);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {2, 20}, "x");
    const uint32_t h = net.product(net.product(x, 2, 20, 33, "relu"), 2, 33, 10, "gelu");
    net.softmax(h, 2, 10, net.value(Value::Home::output, DType::f32, {2, 10}, "y"));
    float_net_passes(net, {bytes_of(net.random(40))});
}

TEST(Micro, lenet_of_floats_is_c) {
    FloatNet net(2);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {1, 28, 28, 1}, "image");
    uint32_t h = net.convolution(x, shape(28, 1, 6, 5, 1, 2), "relu");
    h = net.pool("max_pool", h, shape(28, 6, 6, 2, 2, 0));
    h = net.convolution(h, shape(14, 6, 16, 5, 1, 0), "relu");
    h = net.pool("average_pool", h, shape(10, 16, 16, 2, 2, 0));
    const uint32_t flat = net.temporary(DType::f32, {1, 400});
    net.step("copy", {h}, flat).operands[0] = View{h, false, {1, 400}, {400, 1}, 0};
    h = net.product(net.product(flat, 1, 400, 120, "tanh"), 1, 120, 84, "silu");
    net.product(h, 1, 84, 10, "none", net.value(Value::Home::output, DType::f32, {1, 10}, "digits"));
    float_net_passes(net, {bytes_of(net.random(784))});
}

TEST(Micro, convolutions_of_all_kinds_are_c) {
    FloatNet net(3);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {2, 9, 9, 16}, "x");
    auto of = [](ConvolutionShape s) {
        s.batch = 2;
        return s;
    };
    const uint32_t a = net.convolution(x, of(shape(9, 16, 16, 3, 1, 1)), "relu6", kNone, false);  // Winograd's method
    const uint32_t b =
        net.convolution(a, of(shape(9, 16, 16, 3, 1, 1, 16)), "hard_swish", a);      // each channel, and a residual
    const uint32_t c = net.convolution(b, of(shape(9, 16, 8, 3, 2, 1, 4)), "none");  // groups, every second pixel
    ConvolutionShape up = of(shape(5, 8, 6, 3, 2, 1));
    up.transposed = true;
    up.out[1] = up.out[2] = 10;
    const uint32_t d = net.convolution(c, up, "sigmoid");
    ConvolutionShape wide = of(shape(10, 6, 4, 3, 1, 2));
    wide.dilation[1] = wide.dilation[2] = 2;
    wide.out[1] = wide.out[2] = 10;
    const uint32_t e = net.convolution(d, wide, "mish");
    const uint32_t f = net.pool("average_pool", e, of(shape(10, 4, 4, 3, 2, 1)), false);
    const uint32_t y = net.value(Value::Home::output, DType::f32, {4, 2, 5, 5}, "y");
    net.step("copy", {f}, y).operands[0] = View{f, false, {4, 2, 5, 5}, {1, 100, 20, 4}, 0};
    float_net_passes(net, {bytes_of(net.random(2 * 81 * 16))});
}

TEST(Micro, rearranged_and_reduced_elements_are_c) {
    FloatNet net(4);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {3, 4}, "x");
    const uint32_t index = net.value(Value::Home::input, DType::i32, {2}, "index");
    const uint32_t rows = net.temporary(DType::f32, {2, 4});
    Net::set(net.step("gather", {x, index}, rows), "axis", std::vector<int64_t>{0});
    const uint32_t all = net.temporary(DType::f32, {5, 4});
    Net::set(net.step("concat", {x, rows}, all), "axis", std::vector<int64_t>{0});
    const uint32_t square = net.temporary(DType::f32, {5, 5});
    net.step("batched_product", {all, all}, square).operands[1] = View{all, false, {4, 5}, {1, 4}, 0};
    Net::set(net.model.steps.back(), "factor", 0.5);
    const uint32_t mean = net.value(Value::Home::output, DType::f32, {5}, "mean");
    Net::set(net.step("mean", {square}, mean), "axis", std::vector<int64_t>{0});
    const uint32_t place = net.value(Value::Home::output, DType::i64, {5}, "place");
    Net::set(net.step("argmax", {square}, place), "dim", std::vector<int64_t>{1});
    const uint32_t most = net.value(Value::Home::output, DType::f32, {5}, "most");
    Net::set(net.step("amax", {square}, most), "axis", std::vector<int64_t>{0});
    const uint32_t turned = net.temporary(DType::f32, {5, 5});
    Net::set(net.step("flip", {square}, turned), "dims", std::vector<int64_t>{1});
    const uint32_t lower = net.temporary(DType::f32, {5, 5});
    Net::set(net.step("tril", {turned}, lower), "diagonal", std::vector<int64_t>{-1});
    const uint32_t sums = net.value(Value::Home::output, DType::f32, {5, 5}, "sums");
    Net::set(net.step("cumsum", {lower}, sums), "axis", std::vector<int64_t>{1});
    const uint32_t whole = net.value(Value::Home::output, DType::i8, {5, 5}, "whole");
    net.step("cast", {turned}, whole);
    const uint32_t chosen = net.value(Value::Home::output, DType::f32, {2, 4}, "chosen");
    const uint32_t places = net.constant(DType::i64, {2, 4}, std::vector<int64_t>{0, 1, -1, 2, 2, 2, 0, -3});
    Net::set(net.step("gather_elements", {x, places}, chosen), "dim", std::vector<int64_t>{0});
    const std::vector<Bytes> inputs{bytes_of(net.random(12)), bytes_of(std::vector<int32_t>{2, -3})};
    float_net_passes(net, inputs);
}

TEST(Micro, softmax_along_any_axis_is_c) {
    FloatNet net(9);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {2, 3, 4}, "x");
    const std::vector<float> elements = net.random(24, 3);
    std::vector<Bytes> expected;
    for (const bool logarithm : {false, true}) {
        const uint32_t y = net.value(Value::Home::output, DType::f32, {2, 3, 4}, logarithm ? "logarithms" : "shares");
        Net::set(net.step(logarithm ? "log_softmax" : "softmax", {x}, y), "axis", std::vector<int64_t>{1});
        std::vector<float> shares(24);
        for (size_t i = 0; i < 24; ++i) {
            const size_t first = i / 12 * 12 + i % 4;
            double sum = 0;
            for (size_t k = 0; k < 3; ++k) sum += std::exp(static_cast<double>(elements[first + 4 * k]));
            const double share = std::exp(static_cast<double>(elements[i])) / sum;
            shares[i] = static_cast<float>(logarithm ? std::log(share) : share);
        }
        expected.push_back(bytes_of(shares));
    }
    builds_and_passes(net.written({bytes_of(elements)}, expected));
}

// One loop for each formula, over operands of which some are beyond its domain.
TEST(Micro, formulas_have_the_values_of_the_runtime) {
    FloatNet net(10);
    const std::vector<std::string> formulas{"add",
                                            "sub",
                                            "mul",
                                            "div",
                                            "maximum",
                                            "minimum",
                                            "clamp",
                                            "fmax",
                                            "fmin",
                                            "abs",
                                            "neg",
                                            "square",
                                            "sign",
                                            "sqrt",
                                            "rsqrt",
                                            "reciprocal",
                                            "floor",
                                            "ceil",
                                            "trunc",
                                            "round_to_even",
                                            "frac",
                                            "deg2rad",
                                            "rad2deg",
                                            "copysign",
                                            "lerp",
                                            "addcmul",
                                            "addcdiv",
                                            "heaviside",
                                            "xdivy",
                                            "huber_element",
                                            "fake_quantize_element",
                                            "exp",
                                            "exp2",
                                            "expm1",
                                            "log",
                                            "log2",
                                            "log10",
                                            "log1p",
                                            "logaddexp",
                                            "logaddexp2",
                                            "xlogy",
                                            "pow",
                                            "sin",
                                            "cos",
                                            "tan",
                                            "asin",
                                            "acos",
                                            "atan",
                                            "atan2",
                                            "sinh",
                                            "cosh",
                                            "tanh",
                                            "asinh",
                                            "acosh",
                                            "atanh",
                                            "hypot",
                                            "fmod",
                                            "remainder",
                                            "floor_divide",
                                            "truncate_div",
                                            "relu",
                                            "relu6",
                                            "leaky_relu",
                                            "hardsigmoid",
                                            "hardswish",
                                            "hardshrink",
                                            "softshrink",
                                            "threshold",
                                            "softsign",
                                            "elu",
                                            "celu",
                                            "selu",
                                            "sigmoid",
                                            "logsigmoid",
                                            "silu",
                                            "gelu_erf",
                                            "gelu_tanh",
                                            "fast_gelu",
                                            "softplus",
                                            "mish",
                                            "tanhshrink",
                                            "erf",
                                            "erfc",
                                            "equal",
                                            "not_equal",
                                            "less",
                                            "less_equal",
                                            "greater",
                                            "greater_equal",
                                            "isnan",
                                            "isinf",
                                            "isfinite",
                                            "signbit"};
    std::vector<uint32_t> inputs;
    std::vector<Bytes> elements;
    for (int i = 0; i < 5; ++i) {
        inputs.push_back(net.value(Value::Home::input, DType::f32, {40}, std::string(1, static_cast<char>('p' + i))));
        elements.push_back(bytes_of(net.random(40)));
    }
    for (const std::string& name : formulas) {
        const size_t count = graph::formula_form(name).operands;
        const bool gives_bools = graph::gives_bools(name);
        ASSERT_GT(count, 0u) << name;
        Loop loop;
        graph::LoopProgram& p = loop.program;
        std::vector<uint16_t> args;
        for (uint16_t i = 0; i < count; ++i) {
            p.operands.push_back({DType::f32, graph::LoopOperand::Step::dense, false});
            graph::LoopInstruction load;
            load.kind = graph::LoopInstruction::Kind::load;
            load.index = i;
            p.code.push_back(load);
            args.push_back(i);
        }
        const DType type = gives_bools ? DType::boolean : DType::f32;
        p.operands.push_back({type, graph::LoopOperand::Step::dense, true});
        graph::LoopInstruction formula, store;
        formula.kind = graph::LoopInstruction::Kind::formula;
        formula.name = name;
        formula.args = args;
        formula.dtype = type;
        store.kind = graph::LoopInstruction::Kind::store;
        store.dtype = store.operand = type;
        store.index = static_cast<uint16_t>(count);
        store.args = {static_cast<uint16_t>(count)};
        p.code.push_back(formula);
        p.code.push_back(store);
        net.model.loops.push_back(loop);
        Step& s = net.step("loop", {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count)},
                           net.value(Value::Home::output, type, {40}, name));
        s.label = name;
        s.loop = static_cast<uint32_t>(net.model.loops.size() - 1);
        s.sizes = {40};
    }
    const Folder folder(net.written(elements, net.outputs(elements)));
    const auto [good, text] =
        folder.run("gcc -O1 " + kWarnings + " net.c weights.c test.c -lm -o net_test && ./net_test");
    EXPECT_TRUE(good) << text.substr(0, 3000);
}

// A network of 8-bit integers: each method adds a step and computes its result by the kernels of the runtime.
class IntegerNet : public FloatNet {
  public:
    using FloatNet::FloatNet;
    std::map<uint32_t, Bytes> results;
    static constexpr int kZero = -7;

    static const void* at(const Bytes& b) { return b.data(); }
    uint32_t quantize(uint32_t x, const std::vector<float>& elements, std::vector<int64_t> shape_of) {
        const uint32_t y = temporary(DType::i8, shape_of);
        Step& s = step("quantize", {x}, y);
        set(s, "scale", 0.02);
        set(s, "zero", std::vector<int64_t>{kZero});
        results[y].resize(elements.size());
        kernels::quantize(kernels::best_isa(), static_cast<int64_t>(elements.size()), elements.data(), 0.02f, kZero,
                          IntegerType::s8, results[y].data());
        return y;
    }
    // The attributes and operands of the end of a product, with one multiplier per channel.
    kernels::IntegerEpilogue end(int64_t n, int64_t k, bool relu) {
        std::vector<float> multiplier(static_cast<size_t>(n));
        for (float& m : multiplier)
            m = static_cast<float>(0.004 / std::sqrt(static_cast<double>(k)) *
                                   std::uniform_real_distribution<>(1, 4)(noise_));
        std::vector<int32_t> bias(static_cast<size_t>(n));
        for (int32_t& b : bias) b = std::uniform_int_distribution<int32_t>(-4000, 4000)(noise_);
        kernels::IntegerEpilogue e;
        e.zero = kZero;
        e.low = relu ? kZero : -128;
        bias_ = constant(DType::i32, {n}, bias);
        multiplier_ = constant(DType::f32, {n}, multiplier);
        e.bias = reinterpret_cast<const int32_t*>(model.values[bias_].data);
        e.multiplier = reinterpret_cast<const float*>(model.values[multiplier_].data);
        return e;
    }
    void set_end(Step& s, bool relu) const {
        set(s, "x_zero", std::vector<int64_t>{kZero});
        set(s, "zero", std::vector<int64_t>{kZero});
        set(s, "low", std::vector<int64_t>{relu ? kZero : -128});
        set(s, "high", std::vector<int64_t>{127});
    }
    uint32_t convolution8(uint32_t x, const ConvolutionShape& s, bool relu, uint32_t residual = kNone) {
        const int64_t taps = s.kernel[1] * s.kernel[2], depth = s.channels / s.groups;
        const std::vector<int8_t> w = random_bytes(s.out_channels * depth * taps);
        const uint32_t weight = packed(kernels::integer_convolution_weight_bytes(s),
                                       [&](void* to) { kernels::pack_integer_convolution(s, w.data(), to); });
        const uint32_t y = temporary(DType::i8, {1, s.out[1], s.out[2], s.out_channels});
        kernels::IntegerConvolution c;
        c.epilogue = end(s.out_channels, taps * depth, relu);
        Step& made = step("integer_convolution", {x, weight, bias_, multiplier_, residual}, y);
        set_window(made, s);
        set_end(made, relu);
        c.shape = s;
        c.x = at(results[x]);
        c.x_zero = kZero;
        c.weight = model.values[weight].data;
        results[y].resize(static_cast<size_t>(s.out[1] * s.out[2] * s.out_channels));
        c.y = results[y].data();
        if (residual != kNone) {
            set(made, "residual_zero", std::vector<int64_t>{kZero});
            set(made, "residual_multiplier", 0.75);
            c.epilogue.residual = at(results[residual]);
            c.epilogue.residual_row = s.out_channels;
            c.epilogue.residual_zero = kZero;
            c.epilogue.residual_multiplier = 0.75f;
        }
        std::vector<std::byte> scratch(static_cast<size_t>(kernels::integer_convolution_scratch(c, 1)) + 64);
        kernels::integer_convolution(kernels::best_isa(), c, aligned(scratch));
        return y;
    }
    uint32_t product8(uint32_t x, int64_t k, int64_t n, bool relu, bool table = false) {
        const std::vector<int8_t> w = random_bytes(k * n);
        const uint32_t weight = packed(kernels::integer_weight_bytes(k, n),
                                       [&](void* to) { kernels::pack_integer_weight(k, n, w.data(), 1, k, to); });
        const uint32_t y = temporary(DType::i8, {1, n});
        kernels::IntegerProduct p;
        p.epilogue = end(n, k, relu);
        std::vector<uint32_t> operands{x, weight, bias_, multiplier_};
        if (table) {
            const uint32_t t = constant(DType::u8, {256}, random_bytes(256, -128));
            operands.insert(operands.end(), {kNone, t});
            p.epilogue.table = model.values[t].data;
        }
        Step& made = step("integer_product", operands, y);
        set(made, "k", std::vector<int64_t>{k});
        set(made, "n", std::vector<int64_t>{n});
        set_end(made, relu);
        p.m = 1, p.n = n, p.k = k;
        p.a = at(results[x]);
        p.a_row = k;
        p.a_zero = kZero;
        p.b = model.values[weight].data;
        results[y].resize(static_cast<size_t>(n));
        p.c = results[y].data();
        p.c_row = n;
        std::vector<std::byte> scratch(static_cast<size_t>(kernels::integer_product_scratch(p, 1)) + 64);
        kernels::integer_product(kernels::best_isa(), p, aligned(scratch));
        return y;
    }
    uint32_t max_pool8(uint32_t x, const ConvolutionShape& s) {
        const uint32_t y = pool("max_pool", x, s);
        Bytes& to = results[y];
        for (int64_t i = 0; i < s.out[1]; ++i)
            for (int64_t j = 0; j < s.out[2]; ++j)
                for (int64_t c = 0; c < s.channels; ++c) {
                    int8_t best = -128;
                    for (int64_t v = 0; v < 4; ++v)
                        best = std::max(best, static_cast<int8_t>(results[x][static_cast<size_t>(
                                                  ((2 * i + v / 2) * s.in[2] + 2 * j + v % 2) * s.channels + c)]));
                    to.push_back(static_cast<std::byte>(best));
                }
        return y;
    }
    uint32_t global_average8(uint32_t x, int64_t height, int64_t width, int64_t channels) {
        ConvolutionShape s;
        s.channels = channels;
        s.in[1] = s.kernel[1] = height;
        s.in[2] = s.kernel[2] = width;
        const uint32_t y = pool("average_pool", x, s);
        set_end(model.steps.back(), false);
        set(model.steps.back(), "multiplier", 1.25);
        for (int64_t c = 0; c < channels; ++c) {
            int32_t sum = 0;
            for (int64_t p = 0; p < height * width; ++p)
                sum += static_cast<int8_t>(results[x][static_cast<size_t>(p * channels + c)]) - kZero;
            const float share = 1.25f / static_cast<float>(height * width);
            const float f = std::min(std::max(static_cast<float>(sum) * share, -128.0f - kZero), 127.0f - kZero);
            results[y].push_back(static_cast<std::byte>(static_cast<int8_t>(std::lrint(f) + kZero)));
        }
        return y;
    }
    // Floats of the last value, as the output.
    Bytes finish(uint32_t x, int64_t count) {
        const uint32_t y = value(Value::Home::output, DType::f32, {1, count}, "y");
        Step& s = step("dequantize", {x}, y);
        set(s, "scale", 0.125);
        set(s, "zero", std::vector<int64_t>{kZero});
        std::vector<float> real(static_cast<size_t>(count));
        kernels::dequantize(kernels::best_isa(), count, at(results[x]), 0.125f, kZero, IntegerType::s8, real.data());
        std::set<float> different(real.begin(), real.end());
        EXPECT_GT(different.size(), real.size() / 2) << "the outputs of the test say little";
        return bytes_of(real);
    }

  private:
    static void* aligned(std::vector<std::byte>& b) {
        return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(b.data()) + 63) / 64 * 64);
    }
    std::mt19937 noise_{5};
    uint32_t bias_ = kNone, multiplier_ = kNone;
};

struct Built {
    IntegerNet net;
    Bytes input, output;
};

Built integer_lenet() {
    Built b{IntegerNet(6), {}, {}};
    IntegerNet& net = b.net;
    const std::vector<float> image = net.random(784);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {1, 28, 28, 1}, "image");
    uint32_t h = net.convolution8(net.quantize(x, image, {1, 28, 28, 1}), shape(28, 1, 6, 5, 1, 2), true);
    h = net.max_pool8(h, shape(28, 6, 6, 2, 2, 0));
    h = net.max_pool8(net.convolution8(h, shape(14, 6, 16, 5, 1, 0), true), shape(10, 16, 16, 2, 2, 0));
    const uint32_t flat = net.temporary(DType::i8, {1, 400});
    net.step("copy", {h}, flat).operands[0] = View{h, false, {1, 400}, {400, 1}, 0};
    net.results[flat] = net.results[h];
    h = net.product8(net.product8(net.product8(flat, 400, 120, true), 120, 84, true, true), 84, 10, false);
    b.output = net.finish(h, 10);
    b.input = bytes_of(image);
    return b;
}

// The keyword network of MLPerf Tiny: 49 x 10 features, a convolution of 10 x 4, four pairs of a convolution of each
// channel and one of 1 x 1 pixels, 64 channels, 12 words.
Built integer_keywords() {
    Built b{IntegerNet(7), {}, {}};
    IntegerNet& net = b.net;
    const std::vector<float> features = net.random(490);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {1, 49, 10, 1}, "features");
    ConvolutionShape first;
    first.out_channels = 64;
    first.in[1] = 49, first.in[2] = 10;
    first.out[1] = 25, first.out[2] = 5;
    first.kernel[1] = 10, first.kernel[2] = 4;
    first.stride[1] = first.stride[2] = 2;
    first.pad[1] = 4, first.pad[2] = 1;
    uint32_t h = net.convolution8(net.quantize(x, features, {1, 49, 10, 1}), first, true);
    for (int block = 0; block < 4; ++block) {
        ConvolutionShape s;
        s.channels = s.out_channels = 64;
        s.in[1] = s.out[1] = 25, s.in[2] = s.out[2] = 5;
        ConvolutionShape each = s;
        each.groups = 64;
        each.kernel[1] = each.kernel[2] = 3;
        each.pad[1] = each.pad[2] = 1;
        h = net.convolution8(h, each, true);
        h = net.convolution8(h, s, true, block == 3 ? h : kNone);
    }
    h = net.product8(net.global_average8(h, 25, 5, 64), 64, 12, false);
    b.output = net.finish(h, 12);
    b.input = bytes_of(features);
    return b;
}

TEST(Micro, lenet_of_integers_has_the_bits_of_the_host) {
    const Built b = integer_lenet();
    const Written w = b.net.written({b.input}, {b.output});
    builds_and_passes(w, "-DTOLERANCE=0");
    EXPECT_LE(static_cast<double>(w.arena_bytes), 1.15 * static_cast<double>(w.live_bytes));
}

TEST(Micro, the_keyword_network_needs_less_than_24_kb) {
    const Built b = integer_keywords();
    const Written w = b.net.written({b.input}, {b.output});
    builds_and_passes(w, "-DTOLERANCE=0");
    EXPECT_LE(static_cast<double>(w.arena_bytes), 1.15 * static_cast<double>(w.live_bytes));
    EXPECT_LE(w.arena_bytes, 24u << 10);
}

TEST(Micro, a_cortex_m_gives_the_same_bits_with_40_kb_of_code) {
    if (!has_board()) GTEST_SKIP() << "gcc-arm-none-eabi, libnewlib-arm-none-eabi or qemu-system-arm is not installed";
    Options options;
    options.target = Target::cortex_m;
    options.tolerance = 0;
    for (const Built& b : {integer_lenet(), integer_keywords()}) {
        const Folder folder(b.net.written({b.input}, {b.output}, options));
        const auto [good, text] = folder.run("make -s test");
        EXPECT_TRUE(good) << text;
        EXPECT_NE(text.find("passed: 1 samples"), std::string::npos) << text;
        const auto [sized, code] = folder.run("arm-none-eabi-size net.o | awk 'NR == 2 { print $1 }'");
        EXPECT_TRUE(sized) << code;
        EXPECT_GT(std::atoi(code.c_str()), 500);
        EXPECT_LE(std::atoi(code.c_str()), 40 << 10);
        RecordProperty("code_bytes", code);
    }
}

TEST(Micro, a_step_without_c_is_named_before_anything_is_written) {
    FloatNet net(8);
    const uint32_t x = net.value(Value::Home::input, DType::f32, {4}, "x");
    Step& s = net.step("fft", {x}, net.value(Value::Home::output, DType::f32, {4}, "y"));
    s.node = "spectrum/0";
    s.source = "net.lua:12";
    try {
        write_c(net.model, {}, {});
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "lite.micro: step 0 (fft), node 'spectrum/0': the operator fft is not supported in C");
        EXPECT_EQ(e.place(), "net.lua:12");
    }
}

}  // namespace

}  // namespace lunaria::lite::micro
