// What the loss operators share.
#pragma once

#include "core/op.h"
#include "core/ops/reduce.h"

namespace lunaria {

// A half as f32, everything else (and nothing) as it is.
Expr widened(const Expr& e);

// The losses of the elements as the caller wants them ("mean", "sum", "none"), in his dtype.
Expr reduced(const Expr& loss, std::string_view reduction, DType dtype);

// weight * x, but 0 where the weight is 0 and x infinite: what is left out must not become NaN.
Expr weighted_finite(const Expr& weight, const Expr& x);

void add_class_loss_ops(Registry& ops);  // core/ops/class_loss.cpp
void add_ctc_ops(Registry& ops);         // core/ops/ctc.cpp

}  // namespace lunaria
