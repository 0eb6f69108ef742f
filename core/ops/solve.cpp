// Operators: inverses, determinants, linear systems and decompositions of (batches of) matrices. Gradient rules follow
// M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008); for
// complex matrices (see cotangents in elementwise.h) with the adjoint where the transpose stands there.
#include <cmath>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {

Shape square(const Call& c, size_t i) {
    expect_rank_at_least(c, i, 2);
    Shape s = c.shape(i);
    int64_t rows = s[s.rank() - 2], columns = s.back();
    if (rows != columns && rows != kUnknownDim && columns != kUnknownDim)
        throw shape_error(c.name(), str(param_name(c, i), " must be a square matrix or a batch of them, not ", s));
    return s;
}

Shape batch_of(const Shape& s) {
    Shape batch = s;
    batch.resize(s.rank() - 2);
    return batch;
}

Shape with_last(Shape batch, std::initializer_list<int64_t> last) {
    for (int64_t n : last) batch.push_back(n);
    return batch;
}

Types infer_square(const Call& c) { return {{c.dtype, square(c, 0)}}; }

Types infer_scalar_per_matrix(const Call& c) { return {{c.dtype, batch_of(square(c, 0))}}; }

// A scalar per matrix, in a shape that multiplies matrices.
Expr per_matrix(const Expr& e) {
    Shape s = e.shape();
    s.push_back(1);
    s.push_back(1);
    return e.reshape(s);
}

Expr sum_matrices(const Expr& e) { return e.sum({e.rank() - 2, e.rank() - 1}); }

Expr identity(const GradRule& g, int64_t n) {
    Tensor eye = Tensor::zeros(g.dtype, {n, n});
    for (int64_t i = 0; i < n; ++i) eye.set_at(i * n + i, 1.0);
    return g.builder.constant(eye);
}

// A vector per matrix as rows of a diagonal matrix.
Expr diagonal_matrix(const GradRule& g, const Expr& v) {
    Shape column = v.shape();
    column.push_back(1);
    return v.reshape(column) * identity(g, v.shape().back());
}

Expr lower(const Expr& e, int64_t diagonal = 0) { return call("tril", {e, diagonal}); }

// Lower triangle with half of the diagonal.
Expr half_lower(const Expr& e) { return (lower(e) + lower(e, -1)) * 0.5; }

// v as the rows (v_j in every row) or columns of a matrix.
Expr as_row(const Expr& v) {
    Shape s = v.shape();
    s.insert(s.rank() - 1, 1);
    return v.reshape(s);
}
Expr as_column(const Expr& v) {
    Shape s = v.shape();
    s.push_back(1);
    return v.reshape(s);
}

// 1 / (x_j - x_i) for the values whose vectors have the cotangent d. It is 0 on the diagonal and for two equal values
// whose vectors are not used. Using one of them is an error: vectors of equal values may be turned into each other.
Expr reciprocal_gaps(std::string_view where, const Expr& values, const Expr& d) {
    const Expr used = fn("abs", d).sum({d.rank() - 2});
    return call("reciprocal_gaps", {values, used, {"where", Value(str("gradient of ", where))}});
}

Types infer_reciprocal_gaps(const Call& c) {
    expect_rank_at_least(c, 0, 1);
    expect_same_shape(c, 0, 1);
    Shape shape = c.shape(0);
    shape.push_back(shape.back());
    return {{c.dtype, shape}};
}

Grads reciprocal_gaps_grad(const GradRule& g) {
    const Expr slope = g.dout * mirrored(g.out * g.out);
    const int rank = g.out.rank();
    return {slope.sum({rank - 1}) - slope.sum({rank - 2}), {}, {}};
}

// Whether the right side is one vector for each matrix.
bool is_vector_side(const Shape& a, const Shape& b) { return b.rank() == a.rank() - 1; }

Types infer_solve(const Call& c) {
    Shape a = square(c, 0), b = c.shape(1);
    const Shape sides = is_vector_side(a, b) ? with_last(b, {1}) : b;
    if (sides.rank() < 2 || !(batch_of(a) == batch_of(sides)) || sides[sides.rank() - 2] != a.back())
        throw shape_error(c.name(), str("matrix is ", a, " and rhs is ", b, ": rhs must have as many rows (", a.back(),
                                        ") and the same batch axes"));
    return {{c.dtype, b}};
}

