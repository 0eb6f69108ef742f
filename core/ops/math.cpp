// Operators: elementwise arithmetic on two and more operands.
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

Grads grad_div(const GradRule& g) {
    if (g.has(2)) return zero_gradient(g);
    // Both gradients contain the quotient, which is computed once.
    Expr quotient = g.dout / mirrored(g.in(1));
    return {
        cotangent(g, 0, [&] { return quotient; }), cotangent(g, 1, [&] { return -(quotient * mirrored(g.out)); }), {}};
}

// If both are equal, each gets half of the cotangent, as finite differences show. NaN is neither larger nor smaller:
// where it is passed on, both get the whole cotangent.
Grads grad_extremum(const GradRule& g, const char* loses) {
    Expr a = g.in(0), b = g.in(1);
    auto share = [&](const Expr& mine, const Expr& other) {
        Expr lost = call(loses, {mine, other}).cast(g.out.dtype()),
             tied = call("equal", {mine, other}).cast(g.out.dtype());
        return g.dout * (1.0 - lost - tied * 0.5);
    };
    return {cotangent(g, 0, [&] { return share(a, b); }), cotangent(g, 1, [&] { return share(b, a); })};
}

// The same for fmax and fmin, where a number wins over NaN.
Grads grad_number_extremum(const GradRule& g, const char* wins) {
    Expr a = g.in(0), b = g.in(1);
    auto share = [&](const Expr& mine, const Expr& other) {
        Expr won = call("logical_or", {call(wins, {mine, other}), call("isnan", {other})}).cast(g.out.dtype());
        return g.dout * (won + call("equal", {mine, other}).cast(g.out.dtype()) * 0.5);
    };
    return {cotangent(g, 0, [&] { return share(a, b); }), cotangent(g, 1, [&] { return share(b, a); })};
}

// A power with a constant exponent has a gradient for negative bases, since log(a) is needed only for the gradient of
// the exponent. That gradient is 0 where a is 0 and b is not negative, as a^b does not change with b there.
Grads grad_pow(const GradRule& g) {
    Expr a = g.in(0), b = g.in(1);
    auto base = [&] {
        if (g.args[1].is_number()) {
            double n = g.number(1);
            if (n == 0) return g.dout * 0.0;
            if (n == 1) return g.dout;
            if (n == 2) return g.dout * mirrored(a) * 2.0;
            return g.dout * mirrored(call("pow", {a, n - 1})) * n;
        }
        Expr safe = where(call("equal", {b, 0.0}), 1.0, b);
        Expr slope = b * call("pow", {a, safe - 1.0});
        return g.dout * mirrored(where(call("equal", {b, 0.0}), 0.0, slope));
    };
    auto exponent = [&] {
        Expr flat = call("equal", {a, 0.0});
        if (!is_complex(b.dtype())) flat = call("logical_and", {flat, call("greater_equal", {b, 0.0})});
        return g.dout * mirrored(where(flat, 0.0, g.out * fn("log", where(flat, 1.0, a))));
    };
    return {cotangent(g, 0, base), cotangent(g, 1, exponent)};
}

Grads grad_remainder(const GradRule& g) {
    Expr a = g.in(0), b = g.in(1);
    return {cotangent(g, 0, [&] { return g.dout; }), cotangent(g, 1, [&] {
                return -(g.dout * call("floor_divide", {a, b}));
            })};
}

Grads grad_logadd(const GradRule& g, const char* power) {
    // The softmax weights e^(a - out) and e^(b - out). An infinite operand that equals the result has the weight 1.
    auto side = [&](size_t i) {
        return cotangent(g, i, [&] {
            Expr x = g.in(i);
            return g.dout * fn(power, where(call("equal", {x, g.out}), 0.0, x - g.out));
        });
    };
    return {side(0), side(1)};
}

Grads grad_clamp(const GradRule& g) {
    Expr x = g.in(0);
    auto limit = [&](size_t i, const char* beyond) {
        if (!g.has(i)) return Expr();
        return cotangent(g, i, [&] { return g.dout * call(beyond, {x, g.in(i)}).cast(g.out.dtype()); });
    };
    auto inside = [&] {
        Expr dx = g.dout;
        if (g.has(1)) dx = dx * call("greater_equal", {x, g.in(1)}).cast(g.out.dtype());
        if (g.has(2)) dx = dx * call("less_equal", {x, g.in(2)}).cast(g.out.dtype());
        return dx;
    };
    return {cotangent(g, 0, inside), limit(1, "less"), limit(2, "greater")};
}

