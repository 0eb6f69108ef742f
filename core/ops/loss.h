// Functions that the loss operators share.
#pragma once

#include "core/operator/op.h"
#include "core/ops/reduce.h"

namespace lunaria {

// The losses of the elements, reduced as asked: "mean", "sum", "none".
Expr reduced(const Expr& loss, std::string_view reduction);

// weight * x, but 0 where the weight is 0 and x infinite: an excluded element must not become NaN.
Expr weighted_finite(const Expr& weight, const Expr& x);

void add_class_loss_ops(Registry& ops);  // core/ops/class_loss.cpp
void add_ctc_ops(Registry& ops);         // core/ops/ctc.cpp

}  // namespace lunaria
