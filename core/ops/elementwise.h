// Functions that the entries of elementwise operators share.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

// Called by add_math_ops: functions of one number.
void add_function_ops(Registry& ops);

inline Expr fn(std::string_view op, const Expr& x) { return call(op, {x}); }
inline Expr where(const Expr& mask, const Arg& a, const Arg& b) { return call("where", {mask, a, b}); }

// The cotangent of operand i, made by `dx` only if the operand is a float tensor: summed over the axes along which it
// was broadcast and converted back from the dtype of the computation.
template <class F>
Expr cotangent(const GradRule& g, size_t i, F&& dx) {
    const Value& v = g.args[i];
    if (!v.is_tensor() && !v.is_node()) return {};
    TensorType t = g.type(i);
    if (!is_float(t.dtype) && !is_complex(t.dtype)) return {};
    return g.unbroadcast(dx(), i).cast(t.dtype);
}

// A derivative as the factor of a cotangent. Cotangents of complex numbers x + iy are dL/dx + i dL/dy, twice the
// Wirtinger derivative by the conjugate: the direction in which a real loss L grows fastest. So the factor is the
// conjugate of the derivative where the function has a complex one.
inline Expr mirrored(const Expr& slope) { return is_complex(slope.dtype()) ? fn("conjugate", slope) : slope; }
inline double mirrored(double slope) { return slope; }

// As in formulas_gradient.h: infinity times a slope of 0 would be NaN.
inline Expr within_slope(const Expr& x) { return call("clamp", {x, -1000.0, 1000.0}); }

// The gradient is zero wherever it exists.
inline Grads zero_gradient(const GradRule& g) { return Grads(g.args.size()); }

// A composite of one argument list under another name: ops that only rename or reorder.
inline constexpr const char* kPiecewiseConstant = "the result is piecewise constant";

}  // namespace lunaria
