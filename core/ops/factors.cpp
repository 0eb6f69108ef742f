// Operators: factors of matrices that are kept to solve systems with: LU, triangles, Householder reflections.
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

Shape leading(const Shape& s, int dropped) {
    Shape batch = s;
    batch.resize(s.rank() - dropped);
    return batch;
}

Shape with_last(Shape batch, std::initializer_list<int64_t> last) {
    for (int64_t n : last) batch.push_back(n);
    return batch;
}

void expect_square(const Call& c, size_t i) {
    expect_rank_at_least(c, i, 2);
    const Shape s = c.shape(i);
    if (s[s.rank() - 2] != s.back())
        throw shape_error(c.name(), str(param_name(c, i), " must be a square matrix or a batch of them, not ", s));
}

// `rows` x `columns` with ones on the diagonal.
Expr identity(const ExpandCall& c, int64_t rows, int64_t columns) { return c.call("eye", {rows, columns, c.dtype}); }

Types infer_lu_factor(const Call& c) {
    expect_rank_at_least(c, 0, 2);
    const Shape s = c.shape(0);
    return {{c.dtype, s}, {DType::i32, with_last(leading(s, 2), {std::min(s[s.rank() - 2], s.back())})}};
}

// With a = p l u: da = p l^-H (tril(l^H dl, -1) + triu(du u^H)) u^-H (M. Seeger and others, 2017).
Grads lu_factor_grad(const GradRule& g) {
    const Shape s = g.shape(0);
    const int64_t n = s.back();
    if (s[s.rank() - 2] != n) throw value_error(g.name(), "there is a gradient for square matrices only");
    const Expr lu = g.outs[0], d = g.douts[0];
    if (!d) return {Expr()};
    const Expr l = call("tril", {lu, -1}) + identity(g, n, n), u = call("triu", {lu});
    const Expr dl = call("tril", {d, -1}), du = call("triu", {d});
    const Expr phi = call("tril", {matmul(adjoint(l), dl), -1}) + call("triu", {matmul(du, adjoint(u))});
    const Expr left = g.call("solve_triangular", {mirrored(l), phi, true, true, true});
    // left u^-H is the adjoint of u^-1 left^H.
    const Expr both = adjoint(g.call("solve_triangular", {u, adjoint(left), false, false, false}));
    return {matmul(g.call("permutation_of_pivots", {g.outs[1], n, g.dtype}), both)};
}

Types infer_permutation(const Call& c) {
    expect_rank_at_least(c, 0, 1);
    const int64_t n = c.integer(1);
    expect_not_negative(c, 1, n);
    if (n > 32768) throw value_error(c.name(), str("n is ", n, ": matrices have at most 32768 rows"));
    const DType dtype = c.dtype_or(2, DType::f32);
    if (!is_float(dtype) && !is_complex(dtype))
        throw dtype_error(c.name(), str("dtype must be a float or complex, not ", name_of(dtype)));
    return {{dtype, with_last(leading(c.shape(0), 1), {n, n})}};
}

Types infer_solve_triangular(const Call& c) {
    expect_square(c, 0);
    expect_rank_at_least(c, 1, 2);
    const Shape a = c.shape(0), b = c.shape(1);
    if (!(leading(a, 2) == leading(b, 2)) || b[b.rank() - 2] != a.back())
        throw shape_error(c.name(), str("a is ", a, " and b is ", b, ": b must have as many rows (", a.back(),
                                        ") and the same batch axes"));
    return {{c.dtype, b}};
}

Grads solve_triangular_grad(const GradRule& g) {
    const bool lower = g.boolean(2), transpose = g.boolean(3), unit = g.boolean(4);
    const Expr db = g.call("solve_triangular", {mirrored(g.in(0)), g.dout, lower, !transpose, unit});
    const Expr full = -matmul(db, adjoint(g.out)), da = transpose ? matrix_transpose(full) : full;
    return {call(lower ? "tril" : "triu", {da, unit ? (lower ? -1 : 1) : 0}), db};
}

Expr expand_lu_solve(const ExpandCall& c) {
    expect_square(c, 1);
    expect_rank_at_least(c, 0, 2);
    const Expr p = c.call("permutation_of_pivots", {c.in(2), c.shape(1).back(), c.dtype});
    const Expr y = c.call("solve_triangular", {c.in(1), matmul(matrix_transpose(p), c.in(0)), true, false, true});
    return c.call("solve_triangular", {c.in(1), y, false});
}

