// Operators: comparisons, logic, bits, selection.
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

constexpr const char* kTruthValue = "the result is a truth value";

Op& comparison(Registry& ops, SignatureText signature, const char* doc, const char* short_name) {
    Op& op = ops.add(signature).doc(doc).infer(broadcast_to_bool).elementwise().no_grad(kTruthValue).alias(short_name);
    return op.sample("f32[2,3], f32[2,3]").sample("f32[5,1], f32[1,7]").sample("i32[5]:(0,3), 1");
}

Op& test(Registry& ops, SignatureText signature, const char* doc) {
    return ops.add(signature)
        .doc(doc)
        .infer(broadcast_to_bool)
        .elementwise()
        .no_grad(kTruthValue)
        .sample("f32[2,3]")
        .sample("i32[5]");
}

Op& logic(Registry& ops, SignatureText signature, const char* doc) {
    return ops.add(signature).doc(doc).infer(broadcast_to_bool).elementwise().no_grad(kTruthValue);
}

Types infer_bits(const Call& c) {
    if (!is_integer(c.dtype) && c.dtype != DType::boolean)
        throw dtype_error(c.name(), str("takes integers or bools, not ", name_of(c.dtype)));
    return broadcast_all(c);
}
Types infer_shift(const Call& c) {
    if (!is_integer(c.dtype)) throw dtype_error(c.name(), str("takes integers, not ", name_of(c.dtype)));
    return broadcast_all(c);
}

Op& bits(Registry& ops, SignatureText signature, const char* doc, InferFn infer) {
    return ops.add(signature).doc(doc).infer(infer).elementwise().no_grad("the result is an integer");
}

Grads grad_where(const GradRule& g) {
    Expr mask = g.in(0);
    return {{}, cotangent(g, 1, [&] { return where(mask, g.dout, 0.0); }), cotangent(g, 2, [&] {
                return where(mask, 0.0, g.dout);
            })};
}

void add_comparisons(Registry& ops) {
    comparison(ops, "equal(input/x: same, other/y: same)", "True where input equals other.", "eq")
        .example("equal(tensor{1, 2}, tensor{1, 3})", "tensor{true, false}");
    comparison(ops, "not_equal(input/x: same, other/y: same)", "True where input differs from other.", "ne")
        .example("not_equal(tensor{1, 2}, tensor{1, 3})", "tensor{false, true}");
    comparison(ops, "less(input/x: same, other/y: same)", "True where input is less than other.", "lt")
        .example("less(tensor{1, 2}, 2)", "tensor{true, false}");
    comparison(ops, "less_equal(input/x: same, other/y: same)", "True where input is at most other.", "le")
        .example("less_equal(tensor{2, 3}, 2)", "tensor{true, false}");
    comparison(ops, "greater(input/x: same, other/y: same)", "True where input is greater than other.", "gt")
        .example("greater(tensor{2, 3}, 2)", "tensor{false, true}");
    comparison(ops, "greater_equal(input/x: same, other/y: same)", "True where input is at least other.", "ge")
        .example("greater_equal(tensor{1, 2}, 2)", "tensor{false, true}");
    ops.add("approximate_equal(x/input: float, y/other: float, tolerance: number = 1e-5)")
        .doc("True where the operands differ by less than the tolerance.")
        .example("approximate_equal(tensor{1.0, 2.0}, tensor{1.000001, 2.1})", "tensor{true, false}")
        .expand([](const ExpandCall& c) {
            return c.call("less", {fn("abs", c.in(0) - c.in(1)), c.number(2)});
        })
        .wide()
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], f32[5], 0.5");
    logic(
        ops,
        "isclose(input/x1: same, other/x2: same, rtol: number = 1e-05, atol: number = 1e-08, equal_nan: bool = false)",
        "True where |input - other| is at most atol + rtol * |other|.")
        .example("isclose(tensor{1.0, 2.0}, tensor{1.0, 2.1})", "tensor{true, false}")
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], f32[5], 0.5, 0.1, true");
}

void add_tests(Registry& ops) {
    test(ops, "isnan(input/x: same)", "True where the number is NaN.")
        .example("isnan(tensor{0/0, 1.0})", "tensor{true, false}");
    test(ops, "isinf(input/x: same)", "True where the number is infinite.")
        .example("isinf(tensor{1/0, -1/0, 1.0})", "tensor{true, true, false}");
    test(ops, "isfinite(input/x: same)", "True where the number is neither infinite nor NaN.")
        .example("isfinite(tensor{1/0, 0/0, 1.0})", "tensor{false, false, true}");
    test(ops, "isposinf(input/x: same)", "True where the number is positive infinity.")
        .example("isposinf(tensor{1/0, -1/0, 1.0})", "tensor{true, false, false}");
    test(ops, "isneginf(input/x: same)", "True where the number is negative infinity.")
        .example("isneginf(tensor{1/0, -1/0, 1.0})", "tensor{false, true, false}");
    test(ops, "signbit(input/x: same)", "True for negative numbers and -0.0, false for NaN, which has no sign.")
        .example("signbit(tensor{-1.0, 2.0})", "tensor{true, false}");
}

