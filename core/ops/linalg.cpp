// Operators: matrix products. Their one primitive is the product of (batches of) matrices; vectors count as matrices
// with one row or one column, whose extra axis the result does not have.
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/flops.h"
#include "core/ops/matrix.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

Shape matmul_shape(const Call& c) {
    Shape a = c.shape(0), b = c.shape(1);
    for (size_t i : {0, 1})
        if (c.rank(i) == 0)
            throw shape_error(c.name(), str(param_name(c, i), " is a scalar (rank 0): it needs at least 1 dimension"))
                .hint("multiply by a number with *");
    int b_rows = b.rank() == 1 ? 0 : b.rank() - 2;
    int64_t inner = a.back(), other = b[b_rows];
    if (inner != other && inner != kUnknownDim && other != kUnknownDim)
        throw shape_error(c.name(), str(param_name(c, 0), " is ", a, " and ", param_name(c, 1), " is ", b,
                                        ": the last axis of ", param_name(c, 0), " (", inner, ") must equal the ",
                                        b.rank() <= 2 ? "first" : "last axis but one", b.rank() <= 2 ? " axis" : "",
                                        " of ", param_name(c, 1), " (", other, "): dimension mismatch"))
            .hint("transpose one of them, for example with b:t(), or check the size of the layer before it");
    Shape a_batch, b_batch;
    for (int i = 0; i + 2 < a.rank(); ++i) a_batch.push_back(a[i]);
    for (int i = 0; i + 2 < b.rank(); ++i) b_batch.push_back(b[i]);
    Shape out = broadcast(c.name(), a_batch, b_batch);
    if (a.rank() > 1) out.push_back(a[a.rank() - 2]);
    if (b.rank() > 1) out.push_back(b.back());
    return out;
}

}  // namespace

Types infer_matmul(const Call& c) {
    if (c.args[0].is_tensor() && c.args[1].is_tensor()) {
        // A shortcut for two matrices that fit, without the copies of shapes in the general case.
        const Tensor &a = c.args[0].tensor(), &b = c.args[1].tensor();
        if (a.rank() == 2 && b.rank() == 2 && a.dim(1) == b.dim(0) && a.dim(0) < (1 << 20) && b.dim(1) < (1 << 20))
            return {{c.dtype, {a.dim(0), b.dim(1)}}};
    }
    Shape out = matmul_shape(c);
    // Broadcast views can be larger than any memory.
    if (out.known()) checked_shape(c.name(), out.dims(), size_of(c.dtype));
    return {{c.dtype, out}};
}

