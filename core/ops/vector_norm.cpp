// Operators: norms of vectors and matrices.
#include <cmath>
#include <limits>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
}

double norm_order(const Value& v) {
    if (v.is_nil()) return 2;
    if (v.is_number()) return v.number();
    const std::string_view word = v.kind() == Value::Kind::string ? std::string_view(v.string()) : "";
    return word == "inf" ? kInf : word == "-inf" ? -kInf : std::numeric_limits<double>::quiet_NaN();
}

namespace {

double vector_order(const Call& call, size_t i) {
    const Value& v = call.args[i];
    const double order = norm_order(v);
    if (v.is_number() || !std::isnan(order)) return order;
    throw argument_error(call.name(), str("ord must be a number, \"inf\" or \"-inf\" for vectors, not ", to_string(v)));
}

DType norm_dtype(const Call& call, size_t i) {
    DType t = call.dtype_or(i, part_of(call.dtype));
    if (!is_float(t)) throw dtype_error(call.name(), str("dtype must be a float type, not ", name_of(t)));
    return t;
}

// vector_norm(x, ord, axis, keepdims, dtype)
Types infer_vector_norm(const Call& call) {
    double order = vector_order(call, 1);
    if (std::isnan(order)) throw value_error(call.name(), "ord must not be NaN");
    Shape axes = call.axes(2, 0);
    if (order < 0 || order == kInf) expect_not_empty(call, axes);
    return {{norm_dtype(call, 4), reduced_shape(call.shape(0), axes, call.boolean(3))}};
}

// x in the dtype in which a norm of dtype t is computed.
Expr computed_in(const Expr& x, DType t) { return x.cast(is_complex(x.dtype()) ? complex_of(t) : t); }

// x / |x|, and 0 where x is 0.
Expr direction_of(const Expr& x) {
    if (!is_complex(x.dtype())) return call("sign", {x});
    const Expr size = call("abs", {x});
    return x / call("where", {call("equal", {size, 0.0}), 1.0, size});
}

// The gradient at 0 is 0: the norm has a corner there, and dividing by 1 instead of the norm keeps the zeros.
Grads grad_vector_norm(const GradRule& g) {
    double order = vector_order(g, 1);
    Shape axes = g.axes(2, 0);
    Expr x = computed_in(g.in(0), g.dout.dtype());
    Expr out = keep_axes(g.out, g.shape(0), axes), dout = keep_axes(g.dout, g.shape(0), axes);
    Expr safe = call("where", {call("equal", {out, 0.0}), g.builder.ones_like(out), out});
    Expr dx;
    if (order == 0) {
        dx = g.builder.zeros_like(x);
    } else if (order == 1) {
        dx = dout * direction_of(x);
    } else if (order == 2) {
        dx = x * (dout / safe);
    } else if (std::isinf(order)) {
        Expr size = call("abs", {x});
        Expr chosen = call("equal", {size, out}).cast(out.dtype());
        dx = chosen * direction_of(x) * (dout / chosen.sum(axes, true));
    } else {
        // |x| / norm is at most 1 for positive orders, so that its power does not overflow.
        Expr ratio = call("abs", {x}) / safe;
        dx = direction_of(x) * call("pow", {ratio, order - 1}) * dout;
        if (order < 1) dx = call("where", {call("equal", {x, 0.0}), g.builder.zeros_like(dx), dx});
    }
    return {dx.cast(g.type(0).dtype)};
}

// matrix_norm of the last two axes named by `axes`.
Expr matrix_norm(const ExpandCall& c, const Expr& x, const Value& order, const Shape& axes, bool keep) {
    Shape row{axes[0]}, column{axes[1]};
    std::string text = order.is_nil() ? "fro" : order.kind() == Value::Kind::string ? order.string() : "";
    double number = order.is_number() ? order.number() : text == "inf" ? kInf : text == "-inf" ? -kInf : 0;
    if (text == "fro") return call("vector_norm", {x, 2.0, axes, keep});
    bool smallest = number < 0;
    if (std::abs(number) == 1 || std::isinf(number)) {
        // The largest (smallest) sum of a column for 1, of a row for infinity. The remaining axis is reduced last.
        bool by_column = !std::isinf(number);
        Expr sums = call("abs", {x}).sum(by_column ? row : column, true);
        Expr norm = call(smallest ? "amin" : "amax", {sums, by_column ? column : row, true});
        return keep ? norm : norm.reshape(reduced_shape(x.shape(), axes, false));
    }
    if (text == "nuc" || std::abs(number) == 2) {
        Shape perm;
        for (int i = 0; i < x.rank(); ++i)
            if (i != axes[0] && i != axes[1]) perm.push_back(i);
        perm.push_back(axes[0]);
        perm.push_back(axes[1]);
        Expr values = call("svd", {x.transpose(perm), {"compute_uv", false}});
        Expr norm = text == "nuc" ? values.sum({values.rank() - 1})
                                  : call(smallest ? "amin" : "amax", {values, values.rank() - 1});
        return keep ? keep_axes(norm, x.shape(), axes) : norm;
    }
    throw value_error(
        c.name(), str("ord must be \"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf for matrices, not ", to_string(order)));
}

// As numpy's linalg.norm: without `ord` the 2-norm of all elements; with one axis a vector norm, with two a matrix
// norm.
Expr expand_norm(const ExpandCall& c) {
    DType t = norm_dtype(c, 4);
    Expr x = computed_in(c.in(0), t);
    bool keep = c.boolean(3);
    if (!c.has(1)) return call("vector_norm", {x, 2.0, c.args[2], keep});
    Shape axes = c.axes(2, 0);
    if (!c.has(2) && c.rank(0) > 2)
        throw shape_error(c.name(),
                          str("with ord and without dim the tensor must have one or two axes, not shape ", c.shape(0)))
            .hint("give dim, or leave ord out for the norm of all elements");
    if (axes.rank() > 2)
        throw value_error(c.name(), str("dim must name one axis (vectors) or two (matrices), not ", axes.rank()));
    if (axes.rank() == 2) return matrix_norm(c, x, c.args[1], axes, keep);
    return call("vector_norm", {x, c.args[1], axes, keep});
}

Expr expand_matrix_norm(const ExpandCall& c) {
    Shape axes = c.axes(2, 0);
    if (axes.rank() != 2) throw value_error(c.name(), str("axis must name two axes, not ", axes.rank()));
    Expr x = computed_in(c.in(0), norm_dtype(c, 4));
    return matrix_norm(c, x, c.args[1], axes, c.boolean(3));
}

}  // namespace

