// Operators: linear systems from factors, least squares, and norms and distances that are made of other operators.
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

void expect_square(const Call& c, size_t i) {
    expect_rank_at_least(c, i, 2);
    const Shape s = c.shape(i);
    if (s[s.rank() - 2] != s.back())
        throw shape_error(c.name(), str(param_name(c, i), " must be a square matrix or a batch of them, not ", s));
}

Expr triangle(const ExpandCall& c, size_t i, bool upper) { return c.call(upper ? "triu" : "tril", {c.in(i)}); }

// The solution x of factor factor^T x = rhs (upper: of factor^T factor x = rhs).
Expr solved_by_cholesky(const ExpandCall& c, const Expr& factor, bool upper, const Expr& rhs) {
    return c.call("matrix_solve", {factor, c.call("matrix_solve", {factor, rhs, upper}), !upper});
}

Expr expand_cholesky_solve(const ExpandCall& c) {
    expect_square(c, 1);
    return solved_by_cholesky(c, triangle(c, 1, c.boolean(2)), c.boolean(2), c.in(0));
}

Expr expand_cholesky_inverse(const ExpandCall& c) {
    expect_square(c, 0);
    const Shape s = c.shape(0);
    const Expr identity = c.call("eye", {s.back(), s.back(), c.dtype}).broadcast_to(s);
    return solved_by_cholesky(c, triangle(c, 0, c.boolean(1)), c.boolean(1), identity);
}

Expr expand_lstsq(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    expect_rank_at_least(c, 1, 1);
    const Shape a = c.shape(0), b = c.shape(1);
    const bool vector = b.rank() == a.rank() - 1;
    const int row_axis = vector ? b.rank() - 1 : b.rank() - 2;
    if (row_axis < 0 || b[row_axis] != a[a.rank() - 2])
        throw shape_error(c.name(), str("input is ", a, " and A is ", b, ": both must have as many rows"));
    Expr rhs = c.in(1);
    if (vector) {
        Shape column = b;
        column.push_back(1);
        rhs = rhs.reshape(column);
    }
    const Expr x = matmul(c.call("pinv", {c.in(0)}), rhs);
    if (!vector) return x;
    Shape s = x.shape();
    s.erase(s.rank() - 1);
    return x.reshape(s);
}

Expr expand_cond(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    const Value& p = c.args[1];
    const bool two = p.is_nil() || (p.is_number() && std::abs(p.number()) == 2);
    if (two) {
        const Expr s = c.call("svd", {c.in(0), {"compute_uv", false}});
        const Expr most = c.call("amax", {s, -1}), least = c.call("amin", {s, -1});
        return p.is_number() && p.number() < 0 ? least / most : most / least;
    }
    expect_square(c, 0);
    return c.call("matrix_norm", {c.in(0), p}) * c.call("matrix_norm", {c.call("inverse", {c.in(0)}), p});
}

Expr expand_pdist(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    const Shape s = c.shape(0);
    const int64_t n = s[s.rank() - 2], pairs = n < 2 ? 0 : n * (n - 1) / 2;
    Shape flat = s;
    flat.resize(s.rank() - 2);
    Shape out = flat;
    flat.push_back(n * n);
    out.push_back(pairs);
    const Expr all = c.call("cdist", {c.in(0), c.in(0), c.number(1)});
    if (out.size() == 0) return all.reshape(flat).sum({-1}).reshape(Shape{}).broadcast_to(out);
    std::vector<int64_t> upper;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = i + 1; j < n; ++j) upper.push_back(i * n + j);
    const Expr places = c.builder.constant(Tensor::from<int64_t>(upper, {pairs}));
    return c.call("index_select", {all.reshape(flat), flat.rank() - 1, places});
}

Expr expand_renorm(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    const int axis = c.axis(2, 0);
    if (!(c.number(1) > 0)) throw value_error(c.name(), str("p must be positive, not ", c.number(1)));
    if (!(c.number(3) >= 0)) throw value_error(c.name(), str("maxnorm must not be negative, not ", c.number(3)));
    Shape others = all_axes(c.rank(0));
    others.erase(axis);
    const Expr norm = c.call("vector_norm", {c.in(0), c.args[1], others, true});
    const Expr factor = where(c.call("greater", {norm, c.number(3)}), c.number(3) / (norm + 1e-7), 1.0);
    return c.in(0) * factor;
}

Expr expand_vecdot(const ExpandCall& c) {
    const Shape shape = broadcast(c.name(), c.shape(0), c.shape(1));
    const int axis = normal_axis(c.name(), c.integer(2), shape.rank(), "axis");
    return (c.in(0) * c.in(1)).sum({axis});
}

