// Cross-entropies of single probabilities, element by element.
#include "backends/cpu/simd/fold.h"
#include "backends/cpu/simd/row_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// The last pack is padded with elements at which everything is defined.
template <class T>
[[gnu::always_inline]] inline Pack<T> take(const T* x, int64_t rest, T fill) {
    return rest >= Pack<T>::lanes ? Pack<T>::load(x) : load_filled(x, static_cast<int>(rest), fill);
}
template <class T>
[[gnu::always_inline]] inline void put(T* y, Pack<T> p, int64_t rest) {
    if (rest >= Pack<T>::lanes)
        p.store(y);
    else
        store_part(y, p, static_cast<int>(rest));
}

// -(t log x + (1 - t) log(1 - x)), logarithms not below -100; false when an x is no probability.
template <class T>
bool bernoulli(const T* x, const T* target, T* y, int64_t n) {
    Pack<T> one = Pack<T>(1), least = Pack<T>(-100);
    Mask<T> outside = one != one;
    for (int64_t i = 0; i < n; i += Pack<T>::lanes) {
        Pack<T> p = take(x + i, n - i, T(0.5)), t = take(target + i, n - i, T(0));
        outside = outside | (p < Pack<T>(0)) | (p > one);
        Pack<T> yes = log(p), no = log1p(-p);
        yes = select(yes < least, least, yes);
        no = select(no < least, least, no);
        put(y + i, -(t * yes + (one - t) * no), n - i);
    }
    return !any(outside);
}

// (1 - t) x + w log(1 + exp(-x)) with w = 1 + (p - 1) t. The terms in x are combined, so that infinities do not meet,
// and count as 0 when their factor is.
template <class T>
void sigmoid(const T* x, const T* target, const T* pos_weight, T* y, int64_t n) {
    Pack<T> zero = Pack<T>(0), one = Pack<T>(1);
    for (int64_t i = 0; i < n; i += Pack<T>::lanes) {
        Pack<T> v = take(x + i, n - i, T(0)), t = take(target + i, n - i, T(0)), w = one;
        if (pos_weight) w = one + (take(pos_weight + i, n - i, T(1)) - one) * t;
        Pack<T> tail = log1p(exp(-abs(v)));
        Pack<T> factor = select(v < zero, one - t - w, one - t);
        Pack<T> linear = select((factor == zero) & (v == v), zero, factor * v);
        put(y + i, linear + w * tail, n - i);
    }
}

template <class T>
LossLoops<T> loops() {
    LossLoops<T> l;
    l.bernoulli = bernoulli<T>;
    l.sigmoid = sigmoid<T>;
    return l;
}

}  // namespace

void fill_loss_loops(RowLoops& l) {
    l.loss_f32 = loops<float>();
    l.loss_f64 = loops<double>();
}

}  // namespace lunaria::cpu::LUNARIA_ISA