Grads grad_addcmul(const GradRule& g) {
    Expr a = mirrored(g.in(1)), b = mirrored(g.in(2)), value = mirrored(g.in(3));
    return {cotangent(g, 0, [&] { return g.dout; }), cotangent(g, 1, [&] { return g.dout * value * b; }),
            cotangent(g, 2, [&] { return g.dout * value * a; }), cotangent(g, 3, [&] { return g.dout * a * b; })};
}

Grads grad_addcdiv(const GradRule& g) {
    Expr a = mirrored(g.in(1)), b = mirrored(g.in(2)), value = mirrored(g.in(3));
    return {cotangent(g, 0, [&] { return g.dout; }), cotangent(g, 1, [&] { return g.dout * value / b; }),
            cotangent(g, 2, [&] { return -(g.dout * value * a / (b * b)); }),
            cotangent(g, 3, [&] { return g.dout * a / b; })};
}

Grads grad_lerp(const GradRule& g) {
    Expr a = g.in(0), b = g.in(1), w = g.in(2);
    return {cotangent(g, 0, [&] { return g.dout * (1.0 - w); }), cotangent(g, 1, [&] { return g.dout * w; }),
            cotangent(g, 2, [&] { return g.dout * (b - a); })};
}

void add_binary_ops(Registry& ops) {
    ops.add("add(input/x/x1: same, other/y/x2: same)")
        .doc("Sum of two tensors, element by element; on bools the logical or.")
        .example("add(tensor{1, 2}, tensor{10, 20})", "tensor{11, 22}")
        .elementwise()
        .exact()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout; }), cotangent(g, 1, [&] { return g.dout; })};
        })
        .alias("tensor_add")
        .cut("...,...->... +")
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5,1,7], f32[3,1]");

    ops.add("sub(input/x/x1: same, other/y/x2: same)")
        .doc("Difference of two tensors, element by element.")
        .example("sub(tensor{5, 7}, 2)", "tensor{3, 5}")
        .elementwise()
        .exact()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout; }), cotangent(g, 1, [&] { return -g.dout; })};
        })
        .alias("subtract")
        .cut("...,...->... +")
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5,1,7], f32[3,1]");

    ops.add("mul(input/x/x1: same, other/y/x2: same)")
        .doc("Product of two tensors, element by element; on bools the logical and.")
        .example("mul(tensor{1.5, 2.0}, 4)", "tensor{6.0, 8.0}")
        .elementwise()
        .exact()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * mirrored(g.in(1)); }),
                    cotangent(g, 1, [&] { return g.dout * mirrored(g.in(0)); })};
        })
        .alias("multiply")
        .linear({0, 1})
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5,1,7], f32[3,1]");

    ops.add("div(input/x/x1: float, other/y/x2: float, *, rounding_mode: \"floor\"|\"trunc\"? = nil)")
        .doc(
            "Quotient of two tensors, element by element; integers give f32. rounding_mode floor or trunc gives whole "
            "numbers.")
        .example("div(tensor{1, 3}, tensor{2, 2})", "tensor{0.5, 1.5}")
        .elementwise()
        .exact()
        .grad(grad_div)
        .alias("divide")
        .alias("true_divide")
        .alias("real_div")
        .linear({0})
        .sample("f32[2,3], f32[2,3]:(1,2)")
        .sample("f32[5,1,7], f32[3,1]:(-2,-1)");

    ops.add("floor_divide(input/x: same, other/y: same)")
        .doc("Quotient rounded down to a whole number, as // in Lua; dividing an integer by 0 is an error.")
        .example("floor_divide(tensor{7, -7}, 2)", "tensor{3, -4}")
        .elementwise()
        .grad(zero_gradient)
        .alias("floor_div")
        .alias("floordiv")
        .raises(Raises::integers)
        .sample("f32[2,3], f32[2,3]:(1,2)")
        .sample("i32[5]:(-9,9), i32[5]:(1,4)");

    ops.add("truncate_div(input/x: same, other/y: same)")
        .doc("Quotient rounded towards zero, as / in C.")
        .example("truncate_div(tensor{7, -7}, 2)", "tensor{3, -3}")
        .elementwise()
        .grad(zero_gradient)
        .raises(Raises::integers)
        .sample("f32[2,3], f32[2,3]:(1,2)")
        .sample("i32[5]:(-9,9), i32[5]:(1,4)");

    ops.add("remainder(input/x: same, other/y: same)")
        .doc("Remainder of the floored division, with the sign of the divisor, as % in Lua.")
        .example("remainder(tensor{7, -7}, 3)", "tensor{1, 2}")
        .elementwise()
        .grad(grad_remainder)
        .alias("floor_mod")
        .alias("floormod")
        .alias("mod")
        .raises(Raises::integers)
        .wide()
        .sample("f32[2,3]:(3.1,3.9), f32[2,3]:(1.1,1.4)")
        .sample("f32[5]:(-5.9,-5.2), f32[1]:(2.1,2.4)");

    ops.add("fmod(input/x: same, other/y: same)")
        .doc("Remainder of the division rounded towards zero, with the sign of the dividend, as fmod in C.")
        .example("fmod(tensor{7, -7}, 3)", "tensor{1, -1}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr a = g.in(0), b = g.in(1);
            return {cotangent(g, 0, [&] { return g.dout; }),
                    cotangent(g, 1, [&] { return -(g.dout * fn("trunc", a / b)); })};
        })
        .alias("truncate_mod")
        .raises(Raises::integers)
        .wide()
        .sample("f32[2,3]:(3.1,3.9), f32[2,3]:(1.1,1.4)")
        .sample("f32[5]:(-5.9,-5.2), f32[1]:(2.1,2.4)");

    ops.add("pow(input/x/self: same, exponent/y: same)")
        .doc("Power of a base, element by element; integers stay integers and refuse negative exponents.")
        .example("pow(tensor{2.0, 3.0}, 2)", "tensor{4.0, 9.0}")
        .elementwise()
        .grad(grad_pow)
        .alias("pows")
        .raises(Raises::integers)
        .specialises(1)
        .sample("f32[2,3]:(0.5,2), f32[2,3]")
        .sample("f32[5], 3")
        .sample("2.0, f32[7]");

    ops.add("float_power(input/x: float, exponent/y: float)")
        .doc("Power computed in f64.")
        .example("float_power(tensor{2, 3}, 2)", "tensor{4.0, 9.0}")
        .expand([](const ExpandCall& c) {
            return c.call("pow", {c.in(0).cast(DType::f64), c.in(1).cast(DType::f64)});
        })
        .sample("f64[2,3]:(0.5,2), f64[2,3]")
        .sample("f64[5]:(0.5,2), 3");

    ops.add("maximum(input/x: same, other/y: same)")
        .doc("The larger of two numbers, element by element; NaN if either is NaN.")
        .example("maximum(tensor{1, 5}, 3)", "tensor{3, 5}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return grad_extremum(g, "less"); })
        .sample("f32[2,3]:(0,1), f32[2,3]:(1.1,2)")
        .sample("f32[5,1]:(0,1), f32[1,7]:(-1,-0.1)");

    ops.add("minimum(input/x: same, other/y: same)")
        .doc("The smaller of two numbers, element by element; NaN if either is NaN.")
        .example("minimum(tensor{1, 5}, 3)", "tensor{1, 3}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return grad_extremum(g, "greater"); })
        .sample("f32[2,3]:(0,1), f32[2,3]:(1.1,2)")
        .sample("f32[5,1]:(0,1), f32[1,7]:(-1,-0.1)");

    ops.add("fmax(input/x: same, other/y: same)")
        .doc("The larger of two numbers; where one is NaN, the other.")
        .example("fmax(tensor{1, 5}, 3)", "tensor{3, 5}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return grad_number_extremum(g, "greater"); })
        .sample("f32[2,3]:(0,1), f32[2,3]:(1.1,2)")
        .sample("f32[5,1]:(0,1), f32[1,7]:(-1,-0.1)");

    ops.add("fmin(input/x: same, other/y: same)")
        .doc("The smaller of two numbers; where one is NaN, the other.")
        .example("fmin(tensor{1, 5}, 3)", "tensor{1, 3}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return grad_number_extremum(g, "less"); })
        .sample("f32[2,3]:(0,1), f32[2,3]:(1.1,2)")
        .sample("f32[5,1]:(0,1), f32[1,7]:(-1,-0.1)");

    ops.add("atan2(input/y: float, other/x: float)")
        .doc("Angle of the point (other, input) in (-pi, pi], with the quadrant taken from both signs.")
        .example("atan2(tensor{1.0, -1.0}, tensor{1.0, 1.0})", "tensor{0.7854, -0.7854}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            // The gradient at the origin, where there is none, is set to 0. Two divisions instead of one by the square,
            // which may overflow.
            Expr y = g.in(0), x = g.in(1), length = call("hypot", {x, y});
            Expr r = where(fn("logical_not", length), 1.0, length);
            return {cotangent(g, 0, [&] { return g.dout * (x / r / r); }),
                    cotangent(g, 1, [&] { return -(g.dout * (y / r / r)); })};
        })
        .alias("arctan2")
        .sample("f32[2,3]:(0.5,2), f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-2,-0.5), f32[1]:(-2,-0.5)");

    ops.add("hypot(input/x: float, other/y: float)")
        .doc("Length of the hypotenuse, sqrt(input^2 + other^2) without overflow on the way.")
        .example("hypot(tensor{3.0, 5.0}, tensor{4.0, 12.0})", "tensor{5.0, 13.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            // Along an axis the gradient is the sign, also at infinity; at the origin, where there is none, it is set
            // to 0.
            Expr r = where(fn("logical_not", g.out), 1.0, g.out);
            auto side = [&](size_t i) {
                Expr x = g.in(i), along = call("equal", {fn("abs", x), g.out});
                return cotangent(g, i, [&] { return g.dout * where(along, fn("sign", x), x / r); });
            };
            return {side(0), side(1)};
        })
        .sample("f32[2,3]:(0.5,2), f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-2,-0.5), f32[1]:(-2,-0.5)");

    ops.add("copysign(x/input: float, other/y: float)")
        .doc("Magnitude of x with the sign of the other operand; a NaN there counts as positive.")
        .example("copysign(tensor{1.0, 2.0}, tensor{-1.0, 1.0})", "tensor{-1.0, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr x = g.in(0);
            return {cotangent(g, 0, [&] { return g.dout * fn("sign", x) * fn("sign", g.out); }), {}};
        })
        .sample("f32[2,3]:(0.5,2), f32[2,3]:(-2,-0.5)")
        .sample("f32[5]:(-2,-0.5), f32[1]:(0.5,1)");

    // A primitive because it depends on the numbers that a dtype has, while formulas are about real numbers.
    ops.add("nextafter(input/x: float, other: float)")
        .doc("The next number of the dtype after input on the way to other; other itself where they are equal.")
        .example("(nextafter(tensor{1.0, 1.0}, tensor{2.0, 0.0}) - 1) * 2^23", "tensor{1.0, -0.5}")
        .infer(broadcast_all)
        .strided()
        .half_native()
        .batched(batch::elementwise)
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout; }), {}};
        })
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5,1], f32[1,7]");

    ops.add("logaddexp(input/x1: float, other/x2: float)")
        .doc("Computes log(exp(input) + exp(other)) without overflow.")
        .example("logaddexp(tensor{0.0, 100.0}, tensor{0.0, 0.0})", "tensor{0.6931, 100.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return grad_logadd(g, "exp"); })
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5,1], f32[1,7]");

    ops.add("logaddexp2(input/x1: float, other/x2: float)")
        .doc("Computes log2(2^input + 2^other) without overflow.")
        .example("logaddexp2(tensor{0.0, 100.0}, tensor{0.0, 0.0})", "tensor{1.0, 100.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return grad_logadd(g, "exp2"); })
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5,1], f32[1,7]");

    ops.add("xlogy(input/x: float, other/y: float)")
        .doc("Computes input * log(other), and 0 where input is 0.")
        .example("xlogy(tensor{0.0, 2.0}, tensor{0.0, 1.0})", "tensor{0.0, 0.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            // Where x is 0 and y has no logarithm the result is 0 as well, and does not change with x.
            Expr x = g.in(0), y = g.in(1);
            auto logarithm = [&] {
                Expr flat = call("logical_and", {call("equal", {x, 0.0}), call("less_equal", {y, 0.0})});
                return fn("log", where(flat, 1.0, y));
            };
            return {cotangent(g, 0, [&] { return g.dout * logarithm(); }), cotangent(g, 1, [&] {
                        return g.dout * call("xdivy", {x, y});
                    })};
        })
        .sample("f32[2,3], f32[2,3]:(0.5,2)")
        .sample("f32[5,1], f32[1,7]:(0.5,2)");

    ops.add("xdivy(input/x: float, other/y: float)")
        .doc("Computes input / other, and 0 where input is 0.")
        .example("xdivy(tensor{0.0, 3.0}, tensor{0.0, 2.0})", "tensor{0.0, 1.5}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr y = g.in(1);
            return {cotangent(g, 0, [&] { return g.dout / y; }), cotangent(g, 1, [&] {
                        return -(g.dout * call("xdivy", {g.out, y}));
                    })};
        })
        .wide()
        .sample("f32[2,3], f32[2,3]:(0.5,2)")
        .sample("f32[5,1], f32[1,7]:(0.5,2)");

    ops.add("heaviside(input/x: float, values: float)")
        .doc("0 for negative and 1 for positive numbers; at 0 the second operand.")
        .example("heaviside(tensor{-1.0, 0.0, 2.0}, tensor{0.5})", "tensor{0.0, 0.5, 1.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {{}, cotangent(g, 1, [&] { return where(call("equal", {g.in(0), 0.0}), g.dout, 0.0); })};
        })
        .sample("f32[2,3]:(0.5,2), f32[2,3]")
        .sample("f32[5]:(-2,-0.5), f32[1]");

    ops.add("gcd(input/x1: same, other/x2: same)")
        .doc("Greatest common divisor of two integers.")
        .example("gcd(tensor{12, 7}, tensor{18, 5})", "tensor{6, 1}")
        .infer([](const Call& c) -> Types {
            if (!is_integer(c.dtype)) throw dtype_error(c.name(), str("takes integers, not ", name_of(c.dtype)));
            return broadcast_all(c);
        })
        .elementwise()
        .no_grad("the result is an integer")
        .sample("i32[5]:(1,99), i32[5]:(1,99)")
        .sample("i64[2,3]:(-9,9), i64[3]:(1,9)");

    ops.add("lcm(input/x1: same, other/x2: same)")
        .doc("Least common multiple of two integers.")
        .example("lcm(tensor{4, 6}, tensor{6, 8})", "tensor{12, 24}")
        .infer([](const Call& c) -> Types {
            if (!is_integer(c.dtype)) throw dtype_error(c.name(), str("takes integers, not ", name_of(c.dtype)));
            return broadcast_all(c);
        })
        .elementwise()
        .no_grad("the result is an integer")
        .sample("i32[5]:(1,99), i32[5]:(1,99)")
        .sample("i64[2,3]:(-9,9), i64[3]:(1,9)");

    ops.add("ldexp(x/input: float, other: float)")
        .doc("Computes x * 2^other.")
        .example("ldexp(tensor{1.0, 3.0}, tensor{3, 1})", "tensor{8.0, 6.0}")
        .expand([](const ExpandCall& c) { return c.in(0) * fn("exp2", c.in(1)); })
        .wide()
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[5], i32[5]:(-3,3)");
}

