// Data that a step of a compiled program keeps for its kernel from run to run: a weight in a layout that is faster for
// the kernel, as long as the weight does not change. The program offers the place, the kernel fills and reads it:
//
//     if (Prepared* place = prepared_place(weight)) { ... place->kept.find<Layout>(&kLayout) ... }
#pragma once

#include <memory>

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

namespace lunaria {

// One object of any type, kept from call to call.
class Kept {
  public:
    // The cached value of this key, or null. A key is the address of a static object that its owner chooses.
    template <class T>
    T* find(const void* owner) const {
        return owner == owner_ ? static_cast<T*>(content_.get()) : nullptr;
    }
    template <class T>
    T* keep(const void* owner, std::unique_ptr<T> content) {
        owner_ = owner;
        content_ = std::move(content);
        return static_cast<T*>(content_.get());
    }
    void forget() { content_.reset(); }

  private:
    const void* owner_ = nullptr;
    std::shared_ptr<void> content_;  // shared because its type is erased
};

struct Prepared {
    Tensor weight;  // as of the previous run
    uint32_t version = 0;
    bool is_steady = false;  // it was the same in the previous run: preparing it pays
    Kept kept;
};

namespace detail {
inline Prepared*& current_prepared() {
    thread_local Prepared* place = nullptr;
    return place;
}
// Memory for the call with these arguments only: its kernel may run other operators.
struct Memory {
    Kept* kept = nullptr;
    const Value* args = nullptr;
};
inline Memory& current_memory() {
    thread_local Memory memory;
    return memory;
}
}  // namespace detail

// Offers the place to the kernels that this thread calls while the offer lives.
class PreparedOffer {
  public:
    PreparedOffer(Prepared& place, const Tensor& weight) {
        place.is_steady = place.weight && place.weight.same_body(weight) && place.version == weight.version() &&
                          !weight.is_exported();
        if (!place.is_steady) {
            place.weight = weight;
            place.version = weight.version();
            place.kept.forget();
        }
        detail::current_prepared() = &place;
    }
    PreparedOffer(const PreparedOffer&) = delete;
    ~PreparedOffer() { detail::current_prepared() = nullptr; }
};

// Offers the memory of recall() to the kernel of a compiled program's step while the kernel runs.
class MemoryOffer {
  public:
    MemoryOffer(Kept& kept, std::span<const Value> args) { detail::current_memory() = {&kept, args.data()}; }
    MemoryOffer(const MemoryOffer&) = delete;
    ~MemoryOffer() { detail::current_memory() = {}; }
};

// The place for the elements of a weight, if there is one and they are those of the previous run.
inline Prepared* prepared_place(const void* elements) {
    Prepared* place = detail::current_prepared();
    return place && place->is_steady && place->weight.raw() == elements ? place : nullptr;
}

// The result of make() for the types and attributes of a call. They are the same in all runs of a compiled step, so
// that make() runs once for a step; for other calls it runs each time, into `own`.
template <class T, class F>
const T& recall(const KernelCall& call, const void* owner, T& own, F&& make) {
    const detail::Memory& memory = detail::current_memory();
    if (memory.args != call.args.data()) return own = make();
    if (const T* known = memory.kept->find<T>(owner)) return *known;
    return *memory.kept->keep(owner, std::make_unique<T>(make()));
}

}  // namespace lunaria
