// Operators: numbers rounded to the steps of an integer format, for training and measuring networks that will compute
// in integers. A step is scale wide, and the integer zero_point stands for 0.
#include <algorithm>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

// Rounding has the derivative 0 almost everywhere, from which nothing could be learnt. The straight-through estimate
// takes the rounding itself for the identity: the cotangent of x passes where x lies in the range, and that of the
// scale is the rounding error, counted in steps (Learned Step Size Quantization, Esser et al. 2020). Outside the range
// the result is the range's end, whose derivatives are exact.
Grads grad_element(const GradRule& g) {
    Expr x = g.in(0), scale = g.in(1), zero = g.in(2);
    Expr steps = x / scale, nearest = fn("round", steps), level = nearest + zero;
    Expr bounded = call("clamp", {level, g.args[3], g.args[4]}), inside = call("equal", {level, bounded});
    return {cotangent(g, 0, [&] { return g.dout * inside.cast(g.out.dtype()); }),
            cotangent(g, 1, [&] { return g.dout * where(inside, nearest - steps, bounded - zero); }),
            cotangent(g, 2, [&] { return -(g.dout * where(inside, 0.0, scale)); }),
            {},
            {}};
}

// Argument i as a tensor that broadcasts against the first operand: one number, one for each place along the axis, or
// one for each block of places.
Expr spread(const ExpandCall& c, size_t i) {
    Expr t = c.in(i);
    if (!c.has(5) || c.rank(i) == 0) return t;
    const int axis = c.axis(5, 0), rank = c.rank(0);
    const int64_t places = c.shape(0)[axis], block = std::min(c.integer(6), std::max<int64_t>(places, 1));
    const int64_t numbers = block ? (places + block - 1) / block : places;
    Shape wanted = c.shape(0), shape = c.shape(i);
    if (!block)
        for (int a = 0; a < rank; ++a) wanted[a] = a == axis ? wanted[a] : 1;
    wanted[axis] = numbers;
    if (!block && shape.rank() == 1 && (shape[0] == numbers || shape[0] == 1)) {
        wanted[axis] = shape[0];
        return t.reshape(wanted);
    }
    if (!block || shape != wanted)
        throw shape_error(c.name(),
                          str(c.op.signature.params[i].name, " has the shape ", shape, ": give one number or ",
                              block ? str("a tensor of shape ", wanted, ", one number for each block of ", block)
                                    : str(numbers, ", one for each place along axis ", axis)));
    t = c.call("repeat_interleave", {t, block, int64_t{axis}});
    return numbers * block == places ? t : c.call("narrow", {t, int64_t{axis}, int64_t{0}, places});
}

Expr expand_fake_quantize(const ExpandCall& c) {
    const int64_t least = c.integer(3), most = c.integer(4), block = c.integer(6);
    if (least >= most || least < -0x8000 || most > 0xffff || most - least > 0xffff)
        throw value_error(c.name(), str("quant_min is ", least, " and quant_max ", most,
                                        ": they must be a growing pair of a format of at most 16 bits"));
    if (block < 0 || (block && !c.has(5)))
        throw value_error(c.name(), str("block_size is ", block, ": it must be positive, and needs an axis"));
    return c.call("fake_quantize_element",
                  {c.in(0), spread(c, 1), spread(c, 2), static_cast<double>(least), static_cast<double>(most)});
}

}  // namespace

void add_quantise_ops(Registry& ops) {
    ops.add(
           "fake_quantize_element(input/x: float, scale: float, zero_point: float, quant_min: number, quant_max: "
           "number)")
        .doc("The multiple of scale nearest to x whose factor, plus zero_point, lies between the two limits.")
        .example("fake_quantize_element(tensor{0.3, 0.5, 9.0}, 0.25, 0.0, -8, 7)", "tensor{0.25, 0.5, 1.75}")
        .elementwise()
        .grad(grad_element)
        .method(false)
        .sample("f32[2,3]:(3,5), f32[3]:(0.01,0.02), f32[1]:(2,3), -8, 7")
        .sample("f32[5]:(-5,-3), f32[5]:(0.01,0.02), 0.0, -128, 127");

    ops.add(
           "fake_quantize(input/x: float, scale/y_scale: float, zero_point/y_zero_point: float = 0, quant_min: int = "
           "-128, quant_max: int = 127, axis: int? = nil, block_size: int = 0)")
        .doc(
            "Rounds x to the steps of an integer format and back: the integer is x / scale to the nearest even plus "
            "zero_point, moved into the range from quant_min to quant_max; the result is (integer - zero_point) * "
            "scale. With an axis there is one scale for each place along it, or for each block of block_size places. "
            "Gradients pass straight through the rounding and stop outside of the range.")
        .example("fake_quantize(tensor{0.3, 0.125, 0.375, 9.0}, 0.25, 0, -8, 7)", "tensor{0.25, 0.0, 0.5, 1.75}")
        .example("fake_quantize(tensor{{1.0, 2.2}, {1.0, 2.2}}, tensor{0.5, 1.0}, {axis = 0})",
                 "tensor{{1.0, 2.0}, {1.0, 2.0}}")
        .expand(expand_fake_quantize)
        .source("ONNX QuantizeLinear and DequantizeLinear")
        .sample("f32[2,3]:(3,5), f32[2]:(0.01,0.02), axis=0")
        .sample("f32[2,5]:(-5,-3), f32[2,3]:(0.1,0.2), f32[2,3]:(3,5), 0, 15, axis=-1, block_size=2");
}

}  // namespace lunaria
