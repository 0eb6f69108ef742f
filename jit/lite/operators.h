// The operators of the light runtime that the registry does not have: kernels with arranged weights, channels-last
// pictures and epilogues. They live in graphs of light models only; README.md describes them.
#pragma once

#include "core/operator/op.h"
#include "jit/graph/operators.h"

namespace lunaria::lite {

struct LightOperators {
    LightOperators();
    Registry registry;
    const Op &product, &batched_product, &convolution, &pack_convolution, &max_pool, &average_pool;
};
const LightOperators& light();

// Those on integers of 8 bits.
struct IntegerOperators {
    IntegerOperators();
    Registry registry;
    const Op &product, &convolution, &quantize;
};
const IntegerOperators& integer();

// Operators of the registry that become these, beside those of jit/graph/operators.h.
struct KnownOperators {
    const Op& conv1d = lunaria::registry().get("conv1d");
    const Op& conv3d = lunaria::registry().get("conv3d");
    const Op& avg_pool1d = lunaria::registry().get("avg_pool1d");
    const Op& avg_pool2d = lunaria::registry().get("avg_pool2d");
    const Op& avg_pool3d = lunaria::registry().get("avg_pool3d");
    const Op& leaky_relu = lunaria::registry().get("leaky_relu");
    const Op& gather = lunaria::registry().get("gather");
    const Op& elu = lunaria::registry().get("elu");

    bool is_convolution(const Op* op) const { return op == &conv1d || op == &graph::ops().conv2d || op == &conv3d; }
    bool is_average_pool(const Op* op) const { return op == &avg_pool1d || op == &avg_pool2d || op == &avg_pool3d; }
};
const KnownOperators& known();

// Positions of arguments that product and convolution share, counted from the first after the operands.
enum LightArgument : size_t { kX, kWeight, kBias, kScale, kResidual, kActivation, kAlpha, kBeta, kResidualLast };

}  // namespace lunaria::lite