// The contracted axes of batch_dot, counted from 0.
std::pair<int, int> contracted(const Call& c) {
    const int first = c.rank(0), second = c.rank(1);
    if (!c.has(2)) {
        if (first == 2 || second == 2) return {first - 1, 1};
        return {first - 1, second - 2};
    }
    const auto axes = c.ints(2);
    if (axes.empty() || axes.size() > 2)
        throw value_error(c.name(),
                          str("axes must be one axis or one for each operand, not ", axes.size(), " numbers"));
    const int a = normal_axis(c.name(), axes.front(), first, "axes"),
              b = normal_axis(c.name(), axes.back(), second, "axes");
    if (a == 0 || b == 0) throw value_error(c.name(), "axes must not name axis 0, the batch");
    return {a, b};
}

Expr expand_batch_dot(const ExpandCall& c) {
    for (size_t i : {0, 1}) expect_rank_at_least(c, i, 2);
    const Shape a = c.shape(0), b = c.shape(1);
    const auto [i, j] = contracted(c);
    if (a[0] != b[0] || a[i] != b[j])
        throw shape_error(c.name(), str("x1 is ", a, " and x2 is ", b, ": axis 0 and the axes ", i, " and ", j,
                                        ", which are multiplied, must have equal sizes"));
    // The axes are reordered to (batch, rest, contracted) and (batch, contracted, rest).
    Shape first_order, second_order{0, j}, out{a[0]};
    int64_t rows = 1, columns = 1;
    for (int axis = 0; axis < a.rank(); ++axis) {
        if (axis == i) continue;
        first_order.push_back(axis);
        if (axis == 0) continue;
        out.push_back(a[axis]);
        rows *= a[axis];
    }
    first_order.push_back(i);
    for (int axis = 1; axis < b.rank(); ++axis) {
        if (axis == j) continue;
        second_order.push_back(axis);
        out.push_back(b[axis]);
        columns *= b[axis];
    }
    const Expr product = c.call("bmm", {c.in(0).transpose(first_order).reshape({a[0], rows, a[i]}),
                                        c.in(1).transpose(second_order).reshape({a[0], a[i], columns})});
    if (out.rank() == 1) out.push_back(1);
    return product.reshape(out);
}

Expr expand_bidense(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 1);
    expect_rank_at_least(c, 1, 1);
    expect_rank(c, 2, 3);
    const Shape a = c.shape(0), b = c.shape(1), w = c.shape(2);
    Shape batch = a;
    batch.resize(a.rank() - 1);
    Shape other = b;
    other.resize(b.rank() - 1);
    if (!(batch == other) || a.back() != w[1] || b.back() != w[2])
        throw shape_error(c.name(), str("input1 is ", a, ", input2 is ", b, " and weight is ", w,
                                        ": their last axes must have the sizes of the weight's last two, and all "
                                        "others must be equal"));
    const int64_t n = batch.size(), features = w[0];
    // Row n of the product, as a matrix (out, in1), times the row of input1.
    const Expr half =
        matmul(c.in(1).reshape({n, b.back()}), c.in(2).reshape({features * w[1], w[2]}).transpose({1, 0}));
    Expr out = (half.reshape({n, features, w[1]}) * c.in(0).reshape({n, 1, a.back()})).sum({2});
    if (c.has(3)) out = out + c.in(3);
    batch.push_back(features);
    return out.reshape(batch);
}

}  // namespace