void add_vector_norm_ops(Registry& ops) {
    ops.add(
           "vector_norm(x/A/input: float, ord/p: any = 2, axis/dim: ints? = nil, keepdims/keepdim/keep_dims: bool = "
           "false, *, dtype: dtype? = nil)")
        .doc(
            "Norm of the vectors along the given axes, or of all elements: the ord-th root of the sum of |x|^ord; the "
            "largest |x| for inf, the number of nonzero elements for 0. Of complex numbers it is real.")
        .example("vector_norm(tensor{3.0, 4.0})", "tensor(5.0)")
        .infer(infer_vector_norm)
        .grad(grad_vector_norm)
        .batched(batch::reduction<2>)
        .wide()
        .cut("@reduce &")
        .sample("f32[3,5], 2, axis=1")
        .sample("f32[3,5], 3, axis=0, keepdims=true")
        .sample("f32[7], 1")
        .sample("f32[3,5], inf, axis=1")
        .sample("f32[3,5]:(0.5,2), 2.5");
    ops.add(
           "norm(A/x/input: float, ord/p: any = nil, dim/axis: ints? = nil, keepdim/keepdims/keep_dims: bool = false, "
           "*, dtype: dtype? = nil)")
        .doc("Vector or matrix norm: of all elements without ord, of vectors along one axis, of matrices along two.")
        .example("norm(tensor{{3.0, 0.0}, {0.0, 4.0}})", "tensor(5.0)")
        .expand(expand_norm)
        .wide()
        .sample("f32[3,5]")
        .sample("f32[3,5], \"fro\", {0,1}, true")
        .sample("f32[3,5], 1, -1")
        .sample("f32[3,5], 1, {0,1}")
        .sample("f32[2,3,4], inf, {0,2}");
    ops.add(
           "matrix_norm(A/x/input: float, ord: any = \"fro\", axis/dim: ints = {-2, -1}, keepdims/keepdim/keep_dims: "
           "bool = false, *, dtype: dtype? = nil)")
        .doc(
            "Norm of the matrices in two axes: \"fro\" (Frobenius), \"nuc\" (nuclear), or the number 1, -1, 2, -2, "
            "inf, -inf.")
        .example("matrix_norm(tensor{{1.0, 2.0}, {3.0, 4.0}}, 1)", "tensor(6.0)")
        .expand(expand_matrix_norm)
        .wide()
        .sample("f32[3,5]")
        .sample("f32[2,3,4], inf, keepdims=true");
}

}  // namespace lunaria
