#include "core/tensor/turned.h"

namespace lunaria {

namespace {

// Storage::foreign of a storage that is not foreign.
struct Turned {
    Shape shape;
    Strides strides;
    std::atomic<TensorBody*> dense{nullptr};
};

Turned* mark_of(const Storage& storage) {
    return storage.release_foreign ? nullptr : static_cast<Turned*>(storage.foreign);
}

}  // namespace

Tensor turned(const Tensor& dense, const Shape& shape, const Strides& strides) {
    const bool is_own = dense.is_sole_owner();
    Tensor t = dense.view(shape, strides);
    if (is_own && !t.is_contiguous()) t.body()->storage->foreign = new Turned{shape, strides};
    return t;
}

bool is_turned(const Tensor& t) {
    if (t.is_contiguous()) return false;
    const Turned* const mark = mark_of(*t.body()->storage);
    return mark && t.offset() == 0 && t.shape() == mark->shape && t.strides() == mark->strides;
}

Tensor row_major(const Tensor& t) {
    if (!is_turned(t)) return t;
    Turned& mark = *mark_of(*t.body()->storage);
    TensorBody* dense = mark.dense.load(std::memory_order_acquire);
    if (!dense) {
        TensorBody* const mine = t.copy().release();
        // Another thread may have made one meanwhile.
        if (mark.dense.compare_exchange_strong(dense, mine, std::memory_order_acq_rel))
            dense = mine;
        else
            Tensor::drop(mine);
    }
    // A body of its own: a write to it does not reach the copy that is kept.
    Tensor::retain(dense);
    return Tensor::adopt(dense).view(t.shape(), contiguous_strides(t.shape()));
}

Strides shown_strides(const Tensor& t) { return is_turned(t) ? contiguous_strides(t.shape()) : t.strides(); }

Tensor part_of(const Tensor& t, int axis, int64_t position) {
    const Tensor whole = row_major(t);
    Shape shape = whole.shape();
    Strides strides = whole.strides();
    shape.erase(axis);
    strides.erase(axis);
    return whole.view(shape, strides, position * whole.strides()[axis]);
}

void forget_turned(Storage& storage) noexcept {
    Turned* const mark = mark_of(storage);
    if (!mark) return;
    if (TensorBody* const dense = mark->dense.load(std::memory_order_acquire)) Tensor::drop(dense);
    delete mark;
}

}  // namespace lunaria
