// Operators: gradients of activation functions that take much of a training's time, each one pass over memory instead
// of one per operation of its formula. `dy` is the cotangent of the result y; the slope is computed from y (or from the
// operand x).
#include "core/ops/elementwise.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

// An operator that is linear in dy: its own gradient by dy is the operator itself. `curvature` gives the factor of dy
// in the gradient by the other operand.
template <class Curvature>
Op& gradient(Registry& ops, SignatureText signature, const char* doc, Curvature) {
    return ops.add(signature)
        .doc(doc)
        .elementwise()
        .method(false)
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0,
                              [&] {
                                  return call(g.name(), {g.dout, g.in(1)});
                              }),
                    cotangent(g, 1, [&] { return g.dout * g.in(0) * Curvature{}(g.in(1)); })};
        })
        .linear({0})
        .sample("f32[2,3], f32[2,3]:(0.1,0.9)")
        .sample("f32[5], f32[5]:(-0.9,-0.1)");
}

}  // namespace

void add_activation_grad_ops(Registry& ops) {
    ops.add("relu_grad(dy: float, y: float)")
        .doc("Gradient of relu: dy where the result y is positive, otherwise 0.")
        .example("relu_grad(tensor{3.0, 4.0}, tensor{0.0, 2.0})", "tensor{0.0, 4.0}")
        .elementwise()
        .method(false)
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return call("relu_grad", {g.dout, g.in(1)}); }), {}};
        })
        .linear({0})
        .sample("f32[2,3], f32[2,3]:(0.1,2)")
        .sample("f32[5], f32[5]:(-2,-0.1)");

    gradient(ops, "tanh_grad(dy: float, y: float)", "Gradient of tanh by its result y.", [](const Expr& y) {
        return y * -2.0;
    }).example("tanh_grad(tensor{2.0}, tensor{0.5})", "tensor{1.5}");

    gradient(ops, "sigmoid_grad(dy: float, y: float)", "Gradient of sigmoid by its result y.", [](const Expr& y) {
        return 1.0 - y * 2.0;
    }).example("sigmoid_grad(tensor{2.0}, tensor{0.5})", "tensor{0.5}");

    gradient(ops, "silu_grad(dy: float, x: float)", "Gradient of silu by its operand x.", [](const Expr& x) {
        Expr s = fn("sigmoid", x);
        return s * (1.0 - s) * (within_slope(x) * (1.0 - s * 2.0) + 2.0);
    }).example("silu_grad(tensor{2.0}, tensor{0.0})", "tensor{1.0}");

    gradient(ops, "gelu_erf_grad(dy: float, x: float)", "Gradient of gelu by its operand x.", [](const Expr& x) {
        Expr xx = fn("square", within_slope(x));
        return fn("exp", xx * -0.5) * 0.39894228040143267794 * (2.0 - xx);
    }).example("gelu_erf_grad(tensor{2.0}, tensor{0.0})", "tensor{1.0}");

    gradient(ops, "gelu_tanh_grad(dy: float, x: float)", "Gradient of the tanh approximation of gelu by its operand x.",
             [](const Expr& operand) {
                 const Expr x = within_slope(operand);
                 // The second derivative of x s(u), with u = 2 sqrt(2 / pi) (x + 0.044715 x^3) and s the sigmoid.
                 constexpr double c = 1.5957691216057307118, cubic = 0.044715 * c;
                 Expr xx = x * x, s = fn("sigmoid", x * (xx * cubic + c));
                 Expr slope = xx * (3 * cubic) + c, steep = s * (1.0 - s);
                 return steep * (slope * (x * (1.0 - s * 2.0) * slope + 2.0) + xx * (6 * cubic));
             })
        .example("gelu_tanh_grad(tensor{2.0}, tensor{0.0})", "tensor{1.0}");
}

}  // namespace lunaria
