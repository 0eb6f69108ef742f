// Functions that the reduction, scan, softmax and loss operators share.
#pragma once

#include <algorithm>

#include "core/operator/op.h"

namespace lunaria {

// The shape after `axes` (counted from 0) are reduced: with size 1 when `keep`, else without them.
Shape reduced_shape(const Shape& shape, const Shape& axes, bool keep);

// The number of elements that are reduced to one; kUnknownDim when a size is not known.
int64_t reduced_count(const Shape& shape, const Shape& axes);

// Throws when argument 0 has no element along `axes`: extrema have no identity.
void expect_not_empty(const Call& call, const Shape& axes);

// Throws when argument i is complex.
void expect_real(const Call& call, size_t i);

// A reduced expression with its reduced axes put back as axes of size 1.
Expr keep_axes(const Expr& e, const Shape& shape, const Shape& axes);

// Inference for the operators that sum.
Types infer_sum(const Call& call);

// The order of a vector norm: 2 where none is given, "inf" and "-inf" as words; NaN for other words.
double norm_order(const Value& v);

void add_vector_norm_ops(Registry& ops);  // core/ops/vector_norm.cpp
void add_scan_ops(Registry& ops);         // core/ops/scan.cpp

}  // namespace lunaria