void add_ternary_ops(Registry& ops) {
    ops.add("clamp(input/x: same, min/clip_value_min: same? = nil, max/clip_value_max: same? = nil)")
        .doc("Numbers moved into the range from min to max; either limit may be missing.")
        .example("clamp(tensor{-2, 0, 7}, -1, 3)", "tensor{-1, 0, 3}")
        .elementwise()
        .grad(grad_clamp)
        .alias("clip")
        .alias("clip_by_value")
        .sample("f32[2,3], -0.45, 0.55")
        .sample("f32[5,3], min=f32[3]:(-0.5,-0.4)")
        .sample("f32[7], max=0.35");

    ops.add("lerp(input/start: float, end/stop: float, weight: float)")
        .doc("Linear interpolation: input + weight * (end - input).")
        .example("lerp(tensor{0.0, 10.0}, tensor{4.0, 20.0}, 0.25)", "tensor{1.0, 12.5}")
        .elementwise()
        .grad(grad_lerp)
        .sample("f32[2,3], f32[2,3], 0.3")
        .sample("f32[5], f32[5], f32[5]:(0.6,0.9)");

    ops.add("addcmul(input: float, tensor1: float, tensor2: float, value: float = 1)")
        .doc("Computes input + value * tensor1 * tensor2.")
        .example("addcmul(tensor{1.0}, tensor{2.0}, tensor{3.0}, 0.5)", "tensor{4.0}")
        .elementwise()
        .grad(grad_addcmul)
        .sample("f32[2,3], f32[2,3], f32[3], 0.5")
        .sample("f32[5], f32[5], f32[5]");

    ops.add("addcdiv(input: float, tensor1: float, tensor2: float, value: float = 1)")
        .doc("Computes input + value * tensor1 / tensor2.")
        .example("addcdiv(tensor{1.0}, tensor{6.0}, tensor{3.0}, 0.5)", "tensor{2.0}")
        .elementwise()
        .grad(grad_addcdiv)
        .sample("f32[2,3], f32[2,3], f32[3]:(1,2), 0.5")
        .sample("f32[5], f32[5], f32[5]:(-2,-1)");
}