Grads solve_grad(const GradRule& g) {
    const bool adjoint_side = g.boolean(2);
    Expr db = g.call("matrix_solve", {g.in(0), g.dout, !adjoint_side});
    Expr da = is_vector_side(g.shape(0), g.shape(1)) ? -(as_column(db) * as_row(mirrored(g.out)))
                                                     : -matmul(db, adjoint(g.out));
    return {adjoint_side ? adjoint(da) : da, db};
}

Grads cholesky_grad(const GradRule& g) {
    bool upper = g.boolean(1);
    Expr l = upper ? adjoint(g.out) : g.out, dl = upper ? adjoint(g.dout) : g.dout;
    Expr inverse = g.call("inverse", {l});
    Expr p = matmul(adjoint(l), dl);
    Expr phi = half_lower(p);
    Expr s = matmul(matmul(adjoint(inverse), phi), inverse);
    return {(s + adjoint(s)) * 0.5};
}

Types infer_qr(const Call& c) {
    expect_rank_at_least(c, 0, 2);
    Shape s = c.shape(0);
    int64_t m = s[s.rank() - 2], n = s.back(), k = c.string(1) == "complete" ? m : std::min(m, n);
    return {{c.dtype, with_last(batch_of(s), {m, k})}, {c.dtype, with_last(batch_of(s), {k, n})}};
}

Expr columns(const Expr& e, int64_t begin, int64_t count) {
    Shape first, size = e.shape();
    for (int i = 0; i < e.rank(); ++i) first.push_back(0);
    first[e.rank() - 1] = begin;
    size[e.rank() - 1] = count;
    return call("slice", {e, first, size});
}

Grads qr_grad(const GradRule& g) {
    Shape s = g.shape(0);
    int64_t m = s[s.rank() - 2], n = s.back();
    if (g.string(1) == "complete" && m > n)
        throw value_error("qr", "mode \"complete\" has no gradient when there are more rows than columns")
            .hint("use mode \"reduced\"");
    Expr q = g.outs[0], r = g.outs[1];
    Expr dq = g.douts[0] ? g.douts[0] : g.builder.zeros_like(q), dr = g.douts[1] ? g.douts[1] : g.builder.zeros_like(r);
    Expr d_rest, r_square = r;
    if (n > m) {
        // r = (u | v) with v = q^T y for the columns y of the input beyond the m-th.
        Expr dv = columns(dr, m, n - m), y = columns(g.in(0), m, n - m);
        d_rest = matmul(q, dv);
        dq = dq + matmul(y, adjoint(dv));
        dr = columns(dr, 0, m);
        r_square = columns(r, 0, m);
    }
    Expr p = matmul(r_square, adjoint(dr)) - matmul(adjoint(dq), q);
    Expr half = half_lower(p), symmetric = half + adjoint(half);
    Expr dx = adjoint(g.call("matrix_solve", {r_square, adjoint(dq + matmul(q, symmetric)), false}));
    if (!d_rest) return {dx};
    Expr both[] = {dx, d_rest};
    return {g.call("concat", {g.builder.list(both), -1})};
}

Types infer_svd(const Call& c) {
    expect_rank_at_least(c, 0, 2);
    Shape s = c.shape(0), batch = batch_of(s);
    int64_t m = s[s.rank() - 2], n = s.back(), k = std::min(m, n);
    bool full = c.boolean(1);
    return {{part_of(c.dtype), with_last(batch, {k})},
            {c.dtype, with_last(batch, {m, full ? m : k})},
            {c.dtype, with_last(batch, {n, full ? n : k})}};
}