void add_logic(Registry& ops) {
    logic(ops, "logical_and(input/x: tensor, other/y: tensor)",
          "True where both are true; numbers other than 0 count as true.")
        .example("logical_and(tensor{true, true}, tensor{true, false})", "tensor{true, false}")
        .sample("bool[2,3], bool[2,3]")
        .sample("bool[5,1], i32[7]:(0,2)");
    logic(ops, "logical_or(input/x: tensor, other/y: tensor)",
          "True where at least one is true; numbers other than 0 count as true.")
        .example("logical_or(tensor{true, false}, tensor{false, false})", "tensor{true, false}")
        .sample("bool[2,3], bool[2,3]")
        .sample("bool[5,1], i32[7]:(0,2)");
    logic(ops, "logical_xor(input/x: tensor, other/y: tensor)",
          "True where exactly one is true; numbers other than 0 count as true.")
        .example("logical_xor(tensor{true, true}, tensor{true, false})", "tensor{false, true}")
        .sample("bool[2,3], bool[2,3]")
        .sample("bool[5,1], i32[7]:(0,2)");
    logic(ops, "logical_not(input/x: tensor)", "True where the operand is false; numbers other than 0 count as true.")
        .example("logical_not(tensor{true, false})", "tensor{false, true}")
        .sample("bool[2,3]")
        .sample("i32[5]:(0,2)");

    bits(ops, "bitwise_and(input/x: same, other/y: same)", "And of all bits.", infer_bits)
        .example("bitwise_and(tensor{12}, tensor{10})", "tensor{8}")
        .sample("i32[2,3], i32[2,3]")
        .sample("i64[5,1], i64[7]");
    bits(ops, "bitwise_or(input/x: same, other/y: same)", "Or of all bits.", infer_bits)
        .example("bitwise_or(tensor{12}, tensor{10})", "tensor{14}")
        .sample("i32[2,3], i32[2,3]")
        .sample("i64[5,1], i64[7]");
    bits(ops, "bitwise_xor(input/x: same, other/y: same)", "Exclusive or of all bits.", infer_bits)
        .example("bitwise_xor(tensor{12}, tensor{10})", "tensor{6}")
        .sample("i32[2,3], i32[2,3]")
        .sample("i64[5,1], i64[7]");
    bits(ops, "invert(x/input: same)", "All bits inverted; on bools the logical not.", infer_bits)
        .example("invert(tensor{0, 5})", "tensor{-1, -6}")
        .alias("bitwise_not")
        .sample("i32[2,3]")
        .sample("bool[5]");
    bits(ops, "bitwise_left_shift(input/x: same, other/y: same)", "Bits shifted to the left.", infer_shift)
        .example("bitwise_left_shift(tensor{3}, 2)", "tensor{12}")
        .sample("i32[2,3], i32[3]:(0,5)")
        .sample("i64[5], 3");
    bits(ops, "bitwise_right_shift(input/x: same, other/y: same)", "Bits shifted to the right; the sign stays.",
         infer_shift)
        .example("bitwise_right_shift(tensor{12}, 2)", "tensor{3}")
        .sample("i32[2,3], i32[3]:(0,5)")
        .sample("i64[5], 3");
}

void add_selection(Registry& ops) {
    ops.add("where(condition/cond: mask, input/x: same, other/y: same)")
        .doc("The input where the condition is true, other elsewhere.")
        .example("where(tensor{true, false}, tensor{1, 2}, 0)", "tensor{1, 0}")
        .elementwise()
        .grad(grad_where)
        .method(false)
        .alias("select")
        .sample("bool[2,3], f32[2,3], f32[2,3]")
        .sample("bool[5,1], f32[7], 2.0");
    ops.add("masked_fill(input_x/input/x: same, mask: mask, value: same)")
        .doc("A value in place of the elements whose mask is true.")
        .example("masked_fill(tensor{1, 2}, tensor{true, false}, 9)", "tensor{9, 2}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr mask = g.in(1);
            return {cotangent(g, 0, [&] { return where(mask, 0.0, g.dout); }), {}, cotangent(g, 2, [&] {
                        return where(mask, g.dout, 0.0);
                    })};
        })
        .sample("f32[2,3], bool[2,3], -1.0")
        .sample("f32[5,7], bool[7], f32[1]");
}

}  // namespace

void add_compare_ops(Registry& ops) {
    add_comparisons(ops);
    add_tests(ops);
    add_logic(ops);
    add_selection(ops);
}

}  // namespace lunaria