namespace {

Types infer_mm(const Call& c) {
    expect_rank(c, 0, 2);
    expect_rank(c, 1, 2);
    return infer_matmul(c);
}

Types infer_mv(const Call& c) {
    expect_rank(c, 0, 2);
    expect_rank(c, 1, 1);
    return infer_matmul(c);
}

Types infer_bmm(const Call& c) {
    expect_rank(c, 0, 3);
    expect_rank(c, 1, 3);
    int64_t a = c.shape(0)[0], b = c.shape(1)[0];
    if (a != b && a != kUnknownDim && b != kUnknownDim)
        throw shape_error(c.name(), str(param_name(c, 0), " is ", c.shape(0), " and ", param_name(c, 1), " is ",
                                        c.shape(1), ": the batch sizes ", a, " and ", b, " must be equal"));
    return infer_matmul(c);
}

Grads matmul_grad(const GradRule& g) {
    Shape a = g.shape(0), b = g.shape(1), d = g.dout.shape();
    Expr x = mirrored(g.in(0)), y = mirrored(g.in(1)), dout = g.dout;
    if (b.rank() == 1) {
        y = y.reshape({b[0], 1});
        d.push_back(1);
    }
    if (a.rank() == 1) {
        x = x.reshape({1, a[0]});
        d.insert(d.rank() - 1, 1);
    }
    dout = dout.reshape(d);
    Expr dx = sum_to(matmul(dout, matrix_transpose(y)), x.shape());
    Expr dy;
    if (y.rank() == 2 && x.rank() > 2) {
        // If one matrix serves the whole batch, its gradient is one product, not a sum over a batch of products.
        dy = matmul(matrix_transpose(as_rows(x)), as_rows(dout));
    } else {
        dy = sum_to(matmul(matrix_transpose(x), dout), y.shape());
    }
    return {dx.reshape(a), dy.reshape(b)};
}

Types infer_dense(const Call& c) {
    expect_rank_at_least(c, 0, 1);
    expect_rank(c, 1, 2);
    Shape x = c.shape(0), w = c.shape(1);
    if (x.back() != w[1] && x.back() != kUnknownDim && w[1] != kUnknownDim)
        throw shape_error(c.name(), str("input is ", x, " and weight is ", w, ": the last axis of input (", x.back(),
                                        ") must equal the last axis of weight (", w[1], ")"))
            .hint("weight is (outputs, inputs)");
    if (c.has(2)) {
        Shape bias = c.shape(2);
        if (bias.rank() > 1 || (bias.rank() == 1 && bias[0] != w[0]))
            throw shape_error(c.name(), str("bias is ", bias, " and weight is ", w, ": bias must have shape (", w[0],
                                            "), one number per output"));
    }
    Shape out = x;
    out[out.rank() - 1] = w[0];
    return {{c.dtype, out}};
}

Grads dense_grad(const GradRule& g) {
    bool matrix = g.rank(0) == 2;
    const Expr x = mirrored(g.in(0));
    Expr rows = matrix ? x : as_rows(x), d = matrix ? g.dout : as_rows(g.dout);
    Expr db;
    if (g.has(2)) db = sum_to(g.dout, g.shape(2));
    return {matmul(g.dout, mirrored(g.in(1))), matmul(matrix_transpose(d), rows), db};
}

enum AffineParam : size_t { kAffineInput, kAffineWeight, kAffineBias, kAffineTransposed, kAffineRelu };

Types infer_affine(const Call& c) {
    if (c.boolean(kAffineTransposed)) return infer_dense(c);
    expect_rank_at_least(c, kAffineInput, 1);
    expect_rank(c, kAffineWeight, 2);
    const Shape x = c.shape(kAffineInput), w = c.shape(kAffineWeight);
    if (x.back() != w[0])
        throw shape_error(c.name(), str("input is ", x, " and weight is ", w, ": the last axis of input (", x.back(),
                                        ") must equal the first axis of weight (", w[0], ")"))
            .hint("weight is (inputs, outputs) with transposed = false");
    if (c.has(kAffineBias) && !(c.shape(kAffineBias) == Shape{w[1]}))
        throw shape_error(c.name(), str("bias is ", c.shape(kAffineBias), " and weight is ", w,
                                        ": bias must have shape (", w[1], "), one number per output"));
    Shape out = x;
    out[out.rank() - 1] = w[1];
    return {{c.dtype, out}};
}

Expr expand_affine(const ExpandCall& c) {
    const Arg bias = c.has(kAffineBias) ? Arg(c.in(kAffineBias)) : Arg(Value());
    Expr y = c.boolean(kAffineTransposed) ? c.call("dense", {c.in(kAffineInput), c.in(kAffineWeight), bias})
                                          : matmul(c.in(kAffineInput), c.in(kAffineWeight));
    if (!c.boolean(kAffineTransposed) && c.has(kAffineBias)) y = c.call("add", {y, c.in(kAffineBias)});
    return c.boolean(kAffineRelu) ? c.call("relu", {y}) : y;
}

// beta * input + alpha * product. A factor of 1 is left out, so that integers stay integers.
Expr scaled_sum(const ExpandCall& c, size_t beta, size_t alpha, Expr product) {
    Expr input = c.in(0);
    if (c.number(alpha) != 1) product = c.call("mul", {product, c.args[alpha]});
    if (c.number(beta) != 1) input = c.call("mul", {input, c.args[beta]});
    Expr sum = c.call("add", {input, product});
    if (!(sum.shape() == product.shape()))
        throw shape_error(c.name(), str("input is ", c.shape(0), " and the product is ", product.shape(),
                                        ": input must broadcast to the shape of the product"));
    return sum;
}

Expr expand_inner(const ExpandCall& c) {
    Shape a = c.shape(0), b = c.shape(1);
    if (a.rank() == 0 || b.rank() == 0) return c.in(0) * c.in(1);
    if (a.back() != b.back())
        throw shape_error(c.name(), str("input is ", a, " and other is ", b, ": their last axes (", a.back(), " and ",
                                        b.back(), ") must be equal"));
    Shape out;
    for (int i = 0; i + 1 < a.rank(); ++i) out.push_back(a[i]);
    for (int i = 0; i + 1 < b.rank(); ++i) out.push_back(b[i]);
    Expr left = c.in(0).reshape({rows_of(a), a.back()}), right = c.in(1).reshape({rows_of(b), b.back()});
    return matmul(left, matrix_transpose(right)).reshape(out);
}

Expr expand_outer(const ExpandCall& c) {
    expect_rank(c, 0, 1);
    expect_rank(c, 1, 1);
    return c.in(0).reshape({c.shape(0)[0], 1}) * c.in(1);
}

Expr expand_kron(const ExpandCall& c) {
    Shape a = c.shape(0), b = c.shape(1), left, right, out;
    int rank = std::max(a.rank(), b.rank());
    for (int i = 0; i < rank; ++i) {
        int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
        int64_t na = ia < 0 ? 1 : a[ia], nb = ib < 0 ? 1 : b[ib];
        left.push_back(na), left.push_back(1);
        right.push_back(1), right.push_back(nb);
        int64_t n = 0;
        if (__builtin_mul_overflow(na, nb, &n))
            throw shape_error(c.name(), str("axis ", i, " of the result is too large: ", na, " times ", nb));
        out.push_back(n);
    }
    return (c.in(0).reshape(left) * c.in(1).reshape(right)).reshape(out);
}

// The two lists of axes that tensor_dot sums over: an integer n means the last n of one and the first n of the other.
std::pair<Shape, Shape> contracted_axes(const Call& c) {
    const Value& axes = c.args[2];
    Shape left, right;
    if (axes.is_number()) {
        int64_t n = axes.integer();
        if (n < 0 || n > std::min(c.rank(0), c.rank(1)))
            throw value_error(c.name(),
                              str("axes is ", n, ", but the operands have ", c.rank(0), " and ", c.rank(1), " axes"));
        for (int64_t i = 0; i < n; ++i) {
            left.push_back(c.rank(0) - n + i);
            right.push_back(i);
        }
        return {left, right};
    }
    if (!axes.is_list() || axes.items().size() != 2)
        throw argument_error(c.name(), str("axes must be a number or two lists of axes, not ", to_string(axes)));
    Shape both[2];
    for (size_t i = 0; i < 2; ++i) {
        const Value& v = axes.items()[i];
        std::vector<int64_t> list;
        if (v.is_number()) list.push_back(v.integer());
        if (v.is_list())
            for (const Value& item : v.items()) {
                if (!item.is_number()) throw argument_error(c.name(), "axes must hold integers");
                list.push_back(item.integer());
            }
        both[i] = normal_axes(c.name(), list, c.rank(i), "axes");
    }
    if (both[0].rank() != both[1].rank())
        throw value_error(c.name(), str("axes names ", both[0].rank(), " axes of the first operand and ",
                                        both[1].rank(), " of the second"));
    return {both[0], both[1]};
}

Expr expand_tensor_dot(const ExpandCall& c) {
    auto [left, right] = contracted_axes(c);
    Shape a = c.shape(0), b = c.shape(1);
    int64_t inner = 1;
    for (int i = 0; i < left.rank(); ++i) {
        int64_t na = a[static_cast<int>(left[i])], nb = b[static_cast<int>(right[i])];
        if (na != nb)
            throw shape_error(c.name(), str("the operands are ", a, " and ", b, ": axis ", left[i], " (", na,
                                            ") and axis ", right[i], " (", nb, ") must be equal"));
        inner *= na;
    }
    auto contains = [](const Shape& s, int axis) { return std::find(s.begin(), s.end(), axis) != s.end(); };
    Shape a_perm, b_perm = right, out;
    int64_t rows = 1, columns = 1;
    for (int i = 0; i < a.rank(); ++i)
        if (!contains(left, i)) {
            a_perm.push_back(i);
            out.push_back(a[i]);
            rows *= a[i];
        }
    for (int64_t axis : left) a_perm.push_back(axis);
    for (int i = 0; i < b.rank(); ++i)
        if (!contains(right, i)) {
            b_perm.push_back(i);
            out.push_back(b[i]);
            columns *= b[i];
        }
    return matmul(c.in(0).transpose(a_perm).reshape({rows, inner}), c.in(1).transpose(b_perm).reshape({inner, columns}))
        .reshape(out);
}

Expr expand_dot(const ExpandCall& c) {
    if (c.rank(0) < 2 || c.rank(1) <= 2) return matmul(c.in(0), c.in(1));
    Value axes = Value::list({Value(static_cast<int64_t>(c.rank(0) - 1)), Value(static_cast<int64_t>(c.rank(1) - 2))});
    return c.call("tensor_dot", {c.in(0), c.in(1), axes});
}

}  // namespace