Grads svd_grad(const GradRule& g) {
    Shape in = g.shape(0);
    int64_t m = in[in.rank() - 2], n = in.back(), k = std::min(m, n);
    if (g.boolean(1) && m != n && (g.douts[1] || g.douts[2]))
        throw value_error("svd", "full_matrices has no gradient through u and v of a matrix that is not square")
            .hint("use full_matrices = false");
    if (k == 0) return {g.builder.zeros_like(g.in(0))};
    Expr s = g.outs[0], u = columns(g.outs[1], 0, k), v = columns(g.outs[2], 0, k);
    // 1 / (s_j - s_i), with a 0 appended to the values, so that the last row is 1 / s_j.
    Expr reciprocals, per_s, per_gap;
    if (g.douts[1] || g.douts[2]) {
        const Expr du = g.douts[1] ? columns(g.douts[1], 0, k) : Expr(),
                   dv = g.douts[2] ? columns(g.douts[2], 0, k) : Expr();
        const Expr both[] = {du, dv};
        const Expr d = du && dv ? g.call("concat", {g.builder.list(both), -2}) : du ? du : dv;
        auto with_zero = [&](const Expr& e) {
            const int last = e.rank() - 1;
            const Expr parts[] = {e, g.builder.zeros_like(call("narrow", {e, last, 0, 1}))};
            return g.call("concat", {g.builder.list(parts), last});
        };
        const Expr all = reciprocal_gaps("svd", with_zero(s), with_zero(d));
        const Shape shape = all.shape();
        const Expr rows = call("narrow", {all, shape.rank() - 1, 0, k});
        reciprocals = call("narrow", {rows, shape.rank() - 2, 0, k});
        per_s = call("narrow", {rows, shape.rank() - 2, k, 1});
        // 1 / (s_j² - s_i²), without the cancellation of a difference of squares. The sum of two different values is
        // not 0.
        const Expr sum = as_row(s) + as_column(s), none = call("equal", {sum, 0.0});
        per_gap = reciprocals / call("where", {none, 1.0, sum});
    }
    auto turned = [&](const Expr& basis, const Expr& d) {
        Expr p = matmul(adjoint(basis), d);
        return (p - adjoint(p)) * per_gap;
    };
    auto over_s = [&](const Expr& e) { return e * per_s; };
    Expr inner = g.douts[0] ? diagonal_matrix(g, g.douts[0]) : Expr();
    auto add = [](Expr& sum, const Expr& e) { sum = sum ? sum + e : e; };
    if (g.douts[1]) add(inner, turned(u, g.douts[1]) * as_row(s));
    if (g.douts[2]) add(inner, as_column(s) * turned(v, g.douts[2]));
    if (is_complex(g.dtype) && (g.douts[1] || g.douts[2])) {
        // Phases turn u and v together: only one of the two carries the imaginary part of the diagonal.
        const Expr one = identity(g, k);
        inner = inner * (1.0 - one) + fn("real", inner * one);
        if (g.douts[1]) {
            const Expr p = matmul(adjoint(u), g.douts[1]) * one;
            add(inner, over_s(p - adjoint(p)) * 0.5);
        }
    }
    Expr dx = matmul(matmul(u, inner), adjoint(v));
    if (g.douts[1] && m > k) {
        Expr outside = g.douts[1] - matmul(u, matmul(adjoint(u), g.douts[1]));
        dx = dx + matmul(over_s(outside), adjoint(v));
    }
    if (g.douts[2] && n > k) {
        Expr outside = g.douts[2] - matmul(v, matmul(adjoint(v), g.douts[2]));
        dx = dx + matmul(u, adjoint(over_s(outside)));
    }
    return {dx};
}

Grads eigh_grad(const GradRule& g) {
    Expr w = g.outs[0], v = g.outs[1];
    Expr inner = g.douts[0] ? diagonal_matrix(g, g.douts[0]) : Expr();
    if (g.douts[1]) {
        Expr turned = matmul(adjoint(v), g.douts[1]) * reciprocal_gaps(g.name(), w, g.douts[1]);
        inner = inner ? inner + turned : turned;
    }
    Expr dx = matmul(matmul(v, inner), adjoint(v));
    return {(dx + adjoint(dx)) * 0.5};
}

