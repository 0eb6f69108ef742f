// Small helpers over expressions that the families of matrix operators share.
#pragma once

#include <algorithm>

#include "core/operator/op.h"

namespace lunaria {

inline Expr matmul(const Expr& a, const Expr& b) { return call("matmul", {a, b}); }

// Last two axes exchanged.
inline Expr matrix_transpose(const Expr& e) {
    Shape perm;
    int rank = e.rank();
    for (int i = 0; i + 2 < rank; ++i) perm.push_back(i);
    perm.push_back(rank - 1);
    perm.push_back(rank - 2);
    return e.transpose(perm);
}

// The conjugate transpose; the transpose of real matrices.
inline Expr adjoint(const Expr& e) {
    const Expr t = matrix_transpose(e);
    return is_complex(e.dtype()) ? call("conjugate", {t}) : t;
}

// `e` summed over the axes along which `to` was broadcast to its shape.
inline Expr sum_to(const Expr& e, const Shape& to) {
    Shape from = e.shape();
    if (from == to) return e;
    Shape summed;
    int extra = from.rank() - to.rank();
    for (int i = 0; i < from.rank(); ++i)
        if (i < extra || (to[i - extra] == 1 && from[i] != 1)) summed.push_back(i);
    bool only_leading = summed.rank() == extra;
    return e.sum(summed, !only_leading).reshape(to);
}

// Number of rows when all axes but the last count as rows.
inline int64_t rows_of(const Shape& s) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < s.rank(); ++i) rows *= s[i];
    return rows;
}

// `e` as a matrix whose rows run over all axes but the last. The number of rows is written out where it is known: -1
// would be ambiguous where the last axis has no elements.
inline Expr as_rows(const Expr& e) {
    const Shape s = e.shape();
    return e.reshape({s.known() ? rows_of(s) : -1, s.back()});
}

// The inference of matmul.
Types infer_matmul(const Call& call);

class Registry;
void add_einsum_ops(Registry& ops);  // called by the family linalg
void add_image_ops(Registry& ops);   // called by the family attention
void add_placed_ops(Registry& ops);  // called by the family attention
void add_fused_attention_ops(Registry& ops);
void add_language_ops(Registry& ops);  // called by the family attention
void add_solve_ops(Registry& ops);     // called by the family linalg
void add_distance_ops(Registry& ops);  // called by the family linalg
void add_fourier_ops(Registry& ops);   // called by the family linalg
void add_spectrum_ops(Registry& ops);  // called by the family linalg
void add_band_ops(Registry& ops);      // called by the family linalg
void add_system_ops(Registry& ops);    // called by the family linalg
void add_factor_ops(Registry& ops);    // called by the family linalg
void add_sparse_ops(Registry& ops);    // called by the family linalg
void add_special_ops(Registry& ops);   // called by the family linalg

}  // namespace lunaria
