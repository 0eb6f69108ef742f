// Steps of optimizers for one element, over any number type: the formulas of core/ops/optimizer.cpp, with the numbers
// that a whole step shares.
#pragma once

#include <cmath>

#include "core/ops/formulas.h"

namespace lunaria::formula {

// Inlined wherever they are used: loops are built for several instruction sets.
template <class T>
struct MomentumNumbers {
    T lr, momentum, share, decay;  // share: 1 - dampening
};

template <bool kAccumulates, bool kNesterov, class T>
[[gnu::always_inline]] inline void momentum_update(T& p, T grad, T& a, const MomentumNumbers<T>& s) {
    const T g = grad + s.decay * p;
    if constexpr (kAccumulates) {
        a = s.momentum * a + s.share * g;
        if constexpr (kNesterov)
            p = p - s.lr * (g + s.momentum * a);
        else
            p = p - s.lr * a;
    } else {
        p = p - s.lr * g;
    }
}

template <class T>
struct AdamNumbers {
    T step, beta1, beta2, rest1, rest2, eps, l2, decay;  // rest: 1 - beta
};

template <bool kMaximum, bool kNesterov, class T>
[[gnu::always_inline]] inline void adam_update(T& p, T grad, T& m, T& v, T& most, const AdamNumbers<T>& s) {
    using std::sqrt;
    const T g = grad + s.l2 * p;
    m = s.beta1 * m + s.rest1 * g;
    v = s.beta2 * v + s.rest2 * (g * g);
    T under = v;
    if constexpr (kMaximum) {
        under = select(most > v, most, v);
        most = under;
    }
    T up = m;
    if constexpr (kNesterov) up = s.beta1 * m + s.rest1 * g;
    p = s.decay * p - s.step * up / (sqrt(under) + s.eps);
}

}  // namespace lunaria::formula