Expr expand_lu_unpack(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    const Shape s = c.shape(0);
    const int64_t m = s[s.rank() - 2], n = s.back(), k = std::min(m, n);
    auto part = [&](const Expr& e, int64_t rows, int64_t columns) {
        return c.call("narrow", {c.call("narrow", {e, -2, 0, rows}), -1, 0, columns});
    };
    const Expr l = call("tril", {part(c.in(0), m, k), -1}) + identity(c, m, k);
    const Expr u = call("triu", {part(c.in(0), k, n)});
    const Expr all[] = {c.call("permutation_of_pivots", {c.in(1), m, c.dtype}), l, u};
    return c.builder.list(all);
}

Types infer_geqrf(const Call& c) {
    expect_rank_at_least(c, 0, 2);
    const Shape s = c.shape(0);
    return {{c.dtype, s}, {c.dtype, with_last(leading(s, 2), {std::min(s[s.rank() - 2], s.back())})}};
}

// Applies the reflections 1 - tau v v^H to e, one after the other; v is 1 at its own row, with the elements below the
// diagonal under it. `from_first`: begins with the first reflection, which gives the adjoint of their product.
Expr reflected(const ExpandCall& c, const Expr& packed, const Expr& tau, Expr e, bool from_last) {
    const Shape s = packed.shape();
    const int64_t m = s[s.rank() - 2], count = tau.shape().back();
    for (int64_t step = 0; step < count; ++step) {
        const int64_t i = from_last ? count - 1 - step : step;
        Tensor one = Tensor::zeros(c.dtype, {m, 1}), below = Tensor::zeros(c.dtype, {m, 1});
        one.set_at(i, 1.0);
        for (int64_t row = i + 1; row < m; ++row) below.set_at(row, 1.0);
        const Expr v = c.call("narrow", {packed, -1, i, 1}) * c.builder.constant(below) + c.builder.constant(one);
        Shape scalar = leading(s, 2);
        scalar.push_back(1);
        scalar.push_back(1);
        const Expr factor = c.call("narrow", {tau, -1, i, 1}).reshape(scalar),
                   t = from_last ? factor : mirrored(factor);
        e = e - matmul(v * t, matmul(adjoint(v), e));
    }
    return e;
}

void expect_reflections(const Call& c) {
    expect_rank_at_least(c, 0, 2);
    expect_rank_at_least(c, 1, 1);
    const Shape s = c.shape(0), tau = c.shape(1);
    if (!(leading(s, 2) == leading(tau, 1)) || tau.back() > s.back() || tau.back() > s[s.rank() - 2])
        throw shape_error(c.name(), str("input is ", s, " and tau is ", tau,
                                        ": tau must have the same batch axes and at most one number for each column"));
}

Expr expand_orgqr(const ExpandCall& c) {
    expect_reflections(c);
    const Shape s = c.shape(0);
    const Expr start = identity(c, s[s.rank() - 2], s.back()).broadcast_to(s);
    return reflected(c, c.in(0), c.in(1), start, true);
}

Expr expand_ormqr(const ExpandCall& c) {
    expect_reflections(c);
    expect_rank_at_least(c, 2, 2);
    const bool left = c.boolean(3), transpose = c.boolean(4);
    // other q = (q^H other^H)^H
    const Expr other = left ? c.in(2) : adjoint(c.in(2));
    const Shape o = other.shape(), s = c.shape(0);
    if (o[o.rank() - 2] != s[s.rank() - 2])
        throw shape_error(c.name(), str("input is ", s, " and other is ", c.shape(2), ": q has ", s[s.rank() - 2],
                                        " rows, which other must have as ", left ? "rows" : "columns"));
    const Expr product = reflected(c, c.in(0), c.in(1), other, left != transpose);
    return left ? product : adjoint(product);
}

}  // namespace

