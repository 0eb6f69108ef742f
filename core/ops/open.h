// Formulas in place of operators whose attributes are differentiated, see Op::open.
#pragma once

#include "core/operator/op.h"

namespace lunaria::open {

Expr full(const ExpandCall& c);
Expr fill(const ExpandCall& c);
Expr full_like(const ExpandCall& c);
Expr new_full(const ExpandCall& c);
Expr pad(const ExpandCall& c);
Expr linspace(const ExpandCall& c);
Expr logspace(const ExpandCall& c);
Expr leaky_relu(const ExpandCall& c);
Expr elu(const ExpandCall& c);
Expr celu(const ExpandCall& c);
Expr softplus(const ExpandCall& c);
Expr threshold(const ExpandCall& c);
Expr hardtanh(const ExpandCall& c);
Expr hardshrink(const ExpandCall& c);
Expr softshrink(const ExpandCall& c);
Expr smooth_l1_loss(const ExpandCall& c);
Expr huber_loss(const ExpandCall& c);
Expr hinge_embedding_loss(const ExpandCall& c);
Expr margin_ranking_loss(const ExpandCall& c);
Expr smoothed_loss(const ExpandCall& c);  // cross_entropy, nll_loss
Expr addmm(const ExpandCall& c);
Expr baddbmm(const ExpandCall& c);
Expr addbmm(const ExpandCall& c);
Expr addmv(const ExpandCall& c);
Expr addr(const ExpandCall& c);
Expr index_add(const ExpandCall& c);
Expr layer_norm(const ExpandCall& c);
Expr group_norm(const ExpandCall& c);
Expr instance_norm(const ExpandCall& c);
Expr rms_norm(const ExpandCall& c);
Expr add_layer_norm(const ExpandCall& c);
Expr add_rms_norm(const ExpandCall& c);
Expr var(const ExpandCall& c);
Expr std(const ExpandCall& c);
Expr var_mean(const ExpandCall& c);
Expr std_mean(const ExpandCall& c);
Expr cosine_similarity(const ExpandCall& c);
Expr logit(const ExpandCall& c);
Expr lrn(const ExpandCall& c);
Expr hamming_window(const ExpandCall& c);
Expr trapz(const ExpandCall& c);
Expr attention(const ExpandCall& c);

}  // namespace lunaria::open