void add_linalg_ops(Registry& ops) {
    ops.add("matmul(a/input/x/x1/self/tensor1: same, b/other/y/x2/tensor2: same)")
        .doc(
            "Matrix product by numpy's rules: vectors count as one row (left) or one column (right), leading axes are "
            "batches and broadcast.")
        .example("matmul(tensor{{1, 2}, {3, 4}}, tensor{{1, 0}, {1, 1}})", "tensor{{3, 2}, {7, 4}}")
        .example("matmul(tensor{1.0, 2.0}, tensor{3.0, 4.0})", "tensor(11.0)")
        .infer(infer_matmul)
        .grad(matmul_grad)
        .strided()
        .half_native()
        .batched(batch::matrix_product)
        .flops(product_flops)
        .keeps_weight()
        .fusion(Fusion::product)
        .sample("f32[2,3], f32[3,4]")
        .sample("f32[2,1,3,5], f32[3,5,2]")
        .sample("f32[4,2,7], f32[7,3]")
        .sample("f32[5], f32[3,5,2]")
        .sample("f32[3,2], f32[2]")
        .sample("f32[5], f32[5]")
        .sample("f32[3,0], f32[0,2]");
    ops.add("mm(input/a/x/mat1: same, mat2/b/y/other: same)")
        .doc("Product of two matrices.")
        .example("mm(tensor{{1.0, 2.0}}, tensor{{3.0}, {4.0}})", "tensor{{11.0}}")
        .infer(infer_mm)
        .grad(matmul_grad)
        .strided()
        .half_native()
        .batched(batch::matrix_product)
        .flops(product_flops)
        .keeps_weight()
        .sample("f32[3,4], f32[4,2]")
        .sample("f32[1,5], f32[5,7]");
    ops.add("bmm(input_x/input/a/x/batch1: same, mat2/b/y/other/batch2: same)")
        .doc("Products of two batches of matrices, one by one.")
        .example("bmm(tensor{{{1.0, 2.0}}}, tensor{{{3.0}, {4.0}}})", "tensor{{{11.0}}}")
        .infer(infer_bmm)
        .grad(matmul_grad)
        .strided()
        .half_native()
        .batched(batch::matrix_product)
        .flops(product_flops)
        .sample("f32[3,2,4], f32[3,4,5]")
        .sample("f32[1,3,3], f32[1,3,1]");
    ops.add("mv(input/mat/x: same, vec/vec2: same)")
        .doc("Product of a matrix and a vector.")
        .example("mv(tensor{{1.0, 2.0}, {3.0, 4.0}}, tensor{1.0, 1.0})", "tensor{3.0, 7.0}")
        .infer(infer_mv)
        .grad(matmul_grad)
        .strided()
        .half_native()
        .batched(batch::matrix_product)
        .sample("f32[3,4], f32[4]")
        .sample("f32[1,5], f32[5]");
    // A primitive because the bias then goes into the result before the product is added to it, without a second pass.
    ops.add("dense(input/x: same, weight/w: same, bias/b: same? = nil)")
        .alias("linear")
        .doc("Fully connected layer: input times the transpose of weight (outputs, inputs), plus bias.")
        .example("dense(tensor{{1.0, 2.0}}, tensor{{1.0, 0.0}, {0.0, 3.0}}, tensor{0.5, 0.5})", "tensor{{1.5, 6.5}}")
        .infer(infer_dense)
        .grad(dense_grad)
        .strided()
        .half_native()
        .batched(batch::dense)
        .flops(product_flops)
        .keeps_weight()
        .sample("f32[3,4], f32[5,4], f32[5]")
        .sample("f32[2,3,7], f32[2,7]")
        .sample("f32[4], f32[3,4], f32[3]");
    // A primitive for compiled programs: the operators after a product are applied to each part of the result while it
    // is in the cache.
    ops.add(
           "affine(input/x: float, weight/w: float, bias/b: float? = nil, transposed: bool = true, "
           "relu: bool = false)")
        .doc(
            "Input times the transpose of weight (outputs, inputs), or times weight (inputs, outputs) where transposed "
            "is false, plus bias; with relu, 0 in place of what is negative.")
        .example("affine(tensor{{1.0, -2.0}}, tensor{{1.0, 0.0}, {0.0, 3.0}}, tensor{0.5, 0.5}, true, true)",
                 "tensor{{1.5, 0.0}}")
        .infer(infer_affine)
        .expand(expand_affine)
        .strided()
        .flops(product_flops)
        .keeps_weight()
        .cut("@dense affine")
        .sample("f32[3,4], f32[5,4], f32[5], true, true")
        .sample("f32[2,3,7], f32[7,2], f32[2], false")
        .sample("f32[9,40], f32[40,33], nil, false, true")
        .sample("f32[4], f32[3,4]");
    ops.add("dot(input/x1/a: same, other/x2/b/tensor: same)")
        .doc(
            "Sum over the last axis of the first operand and the last but one of the second; of two vectors, their "
            "scalar product.")
        .example("dot(tensor{1.0, 2.0}, tensor{3.0, 4.0})", "tensor(11.0)")
        .expand(expand_dot)
        .wide()
        .sample("f32[2,3], f32[3,4]")
        .sample("f32[2,3], f32[2,3,5]")
        .sample("f32[7], f32[7]");
    ops.add("inner(input/a: same, other/b: same)")
        .doc("Sum of products over the last axes of both operands.")
        .example("inner(tensor{{1.0, 2.0}}, tensor{{3.0, 4.0}, {5.0, 6.0}})", "tensor{{11.0, 17.0}}")
        .expand(expand_inner)
        .wide()
        .sample("f32[2,3], f32[4,3]")
        .sample("f32[5], f32[2,3,5]");
    ops.add("outer(input/a/x1: same, vec2/b/x2/other: same)")
        .alias("ger")
        .doc("Products of every element of one vector with every element of another.")
        .example("outer(tensor{1.0, 2.0}, tensor{3.0, 4.0, 5.0})", "tensor{{3.0, 4.0, 5.0}, {6.0, 8.0, 10.0}}")
        .expand(expand_outer)
        .sample("f32[3], f32[4]")
        .sample("f32[1], f32[7]");
    ops.add("kron(input/a/x: same, other/b/y: same)")
        .doc("Kronecker product: the second operand times every element of the first, as blocks.")
        .example("kron(tensor{{1.0, 2.0}}, tensor{{1.0}, {10.0}})", "tensor{{1.0, 2.0}, {10.0, 20.0}}")
        .expand(expand_kron)
        .sample("f32[2,3], f32[2,2]")
        .sample("f32[3], f32[2,5]");
    ops.add("tensor_dot(x1/a/input: same, x2/b/other: same, axes/dims: any = 2)")
        .alias("tensordot")
        .doc("Sums products over pairs of axes: the last n and the first n, or two lists of axes.")
        .example("tensor_dot(tensor{{1.0, 2.0}}, tensor{{3.0}, {4.0}}, 1)", "tensor{{11.0}}")
        .expand(expand_tensor_dot)
        .sample("f32[2,3,4], f32[4,5], axes=1")
        .sample("f32[2,3,4], f32[3,2,5], axes={{0, 1}, {1, 0}}")
        .sample("f32[3], f32[5], axes=0");
    ops.add("addmm(input: same, mat1: same, mat2: same, *, beta: number = 1, alpha: number = 1)")
        .doc("Adds up beta times input and alpha times the product of two matrices.")
        .example("addmm(tensor{1.0}, tensor{{1.0, 2.0}}, tensor{{3.0}, {4.0}}, {alpha = 2})", "tensor{{23.0}}")
        .expand([](const ExpandCall& c) {
            return scaled_sum(c, 3, 4, c.call("mm", {c.in(1), c.in(2)}));
        })
        .open(open::addmm)
        .sample("f32[3,5], f32[3,4], f32[4,5], beta=0.5, alpha=2.0")
        .sample("f32[5], f32[3,4], f32[4,5]");
    ops.add("baddbmm(input: same, batch1: same, batch2: same, *, beta: number = 1, alpha: number = 1)")
        .doc("Adds up beta times input and alpha times the products of two batches of matrices.")
        .example("baddbmm(tensor{1.0}, tensor{{{2.0}}}, tensor{{{3.0}}})", "tensor{{{7.0}}}")
        .expand([](const ExpandCall& c) {
            return scaled_sum(c, 3, 4, c.call("bmm", {c.in(1), c.in(2)}));
        })
        .open(open::baddbmm)
        .sample("f32[2,3,5], f32[2,3,4], f32[2,4,5], beta=0.5, alpha=1.5")
        .sample("f32[5], f32[1,3,4], f32[1,4,5]");
    ops.add("addbmm(input: same, batch1: same, batch2: same, *, beta: number = 1, alpha: number = 1)")
        .doc("Adds up beta times input and alpha times the sum of the products of two batches of matrices.")
        .example("addbmm(tensor{1.0}, tensor{{{2.0}}, {{1.0}}}, tensor{{{3.0}}, {{1.0}}})", "tensor{{8.0}}")
        .expand([](const ExpandCall& c) {
            return scaled_sum(c, 3, 4, c.call("bmm", {c.in(1), c.in(2)}).sum({0}));
        })
        .open(open::addbmm)
        .sample("f32[3,5], f32[2,3,4], f32[2,4,5]")
        .sample("f32[3,5], f32[1,3,2], f32[1,2,5], beta=2.0, alpha=-1.0");
    ops.add("addmv(input/x: same, mat: same, vec: same, *, beta: number = 1, alpha: number = 1)")
        .doc("Adds up beta times input and alpha times the product of a matrix and a vector.")
        .example("addmv(tensor{1.0}, tensor{{1.0, 2.0}}, tensor{3.0, 4.0})", "tensor{12.0}")
        .expand([](const ExpandCall& c) {
            return scaled_sum(c, 3, 4, c.call("mv", {c.in(1), c.in(2)}));
        })
        .open(open::addmv)
        .sample("f32[3], f32[3,4], f32[4], beta=1.5, alpha=-1.0")
        .sample("f32[1], f32[3,4], f32[4]");
    ops.add("addr(x/input: same, vec1: same, vec2: same, *, beta: number = 1, alpha: number = 1)")
        .doc("Adds up beta times x and alpha times the outer product of two vectors.")
        .example("addr(tensor{{1.0, 1.0}}, tensor{2.0}, tensor{3.0, 4.0})", "tensor{{7.0, 9.0}}")
        .expand([](const ExpandCall& c) {
            return scaled_sum(c, 3, 4, c.call("outer", {c.in(1), c.in(2)}));
        })
        .open(open::addr)
        .sample("f32[3,4], f32[3], f32[4]")
        .sample("f32[4], f32[3], f32[4], beta=0.5, alpha=2.0");
    add_einsum_ops(ops);
    add_solve_ops(ops);
    add_distance_ops(ops);
    add_fourier_ops(ops);
    add_spectrum_ops(ops);
    add_band_ops(ops);
    add_system_ops(ops);
    add_factor_ops(ops);
    add_sparse_ops(ops);
    add_special_ops(ops);
}

}  // namespace lunaria
