// Operators: random numbers. Element i of a call depends on the seed, the call's counter and i alone (core/random.h).
#include <cmath>

#include "core/ops/families.h"
#include "core/ops/layout.h"

namespace lunaria {

namespace {

constexpr const char* kRandom = "the result is random and depends on no tensor";

Types infer_floats(const Call& c, size_t size, size_t dtype) {
    DType t = c.dtype_or(dtype, DType::f32);
    if (!is_float(t)) throw dtype_error(c.name(), str("dtype must be a float type, not ", name_of(t)));
    auto sizes = c.ints(size);
    return {{t, checked_shape(c.name(), sizes, size_of(t))}};
}

void add_plain_numbers(Registry& ops) {
    ops.add("rand(size/shape: shape, dtype: dtype? = nil, seed: int? = nil)")
        .doc("Numbers from the uniform distribution over [0, 1).")
        .example("shape(rand({2, 3}))", "{2, 3}")
        .infer([](const Call& c) { return infer_floats(c, 0, 1); })
        .effect(Effect::random)
        .no_grad(kRandom)
        .sample("{2,3}, seed=1")
        .sample("{7}, float64, 2");
    ops.add("randn(size/shape: shape, dtype: dtype? = nil, seed: int? = nil)")
        .doc("Numbers from the normal distribution with mean 0 and variance 1.")
        .example("shape(randn({2, 3}))", "{2, 3}")
        .infer([](const Call& c) { return infer_floats(c, 0, 1); })
        .effect(Effect::random)
        .no_grad(kRandom)
        .alias("standard_normal")
        .sample("{2,3}, seed=1")
        .sample("{7}, float64, 2");
}

}  // namespace

void add_random_ops(Registry& ops) { add_plain_numbers(ops); }

}  // namespace lunaria