void add_clipping_ops(Registry& ops) {
    ops.add(
           "clip_by_norm(x/input: float, max_norm/clip_norm: number, norm_type: number = 2.0, error_if_nonfinite: bool "
           "= false)")
        .doc(
            "Scaled down, if need be, so that the norm over all elements is at most max_norm; clip_by_global_norm does "
            "it for a list of tensors together.")
        .example("clip_by_norm(tensor{3.0, 4.0}, 1.0)", "tensor{0.6, 0.8}")
        .expand([](const ExpandCall& c) {
            Expr x = c.in(0);
            double p = c.number(2);
            if (c.boolean(3))
                throw argument_error(c.name(), "error_if_nonfinite must be false: elements are not looked at here")
                    .hint("ask ms.amp.all_finite(x) before");
            // Unlike the root of a sum of squares it overflows only where the norm itself does.
            Expr norm = c.call("vector_norm", {x, p});
            Expr factor = c.call("minimum", {c.number(1) / (norm + 1e-6), 1.0});
            return x * factor;
        })
        .wide()
        .sample("f32[2,3], 0.5")
        .sample("f32[5], 0.7, 1.0");

    ops.add("clip_by_global_norm(x: tensors, clip_norm: number = 1.0, use_norm: number? = nil)")
        .doc("A list of tensors scaled together, if need be, so that their common 2-norm is at most clip_norm.")
        .example("clip_by_global_norm({tensor{3.0}, tensor{4.0}}, 1.0)", "tensor{0.6}")
        .expand([](const ExpandCall& c) {
            Expr x = c.in(0), norm;
            size_t count = c.types(0).size();
            if (c.has(2)) {
                norm = c.call("full", {Shape{}, c.number(2), x[0].dtype()});
            } else {
                std::vector<Expr> norms;
                for (size_t i = 0; i < count; ++i) norms.push_back(c.call("vector_norm", {x[i]}));
                norm = c.call("vector_norm", {c.call("stack", {c.builder.list(norms)})});
            }
            Expr factor = c.number(1) / c.call("maximum", {norm, c.number(1)});
            std::vector<Expr> scaled;
            for (size_t i = 0; i < count; ++i) scaled.push_back(x[i] * factor);
            return c.builder.list(scaled);
        })
        .wide()
        .sample("{f32[2,3], f32[4]}, 0.5")
        .sample("{f32[5]}");
}

}  // namespace

void add_math_ops(Registry& ops) {
    add_binary_ops(ops);
    add_ternary_ops(ops);
    add_clipping_ops(ops);
    add_function_ops(ops);
}

}  // namespace lunaria