void add_system_ops(Registry& ops) {
    ops.add("cholesky_solve(input/B: float, input2/L: float, upper: bool = false)")
        .doc("Solves A x = input where input2 is the Cholesky factor of A: A = L L^T, or U^T U with upper.")
        .example("cholesky_solve(tensor{{8.0}}, tensor{{2.0}})", "tensor{{2.0}}")
        .expand(expand_cholesky_solve)
        .wide()
        .sample("f32[3,2], f32[3,3]:(1,2)")
        .sample("f32[2,3,2], f32[2,3,3]:(1,2), upper=true");
    ops.add("cholesky_inverse(input_x/input/L: float, upper: bool = false)")
        .doc("Inverse of the matrix of which input_x is the Cholesky factor.")
        .example("cholesky_inverse(tensor{{2.0}})", "tensor{{0.25}}")
        .expand(expand_cholesky_inverse)
        .wide()
        .sample("f32[3,3]:(1,2)")
        .sample("f32[2,2]:(1,2), true");
    ops.add("lstsq(input/x: float, A/B/other: float)")
        .doc("The x of least norm among those for which input x is nearest to A (a matrix, or one column as a vector).")
        .example("lstsq(tensor{{1.0}, {1.0}}, tensor{{1.0}, {3.0}})", "tensor{{2.0}}")
        .expand(expand_lstsq)
        .wide()
        .sample("f32[4,2], f32[4,3]")
        .sample("f32[2,3], f32[2]");
    ops.add("cond(A/x/input: float, p: any = nil)")
        .doc(
            "Condition number of matrices: the largest singular value by the smallest, or for another norm p (\"fro\", "
            "\"nuc\", 1, -1, -2, inf, -inf) the norm times that of the inverse.")
        .example("cond(tensor{{4.0, 0.0}, {0.0, 2.0}})", "tensor(2.0)")
        .expand(expand_cond)
        .wide()
        .sample("f32[3,3]:(0,1)")
        .sample("f32[2,2]:(1,3), \"fro\"")
        .sample("f32[2,3,3]:(0,1), 1");
    ops.add("eigvals(A/input/x: float)")
        .doc("Complex eigenvalues of a square matrix.")
        .example("eigvals(tensor{{2.0}})", "cast(tensor{2.0}, \"complex64\")")
        .expand([](const ExpandCall& c) { return c.call("eig", {c.in(0)})[0]; })
        .sample("f32[3,3]");
    ops.add("dist(input/x: float, other/y: float, p: number = 2.0)")
        .doc("The p-norm of the difference of two tensors.")
        .example("dist(tensor{1.0, 2.0}, tensor{4.0, 6.0})", "tensor(5.0)")
        .expand([](const ExpandCall& c) {
            return c.call("vector_norm", {c.in(0) - c.in(1), c.args[2]});
        })
        .wide()
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[2,3], f32[3], 3.0");
    ops.add("pdist(input/x: float, p: number = 2.0)")
        .doc(
            "Distances, in the p-norm, of all pairs of rows of a matrix: of row 0 to all that follow, then of row 1 "
            "and so on.")
        .example("pdist(tensor{{0.0, 0.0}, {3.0, 4.0}, {3.0, 0.0}})", "tensor{5.0, 3.0, 4.0}")
        .expand(expand_pdist)
        .wide()
        .sample("f32[4,3]")
        .sample("f32[2,3,2], 3.0");
    ops.add("renorm(input/x: float, p: number, axis/dim: int, maxnorm: number)")
        .doc("The parts of input along an axis, scaled down to the p-norm maxnorm where theirs is larger.")
        .example("renorm(tensor{{3.0, 4.0}, {0.3, 0.4}}, 2, 0, 1.0)", "tensor{{0.6, 0.8}, {0.3, 0.4}}")
        .expand(expand_renorm)
        .wide()
        .sample("f32[3,4], 2, 0, 1.5")
        .sample("f32[2,3,2], 1, 1, 2.0");
    ops.add("vecdot(x/input: same, y/other: same, axis/dim: int = -1)")
        .doc("Dot products of the vectors along an axis.")
        .example("vecdot(tensor{{1.0, 2.0}, {3.0, 4.0}}, tensor{1.0, 1.0})", "tensor{3.0, 7.0}")
        .expand(expand_vecdot)
        .wide()
        .sample("f32[2,3], f32[2,3]")
        .sample("f32[2,3,4], f32[3,1], axis=1");
    ops.add("batch_dot(x1/x: float, x2/y: float, axes: ints? = nil)")
        .doc(
            "Products of the tensors in two batches, summed over one axis of each: by default the last of x1 and the "
            "one before the last of x2.")
        .example("batch_dot(tensor{{1.0, 2.0}}, tensor{{3.0, 4.0}})", "tensor{{11.0}}")
        .expand(expand_batch_dot)
        .sample("f32[2,3,4], f32[2,4,5]")
        .sample("f32[2,3,4], f32[2,4], {2, 1}")
        .sample("f32[3,2], f32[3,2]");
    ops.add("bidense(input1: float, input2: float, weight: float, bias: float? = nil)")
        .doc("Bilinear layer: input1^T weight[k] input2 for every output feature k, plus the bias.")
        .example("bidense(tensor{{1.0, 2.0}}, tensor{{3.0}}, tensor{{{1.0}, {1.0}}})", "tensor{{9.0}}")
        .expand(expand_bidense)
        .wide()
        .sample("f32[4,3], f32[4,2], f32[5,3,2], f32[5]")
        .sample("f32[2,3,4], f32[2,3,2], f32[1,4,2]");
}

}  // namespace lunaria
