#include "backends/cpu/simd/optimizer_loops.h"

#include <cmath>

#include "core/ops/formulas_optimizer.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// Settings that are fixed for a whole run are template arguments, so that the loops have no branches and are
// vectorised.
template <class T, bool Accumulates, bool Nesterov>
void momentum_loop(T* __restrict p, const T* __restrict grad, T* __restrict a, int64_t count, const MomentumStep& s) {
    const formula::MomentumNumbers<T> numbers{static_cast<T>(s.lr), static_cast<T>(s.momentum),
                                              static_cast<T>(1 - s.dampening), static_cast<T>(s.weight_decay)};
    T nothing{};
    for (int64_t i = 0; i < count; ++i)
        formula::momentum_update<Accumulates, Nesterov>(p[i], grad[i], Accumulates ? a[i] : nothing, numbers);
}

template <class T>
void momentum(T* p, const T* grad, T* a, int64_t count, const MomentumStep& s) {
    if (!a) return momentum_loop<T, false, false>(p, grad, nullptr, count, s);
    return s.nesterov ? momentum_loop<T, true, true>(p, grad, a, count, s)
                      : momentum_loop<T, true, false>(p, grad, a, count, s);
}

template <class T, bool Maximum, bool Nesterov>
void adam_loop(T* __restrict p, const T* __restrict grad, T* __restrict m, T* __restrict v, T* __restrict most,
               int64_t count, const AdamStep& s) {
    const formula::AdamNumbers<T> numbers{
        static_cast<T>(s.step),      static_cast<T>(s.beta1), static_cast<T>(s.beta2), static_cast<T>(1 - s.beta1),
        static_cast<T>(1 - s.beta2), static_cast<T>(s.eps),   static_cast<T>(s.l2),    static_cast<T>(s.decay)};
    T nothing{};
    for (int64_t i = 0; i < count; ++i)
        formula::adam_update<Maximum, Nesterov>(p[i], grad[i], m[i], v[i], Maximum ? most[i] : nothing, numbers);
}

template <class T>
void adam(T* p, const T* grad, T* m, T* v, T* most, int64_t count, const AdamStep& s) {
    if (most)
        return s.nesterov ? adam_loop<T, true, true>(p, grad, m, v, most, count, s)
                          : adam_loop<T, true, false>(p, grad, m, v, most, count, s);
    return s.nesterov ? adam_loop<T, false, true>(p, grad, m, v, nullptr, count, s)
                      : adam_loop<T, false, false>(p, grad, m, v, nullptr, count, s);
}

// u = m / correction1 / (sqrt(v / correction2) + eps) + decay p
template <class T>
class LambDirection {
  public:
    explicit LambDirection(const LambStep& s)
        : first_(static_cast<T>(1 / s.correction1)),
          second_(static_cast<T>(1 / s.correction2)),
          eps_(static_cast<T>(s.eps)),
          decay_(static_cast<T>(s.decay)) {}
    T operator()(T p, T m, T v) const { return m * first_ / (std::sqrt(v * second_) + eps_) + decay_ * p; }

  private:
    T first_, second_, eps_, decay_;
};

template <class T>
void lamb_moments(const T* __restrict p, const T* __restrict grad, T* __restrict m, T* __restrict v, int64_t count,
                  const LambStep& s, double* sums) {
    // At least as many sums as vectors have elements: one sum would be a chain of additions.
    constexpr int64_t kLanes = 16;
    const T b1 = static_cast<T>(s.beta1), b2 = static_cast<T>(s.beta2), c1 = static_cast<T>(1 - s.beta1),
            c2 = static_cast<T>(1 - s.beta2);
    const LambDirection<T> direction(s);
    T own[kLanes] = {}, moved[kLanes] = {};
    auto one = [&](int64_t i, int64_t lane) {
        const T g = grad[i], first = b1 * m[i] + c1 * g, second = b2 * v[i] + c2 * (g * g);
        m[i] = first;
        v[i] = second;
        const T u = direction(p[i], first, second);
        own[lane] += p[i] * p[i];
        moved[lane] += u * u;
    };
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane) one(i + lane, lane);
    for (; i < count; ++i) one(i, 0);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
        sums[0] += static_cast<double>(own[lane]);
        sums[1] += static_cast<double>(moved[lane]);
    }
}

template <class T>
void lamb_move(T* __restrict p, const T* __restrict m, const T* __restrict v, int64_t count, const LambStep& s,
               double rate) {
    const LambDirection<T> direction(s);
    const T share = static_cast<T>(rate);
    for (int64_t i = 0; i < count; ++i) p[i] -= share * direction(p[i], m[i], v[i]);
}

}  // namespace

const OptimizerTable optimizer_table = {{momentum<float>, adam<float>, lamb_moments<float>, lamb_move<float>},
                                        {momentum<double>, adam<double>, lamb_moments<double>, lamb_move<double>}};

}  // namespace lunaria::cpu::LUNARIA_ISA
