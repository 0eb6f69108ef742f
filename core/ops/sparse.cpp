// Operators: sparse matrices in rows (CSR): values with their columns, row by row; indptr holds the begin of each row.
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/flops.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

Types infer_csr_matmul(const Call& c) {
    for (size_t i : {0, 1, 2}) expect_rank(c, i, 1);
    expect_rank(c, 3, 2);
    if (c.type(0).dtype != c.type(1).dtype)
        throw dtype_error(c.name(), str("indptr is ", name_of(c.type(0).dtype), " and indices is ",
                                        name_of(c.type(1).dtype), ": they must have one dtype"));
    if (c.type(0).dtype != DType::i32 && c.type(0).dtype != DType::i64)
        throw dtype_error(c.name(), str("indptr and indices must be int32 or int64, not ", name_of(c.type(0).dtype)));
    const int64_t starts = c.shape(0)[0];
    if (starts == 0) throw shape_error(c.name(), "indptr must have one more element than the matrix has rows");
    if (c.shape(1)[0] != c.shape(2)[0])
        throw shape_error(c.name(), str("there are ", c.shape(1)[0], " indices and ", c.shape(2)[0],
                                        " values: each value has a column"));
    return {{c.dtype, {starts == kUnknownDim ? kUnknownDim : starts - 1, c.shape(3)[1]}}};
}

// The row of each value.
Expr rows_of_values(const GradRule& g) {
    const Expr places = g.call("arange", {int64_t{0}, g.shape(2)[0], int64_t{1}, g.in(0).dtype()});
    return g.call("sub", {g.call("searchsorted", {g.in(0), places, {"right", true}}), int64_t{1}});
}

Grads csr_matmul_grad(const GradRule& g) {
    const Expr rows = rows_of_values(g), picked = g.call("gather", {g.dout, rows, 0});
    const Expr partner = g.call("gather", {g.in(3), g.in(1), 0});
    const Expr column = g.in(2).reshape({g.shape(2)[0], 1});
    return {
        {}, {}, (picked * partner).sum({1}), g.call("unsorted_segment_sum", {picked * column, g.in(1), g.shape(3)[0]})};
}

double csr_flops(const Call& c, std::span<const TensorType> results) {
    return 2 * elements(c.shape(2)) * size_from_end(results[0].shape, 1);
}

}  // namespace

void add_sparse_ops(Registry& ops) {
    ops.add("csr_matmul(indptr: tensor, indices: tensor, values: float, dense/b: float)")
        .doc(
            "Product of a sparse matrix and a dense one. The sparse one is given by rows: row i has the values from "
            "indptr[i] up to indptr[i + 1], in the columns that indices names.")
        .example("csr_matmul(tensor{0, 1, 2}, tensor{1, 0}, tensor{2.0, 3.0}, tensor{{1.0}, {10.0}})",
                 "tensor{{20.0}, {3.0}}")
        .infer(infer_csr_matmul)
        .grad(csr_matmul_grad)
        .raises()
        .flops(csr_flops)
        .method(false)
        .cut("-,-,-,!nk->!mk")
        .sample("i64[2]:(0,1), i64[0], f32[0], f32[3,2]")
        .sample("i32[2]:(0,1), i32[0], f32[0], f32[3,2]");
}

}  // namespace lunaria
