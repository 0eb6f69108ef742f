// Steps of optimizers over plain memory: one pass that reads gradient, parameter and moments and writes the latter. One
// table for each instruction set.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

struct MomentumStep {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
};

struct AdamStep {
    double step, beta1, beta2, eps, l2, decay;
    bool nesterov;
};

// correction1, correction2: the divisors of the moments. decay applies to the direction, not to the gradient.
struct LambStep {
    double beta1, beta2, eps, correction1, correction2, decay;
};

template <class T>
struct OptimizerLoops {
    // accumulator == nullptr: plain gradient descent.
    void (*momentum)(T* parameter, const T* gradient, T* accumulator, int64_t count, const MomentumStep& step);
    // maximum == nullptr: the root of the square itself.
    void (*adam)(T* parameter, const T* gradient, T* moment, T* square, T* maximum, int64_t count,
                 const AdamStep& step);
    // Lamb's step needs the norms of the whole parameter and of its direction first: the first loop updates the moments
    // and adds the sums of squares of parameter and direction to `sums`. The second subtracts `rate` times the
    // direction, computed again from the moments, from the parameter.
    void (*lamb_moments)(const T* parameter, const T* gradient, T* moment, T* square, int64_t count,
                         const LambStep& step, double* sums);
    void (*lamb_move)(T* parameter, const T* moment, const T* square, int64_t count, const LambStep& step, double rate);
};

struct OptimizerTable {
    OptimizerLoops<float> f32;
    OptimizerLoops<double> f64;
};

namespace v2 {
extern const OptimizerTable optimizer_table;
}
namespace avx2 {
extern const OptimizerTable optimizer_table;
}
namespace avx512 {
extern const OptimizerTable optimizer_table;
}

}  // namespace lunaria::cpu
