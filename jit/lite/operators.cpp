#include "jit/lite/operators.h"

namespace lunaria::lite {

namespace {

Types infer_product(const Call& c) {
    Shape shape = c.shape(kX);
    shape[shape.rank() - 1] = c.integer(c.op.signature.params.size() - 2);
    return {{DType::f32, shape}};
}
double product_flops(const Call& c, std::span<const TensorType> results) {
    return 2.0 * static_cast<double>(c.shape(kX).back()) * static_cast<double>(results[0].shape.size());
}

Types infer_batched(const Call& c) {
    Shape shape = c.shape(0);
    shape[shape.rank() - 1] = c.shape(1).back();
    return {{DType::f32, shape}};
}

// The shape of the result is the last argument.
Types infer_sized(const Call& c) { return {{c.type(kX).dtype, Shape(c.ints(c.args.size() - 1))}}; }

// The dtype of the result is the last argument, or the last but one before its shape.
Types infer_integer_product(const Call& c) {
    Shape shape = c.shape(kX);
    shape[shape.rank() - 1] = c.integer(c.op.signature.params.size() - 2);
    return {{c.args.back().dtype(), shape}};
}
Types infer_integer_convolution(const Call& c) {
    return {{c.args[c.args.size() - 2].dtype(), Shape(c.ints(c.args.size() - 1))}};
}
Types infer_quantize(const Call& c) { return {{c.args.back().dtype(), c.shape(kX)}}; }

double convolution_flops(const Call& c, std::span<const TensorType> results) {
    auto position = [&](std::string_view name) { return static_cast<size_t>(c.op.signature.find(name)); };
    double depth =
        static_cast<double>(c.integer(position("channels"))) / static_cast<double>(c.integer(position("groups")));
    for (const int64_t n : c.ints(position("kernel"))) depth *= static_cast<double>(n);
    const bool transposed = &c.op == &light().convolution && c.boolean(position("transposed"));
    const double places = static_cast<double>(
        transposed ? c.shape(kX).size() / c.shape(kX).back() * results[0].shape.back() : results[0].shape.size());
    return 2 * depth * places;
}

}  // namespace

LightOperators::LightOperators()
    : product(
          registry
              .add("product(x: float, weight: tensor, bias: float? = nil, scale: float? = nil, residual: float? = nil, "
                   "activation: string, alpha: number, beta: number, residual_last: bool, k: int, n: int, type: "
                   "string)")
              .infer(infer_product)
              .flops(product_flops)),
      batched_product(registry
                          .add("batched_product(a: float, b: float, factor: number, activation: string, alpha: number, "
                               "beta: number)")
                          .infer(infer_batched)
                          .flops(product_flops)
                          .strided()),
      convolution(
          registry
              .add("convolution(x: float, weight: tensor, bias: float? = nil, scale: float? = nil, residual: "
                   "float? = nil, activation: string, alpha: number, beta: number, residual_last: bool, kernel: "
                   "ints, stride: ints, dilation: ints, pad: ints, groups: int, channels: int, out_channels: "
                   "int, method: string, type: string, transposed: bool, size: ints)")
              .infer(infer_sized)
              .flops(convolution_flops)),
      pack_convolution(registry
                           .add("pack_convolution(weight: float, kernel: ints, stride: ints, dilation: ints, groups: "
                                "int, channels: int, "
                                "out_channels: int, method: string, type: string, transposed: bool, size: ints)")
                           .infer([](const Call& c) -> Types {
                               return {{DType::u8, Shape(c.ints(c.args.size() - 1))}};
                           })),
      max_pool(registry.add("max_pool(x: same, kernel: ints, stride: ints, dilation: ints, pad: ints, size: ints)")
                   .infer(infer_sized)),
      average_pool(registry
                       .add("average_pool(x: float, kernel: ints, stride: ints, dilation: ints, pad: ints, pad_after: "
                            "ints, count_include_pad: bool, divisor: int, size: ints)")
                       .infer(infer_sized)) {}

IntegerOperators::IntegerOperators()
    : product(registry
                  .add("integer_product(x: tensor, weight: tensor, bias: tensor? = nil, multiplier: tensor, "
                       "residual: tensor? = nil, table: tensor? = nil, float_bias: tensor? = nil, activation: "
                       "string, x_zero: int, zero: int, low: int, high: int, k: int, n: int, dtype: dtype)")
                  .infer(infer_integer_product)
                  .flops(product_flops)),
      convolution(
          registry
              .add("integer_convolution(x: tensor, weight: tensor, bias: tensor? = nil, multiplier: tensor, residual: "
                   "tensor? = nil, table: tensor? = nil, float_bias: tensor? = nil, activation: string, x_zero: int, "
                   "zero: int, low: int, high: int, kernel: ints, stride: ints, dilation: ints, pad: ints, groups: "
                   "int, channels: int, out_channels: int, dtype: dtype, size: ints)")
              .infer(infer_integer_convolution)
              .flops(convolution_flops)),
      quantize(registry.add("quantize(x: tensor, scale: number, zero: int, dtype: dtype)").infer(infer_quantize)) {}

const KnownOperators& known() {
    static const KnownOperators operators;
    return operators;
}

const LightOperators& light() {
    static const LightOperators operators;
    return operators;
}
const IntegerOperators& integer() {
    static const IntegerOperators operators;
    return operators;
}

}  // namespace lunaria::lite