Grads pinv_grad(const GradRule& g) {
    // The derivative of the pseudo-inverse by Golub and Pereyra, transposed.
    Expr a = g.in(0), p = g.out, d = g.dout;
    Shape s = g.shape(0);
    int64_t m = s[s.rank() - 2], n = s.back();
    Expr dx = -matmul(matmul(adjoint(p), d), adjoint(p));
    Expr left = identity(g, m) - matmul(a, p), right = identity(g, n) - matmul(p, a);
    dx = dx + matmul(matmul(left, adjoint(d)), matmul(p, adjoint(p)));
    return {dx + matmul(matmul(adjoint(p), p), matmul(adjoint(d), right))};
}

Expr expand_svd(const ExpandCall& c) {
    Expr all = c.call("svd_factors", {c.in(0), c.args[1]});
    return c.boolean(2) ? all : all[0];
}

Expr power(const ExpandCall& c, Expr x, int64_t n) {
    Expr result;
    for (; n > 0; n /= 2) {
        if (n % 2) result = result ? matmul(result, x) : x;
        if (n > 1) x = matmul(x, x);
    }
    if (result) return result;
    Shape s = x.shape();
    Tensor eye = Tensor::zeros(x.dtype(), {s.back(), s.back()});
    for (int64_t i = 0; i < s.back(); ++i) eye.set_at(i * s.back() + i, 1.0);
    return c.builder.constant(eye).broadcast_to(s);
}

Expr expand_matrix_power(const ExpandCall& c) {
    square(c, 0);
    int64_t n = c.integer(1);
    if (n == std::numeric_limits<int64_t>::min()) throw value_error(c.name(), str("n is ", n, ": too large"));
    return n >= 0 ? power(c, c.in(0), n) : power(c, c.call("inverse", {c.in(0)}), -n);
}

Grads slogdet_grad(const GradRule& g) {
    Expr along = g.douts[1];
    if (g.douts[0] && is_complex(g.dtype)) {
        // The sign turns by the imaginary part of the trace of inverse dA.
        const Expr turn = -fn("imag", mirrored(g.douts[0]) * g.outs[0]);
        along = call("complex", {along ? along : g.builder.zeros_like(turn), turn});
    }
    if (!along) return {Expr()};
    return {(per_matrix(along) * adjoint(g.call("inverse", {g.in(0)})))};
}

// The slope of the cofactors det t along d, where t is the inverse transposed: det (<d, t> t - t d^T t). It is linear
// in d and its own adjoint. Its derivative by x uses the inverse, so that a singular matrix is an error.
Grads cofactor_slope_grad(const GradRule& g) {
    const Expr x = mirrored(g.in(0)), d = mirrored(g.in(1)), c = g.dout;
    const Expr t = matrix_transpose(g.call("inverse", {x}));
    auto between = [&](const Expr& e) { return matmul(matmul(t, matrix_transpose(e)), t); };
    auto along = [&](const Expr& e) { return per_matrix(sum_matrices(e * t)); };
    const Expr td = between(d), tc = between(c), a = along(c), b = along(d);
    const Expr twice = matmul(matmul(td, matrix_transpose(c)), t) + matmul(matmul(tc, matrix_transpose(d)), t);
    const Expr both = a * b - per_matrix(sum_matrices(c * td));
    const Expr dx = per_matrix(g.call("det", {x})) * (t * both - b * tc - a * td + twice);
    return {dx, g.call("cofactor_slope", {x, c})};
}

// With eigenvectors v of norm 1: v^-H (diag(dw) + (v^H dv - v^H v diag(Re v^H dv)) / conj(w_j - w_i)) v^H, for
// functions that do not depend on the phases of the vectors (C. Boeddeker and others, 2017).
Grads eig_grad(const GradRule& g) {
    const Expr w = g.outs[0], v = g.outs[1], one = g.call("eye", {w.shape().back(), w.shape().back(), w.dtype()});
    Expr inner = g.douts[0] ? as_column(g.douts[0]) * one : Expr();
    if (g.douts[1]) {
        const Expr p = matmul(adjoint(v), g.douts[1]);
        const Expr lengths = fn("real", (p * one).sum({-2})).cast(w.dtype());
        const Expr turned =
            (p - matmul(adjoint(v), v * as_row(lengths))) * mirrored(reciprocal_gaps(g.name(), w, g.douts[1]));
        inner = inner ? inner + turned : turned;
    }
    const Expr dx = g.call("matrix_solve", {v, matmul(inner, adjoint(v)), true});
    return {is_complex(g.dtype) ? dx : fn("real", dx)};
}

