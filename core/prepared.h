// What a step of a compiled program keeps for its kernel from run to run: a weight in a layout that the kernel likes
// better, as long as nobody has written to the weight. The program offers the place, the kernel fills and reads it:
//
//     if (Prepared* place = prepared_place(weight)) { ... place->find<Layout>(&kLayout) ... }
#pragma once

#include <memory>

#include "core/tensor.h"

namespace lunaria {

struct Prepared {
    Tensor weight;  // as of the run before
    uint32_t version = 0;
    bool is_steady = false;  // it was the same in the run before: worth being prepared

    // What a kernel has kept, of the type that it kept it as; null where nobody has, or another: kernels tell what is
    // theirs by an address of their own.
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
    std::shared_ptr<void> content_;  // shared to be of any type
};

namespace detail {
inline Prepared*& current_place() {
    thread_local Prepared* place = nullptr;
    return place;
}
}  // namespace detail

// Offers the place to the kernels that this thread calls while the offer lives.
class PreparedOffer {
  public:
    PreparedOffer(Prepared& place, const Tensor& weight) {
        place.is_steady = place.weight && place.weight.same_body(weight) && place.version == weight.version();
        if (!place.is_steady) {
            place.weight = weight;
            place.version = weight.version();
            place.forget();
        }
        detail::current_place() = &place;
    }
    PreparedOffer(const PreparedOffer&) = delete;
    ~PreparedOffer() { detail::current_place() = nullptr; }
};

// The place for the elements of a weight, where there is one and they are those of the run before.
inline Prepared* prepared_place(const void* elements) {
    Prepared* place = detail::current_place();
    return place && place->is_steady && place->weight.raw() == elements ? place : nullptr;
}

}  // namespace lunaria