void add_factor_ops(Registry& ops) {
    ops.add("lu_factor(input/x/A: float) -> (lu, pivots)")
        .doc(
            "Factors of a matrix p l u in one: u, and below the diagonal l, whose own diagonal is 1. Row i has been "
            "exchanged with row pivots[i], counted from 0, one after the other.")
        .example("lu_factor(tensor{{1.0, 2.0}, {4.0, 4.0}})", "tensor{{4.0, 4.0}, {0.25, 1.0}}")
        .infer(infer_lu_factor)
        .grad(lu_factor_grad)
        .wide()
        .cut("...!m!n->...!m!n,...!k")
        .sample("f32[3,1,1]:(1,2)")
        .sample("f32[1,1]:(1,3)");
    ops.add("permutation_of_pivots(pivots: index, n: int, dtype: dtype? = nil)")
        .doc("Matrix p of n rows that turns the rows which the pivots of lu_factor have exchanged back.")
        .example("permutation_of_pivots(tensor{1, 1}, 2)", "tensor{{0.0, 1.0}, {1.0, 0.0}}")
        .infer(infer_permutation)
        .no_grad("pivots are integers")
        .raises()
        .cut("...!k->...!m!n")
        .sample("i64[3]:(2,3), 3");
    ops.add(
           "solve_triangular(a/A: float, b: float, lower: bool = false, trans: bool = false, unit_diagonal: bool = "
           "false)")
        .doc(
            "Solves a x = b for an upper (or lower) triangle a, or with its transpose (trans); the other triangle is "
            "not looked at. unit_diagonal: the diagonal is taken for ones.")
        .example("solve_triangular(tensor{{2.0, 1.0}, {0.0, 4.0}}, tensor{{3.0}, {4.0}})", "tensor{{1.0}, {1.0}}")
        .infer(infer_solve_triangular)
        .grad(solve_triangular_grad)
        .raises()
        .wide()
        .cut("@solve")
        .sample("f32[3,1,1]:(1,2), f32[3,1,2]")
        .sample("f32[1,1]:(1,2), f32[1,3], lower=true, trans=true");
    ops.add("lu_solve(input/b: float, LU_data/lu: float, LU_pivots/pivots: index)")
        .doc("Solves a x = b with the results of lu_factor(a).")
        .example("lu_solve(tensor{{2.0}, {8.0}}, lu_factor(tensor{{2.0, 0.0}, {0.0, 4.0}}))", "tensor{{1.0}, {2.0}}")
        .expand(expand_lu_solve)
        .wide()
        .sample("f32[1,2], f32[1,1]:(1,2), i64[1]:(0,1)");
    ops.add("lu_unpack(LU_data/lu: float, LU_pivots/pivots: index) -> (p, l, u)")
        .doc("The matrices p, l and u from the results of lu_factor.")
        .example("lu_unpack(tensor{{4.0, 4.0}, {0.25, 1.0}}, tensor{1, 1})", "tensor{{0.0, 1.0}, {1.0, 0.0}}")
        .expand(expand_lu_unpack)
        .sample("f32[2,2], i64[2]:(1,2)")
        .sample("f32[3,2], i64[2]:(2,3)");
    ops.add("geqrf(input/x/A: float) -> (y, tau)")
        .doc(
            "QR decomposition as Householder reflections: r on and above the diagonal of y, below it the vectors, "
            "whose "
            "first element is 1, of the reflections 1 - tau v v^H.")
        .example("abs((geqrf(tensor{{3.0}, {4.0}})))", "tensor{{5.0}, {0.5}}")
        .infer(infer_geqrf)
        .refuse_grad("use qr, which has a gradient")
        .cut("...!m!n->...!m!n,...!k")
        .sample("f32[3,2]")
        .sample("f32[2,2,3]");
    ops.add("orgqr(input/x: float, tau/input2: float)")
        .doc("The first columns of the orthogonal matrix whose Householder reflections are given as by geqrf.")
        .example("abs(orgqr(tensor{{-5.0}, {0.5}}, tensor{1.6}))", "tensor{{0.6}, {0.8}}")
        .expand(expand_orgqr)
        .wide()
        .sample("f32[3,2], f32[2]")
        .sample("f32[2,2,2], f32[2,1]");
    ops.add("ormqr(input/x: float, tau: float, other: float, left: bool = true, transpose: bool = false)")
        .doc(
            "Product of the orthogonal matrix q whose Householder reflections are given as by geqrf, or of its "
            "(conjugate) transpose, with other; other q where left is false.")
        .example("abs(ormqr(tensor{{-5.0}, {0.5}}, tensor{1.6}, tensor{{1.0}, {0.0}}))", "tensor{{0.6}, {0.8}}")
        .expand(expand_ormqr)
        .wide()
        .sample("f32[3,2], f32[2], f32[3,4]")
        .sample("f32[3,2], f32[2], f32[4,3], left=false, transpose=true");
}

}  // namespace lunaria