Grads matrix_exp_grad(const GradRule& g) {
    // exp of ((a, d), (0, a)) holds the derivative of exp at a along d in its upper right block.
    Expr a = adjoint(g.in(0)), zero = g.builder.zeros_like(a);
    int64_t n = g.shape(0).back();
    Expr top[] = {a, g.dout}, bottom[] = {zero, a};
    Expr rows[] = {g.call("concat", {g.builder.list(top), -1}), g.call("concat", {g.builder.list(bottom), -1})};
    Expr all = g.call("matrix_exp", {g.call("concat", {g.builder.list(rows), -2})});
    return {columns(adjoint(columns(adjoint(all), 0, n)), n, n)};
}

Expr expand_logdet(const ExpandCall& c) {
    Expr both = c.call("slogdet", {c.in(0)});
    if (is_complex(c.dtype)) return fn("log", both[0]) + both[1];
    // A negative determinant has no real logarithm.
    return both[1] + c.call("where", {c.call("less", {both[0], 0.0}), std::nan(""), 0.0}).cast(c.dtype);
}

}  // namespace

void add_solve_ops(Registry& ops) {
    ops.add("inverse(input/x/A: float)")
        .alias("matrix_inverse")
        .doc("Inverse of a square matrix; a singular one is an error.")
        .example("inverse(tensor{{2.0, 0.0}, {0.0, 4.0}})", "tensor{{0.5, 0.0}, {0.0, 0.25}}")
        .infer(infer_square)
        .grad([](const GradRule& g) -> Grads { return {-matmul(matmul(adjoint(g.out), g.dout), adjoint(g.out))}; })
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[3,3]:(0,1)")
        .sample("f32[2,1,2,2]:(1,3)");
    ops.add("det(input/x/A: float)")
        .alias("matrix_determinant")
        .doc("Determinant of a square matrix.")
        .example("det(tensor{{1.0, 2.0}, {3.0, 4.0}})", "tensor(-2.0)")
        .infer(infer_scalar_per_matrix)
        // The cofactors rather than det · inverse: they exist for singular matrices as well.
        .grad([](const GradRule& g) -> Grads { return {per_matrix(g.dout) * mirrored(g.call("cofactor", {g.in(0)}))}; })
        .batched(batch::last_axes<2>)
        .sample("f32[3,3]")
        .sample("f32[2,2,2]");
    ops.add("cofactor(input/x: float)")
        .doc("Matrix of cofactors: the derivative of the determinant.")
        .example("cofactor(tensor{{1.0, 2.0}, {3.0, 4.0}})", "tensor{{4.0, -3.0}, {-2.0, 1.0}}")
        .infer(infer_square)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("cofactor_slope", {mirrored(g.in(0)), g.dout})};
        })
        .raises()
        .batched(batch::last_axes<2>)
        .wide()
        .sample("f32[3,3]")
        .sample("f32[2,2,2]:(1,3)");
    ops.add("cofactor_slope(x: float, along: float)")
        .doc("Derivative of cofactor at x along a direction, which exists for singular matrices as well.")
        .example("cofactor_slope(tensor{{1.0, 2.0}, {3.0, 4.0}}, tensor{{1.0, 0.0}, {0.0, 0.0}})",
                 "tensor{{0.0, 0.0}, {0.0, 1.0}}")
        .infer([](const Call& c) -> Types {
            expect_same_shape(c, 0, 1);
            return infer_square(c);
        })
        .grad(cofactor_slope_grad)
        .method(false)
        .raises()
        .batched(batch::last_axes<2>)
        .wide()
        .sample("f32[3,3], f32[3,3]")
        .sample("f32[2,2,2]:(1,3), f32[2,2,2]");
    ops.add("slogdet(input/x/A: float) -> (sign, logabsdet)")
        .alias("log_matrix_determinant")
        .doc("Sign (of a complex matrix: phase) and logarithm of the absolute value of the determinant.")
        .example("slogdet(tensor{{-1.0, 0.0}, {0.0, 1.0}})", "tensor(-1.0)")
        .infer([](const Call& c) -> Types {
            Shape batch = batch_of(square(c, 0));
            return {{c.dtype, batch}, {part_of(c.dtype), batch}};
        })
        .grad(slogdet_grad)
        .batched(batch::last_axes<2>)
        .wide()
        .sample("f32[3,3]")
        .sample("f32[2,2,2]");
    ops.add("logdet(input/x/A: float)")
        .doc("Logarithm of the determinant; NaN where it is negative and the matrix real.")
        .example("logdet(tensor{{1.0, 0.0}, {0.0, 1.0}})", "tensor(0.0)")
        .expand(expand_logdet)
        .wide()
        .sample("f32[2,1,1]:(1,2)")
        .sample("f32[1,1]:(0.5,1)");
    ops.add("matrix_solve(matrix/A/input: float, rhs/B/other: float, adjoint: bool = false)")
        .alias("solve")
        .doc(
            "Solves matrix x = rhs, a matrix or one vector for each matrix (or with the conjugate transpose, when "
            "adjoint); "
            "a singular matrix is an error.")
        .example("matrix_solve(tensor{{2.0, 0.0}, {0.0, 4.0}}, tensor{{1.0}, {1.0}})", "tensor{{0.5}, {0.25}}")
        .infer(infer_solve)
        .grad(solve_grad)
        .batched(batch::solved)
        .raises()
        .wide()
        .sample("f32[3,3]:(0,1), f32[3,2]")
        .sample("f32[2,2,2]:(1,3), f32[2,2,5], adjoint=true")
        .sample("f32[3,3]:(0,1), f32[3]")
        .sample("f32[2,2,2]:(1,3), f32[2,2], adjoint=true");
    ops.add("cholesky(input_x/input/x/A: float, upper: bool = false)")
        .doc(
            "Lower (or upper) triangular matrix whose product with its (conjugate) transpose is the symmetric "
            "(Hermitian) "
            "positive definite input.")
        .example("cholesky(tensor{{4.0, 2.0}, {2.0, 5.0}})", "tensor{{2.0, 0.0}, {1.0, 2.0}}")
        .infer(infer_square)
        .grad(cholesky_grad)
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[3,1,1]:(1,2)")
        .sample("f32[1,1]:(1,3), upper=true");
    ops.add("qr(input/x/A: float, mode: \"reduced\"|\"complete\" = \"reduced\") -> (q, r)")
        .doc("Orthogonal (unitary) and upper triangular factor of a matrix.")
        .example("abs((qr(tensor{{3.0}, {4.0}})))", "tensor{{0.6}, {0.8}}")
        .infer(infer_qr)
        .grad(qr_grad)
        .batched(batch::last_axes<2>)
        .wide()
        .sample("f32[4,3]")
        .sample("f32[2,2,3]");
    ops.add("reciprocal_gaps(values/x: float, used: tensor, *, where: string = \"reciprocal_gaps\")")
        .doc(
            "1 / (values[j] - values[i]), and 0 for i = j. Of equal values it is 0 where both are not used, and "
            "otherwise an error.")
        .example("reciprocal_gaps(tensor{1.0, 3.0}, tensor{1.0, 1.0})", "tensor{{0.0, 0.5}, {-0.5, 0.0}}")
        .infer(infer_reciprocal_gaps)
        .grad(reciprocal_gaps_grad)
        .method(false)
        .raises()
        .wide()
        .cut("...!n,...!n->...!m!n")
        .sample("f32[4], f32[4]")
        .sample("f32[2,3], f32[2,3]");
    ops.add("svd(input/x/A: float, full_matrices: bool = false, compute_uv: bool = true)")
        .doc(
            "Singular values s, and with compute_uv also u and v, so that u diag(s) v^H is the input; the gradient of "
            "complex ones is that of what does not depend on the vectors' phases. Where singular values are equal, "
            "they have a gradient, and their vectors have none: using these is an error when it is differentiated.")
        .example("svd(tensor{{3.0, 0.0}, {0.0, 4.0}}, false, false)", "tensor{4.0, 3.0}")
        .expand(expand_svd)
        .sample("f32[4,3], compute_uv=false")
        .sample("f32[2,2,3], compute_uv=false");
    ops.add("svd_factors(input: float, full_matrices: bool = false) -> (s, u, v)")
        .doc("Singular values, left and right singular vectors: what svd is made of.")
        .example("svd_factors(tensor{{3.0, 0.0}, {0.0, 4.0}})", "tensor{4.0, 3.0}")
        .infer(infer_svd)
        .grad(svd_grad)
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[4,3]")
        .sample("f32[2,2,3]");
    ops.add("eigh(input/A/x: float) -> (values, vectors)")
        .doc(
            "Eigenvalues in ascending order and eigenvectors (columns) of a symmetric (Hermitian) matrix. Where "
            "eigenvalues are equal, they have a gradient, and their vectors have none: using these is an error when it "
            "is differentiated.")
        .example("eigh(tensor{{2.0, 0.0}, {0.0, 1.0}})", "tensor{1.0, 2.0}")
        .infer([](const Call& c) -> Types {
            Shape s = square(c, 0);
            return {{part_of(c.dtype), with_last(batch_of(s), {s.back()})}, {c.dtype, s}};
        })
        .grad(eigh_grad)
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[3,3]")
        .sample("f32[2,2,2]");
    ops.add("eig(input/A/x: float) -> (values, vectors)")
        .doc(
            "Complex eigenvalues and eigenvectors (columns, of norm 1) of a square matrix; the gradient is that of "
            "what does not depend on the vectors' phases. Where eigenvalues are equal, they have a gradient, and their "
            "vectors have none: using these is an error when it is differentiated.")
        .example("eig(tensor{{2.0}})", "cast(tensor{2.0}, \"complex64\")")
        .infer([](const Call& c) -> Types {
            Shape s = square(c, 0);
            const DType complex = complex_of(c.dtype);
            return {{complex, with_last(batch_of(s), {s.back()})}, {complex, s}};
        })
        .grad(eig_grad)
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[3,3]")
        .sample("f32[2,2,2]");
    ops.add("pinv(x/A/input: float, *, atol: number? = nil, rtol: number? = nil, hermitian: bool = false)")
        .doc("Pseudo-inverse; singular values up to the larger of atol and rtol times the largest count as 0.")
        .example("pinv(tensor{{2.0}, {0.0}})", "tensor{{0.5, 0.0}}")
        .infer([](const Call& c) -> Types {
            expect_rank_at_least(c, 0, 2);
            Shape s = c.shape(0);
            return {{c.dtype, with_last(batch_of(s), {s.back(), s[s.rank() - 2]})}};
        })
        .grad(pinv_grad)
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[4,2]")
        .sample("f32[2,2,3]");
    ops.add("matrix_power(input/x: float, n: int)")
        .doc("The n-th power of a square matrix; a negative n takes powers of the inverse.")
        .example("matrix_power(tensor{{1.0, 1.0}, {0.0, 1.0}}, 3)", "tensor{{1.0, 3.0}, {0.0, 1.0}}")
        .expand(expand_matrix_power)
        .wide()
        .sample("f32[3,3], 3")
        .sample("f32[2,2,2]:(1,3), -2");
    ops.add("matrix_exp(input/x/A: float)")
        .doc("Exponential of a square matrix.")
        .example("matrix_exp(tensor{{0.0, 1.0}, {0.0, 0.0}})", "tensor{{1.0, 1.0}, {0.0, 1.0}}")
        .infer(infer_square)
        .grad(matrix_exp_grad)
        .batched(batch::last_axes<2>)
        .raises()
        .wide()
        .sample("f32[3,3]")
        .sample("f32[2,2,2]");
}

}  // namespace lunaria
