// Tensor: a value. Copying one shares its storage; operators never change an operand, so sharing is not observable.
// The few operations that write (index assignment, assign) first make the storage their own: see Tensor::own_storage.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/memory/memory.h"
#include "core/memory/references.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace lunaria {

class Device;

// A counted block of memory on one device. Owned by the tensors that refer to it.
struct Storage {
    std::atomic<int32_t> refs{1};
    Device* device = nullptr;  // nullptr: host memory from core/memory/memory.h
    void* data = nullptr;
    size_t bytes = 0;
    // Called instead of the allocator for foreign memory (mapped files); nullptr otherwise.
    void (*release_foreign)(Storage&) = nullptr;
    void* foreign = nullptr;
    // How many other programs have the memory, which they read and write at any time (DLPack).
    std::atomic<int32_t> exports{0};
};

// How the parts of a tensor lie on several processes that compute together. One object stands for all equal ones, so
// that addresses are compared; null is a tensor that is whole where it is used, as all are until something distributes
// them.
class Distribution;
// What makes a tensor a parameter of a network: optimizers and gradients find it by its body.
struct ParameterInfo {
    std::string name;
    bool requires_grad = true;
    const Distribution* placement = nullptr;
};

struct TensorBody {
    std::atomic<int32_t> refs{1};
    DType dtype = DType::f32;
    bool contiguous = true;  // dense and row-major
    Shape shape;
    Strides strides;
    int64_t offset = 0;  // in elements
    int64_t size = 0;    // number of elements
    Storage* storage = nullptr;
    void* data = nullptr;  // storage->data + offset
    // Counted up by every write to this body, so that whoever kept the tensor can tell that it is another one now.
    uint32_t version = 0;
    // A constant of a rule or an expansion, in host memory: operators take a copy of it to where their operands are.
    bool goes_along = false;
    std::unique_ptr<ParameterInfo> parameter;  // null: a plain tensor
};

class Tensor {
  public:
    Tensor() = default;
    // Dense, contents undefined. `device` null: in host memory.
    static Tensor empty(DType dtype, const Shape& shape, Device* device = nullptr);
    // The same in host memory, with the dtype and shape of a dense tensor.
    static Tensor like(const Tensor& t);
    static Tensor zeros(DType dtype, const Shape& shape);
    // Every element is `value` (rounded to the dtype).
    static Tensor full(DType dtype, const Shape& shape, double value);
    static Tensor scalar(DType dtype, double value) { return full(dtype, {}, value); }
    static Tensor scalar(int64_t value);  // i64, exact
    // Copies `values` into a new dense tensor.
    template <class T>
    static Tensor from(std::span<const T> values, const Shape& shape);
    // A tensor over memory that is not ours; `release` is called when the last tensor over it goes.
    static Tensor over(void* data, DType dtype, const Shape& shape, void (*release)(Storage&), void* foreign,
                       Device* device = nullptr);

    Tensor(const Tensor& other) : body_(other.body_) {
        if (body_) retain(body_);
    }
    Tensor(Tensor&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
    Tensor& operator=(Tensor other) noexcept {
        std::swap(body_, other.body_);
        return *this;
    }
    ~Tensor() {
        if (body_) drop(body_);
    }

    explicit operator bool() const { return body_ != nullptr; }
    bool same_body(const Tensor& other) const { return body_ == other.body_; }
    DType dtype() const { return body_->dtype; }
    const Shape& shape() const { return body_->shape; }
    const Strides& strides() const { return body_->strides; }
    int rank() const { return body_->shape.rank(); }
    int64_t dim(int axis) const { return body_->shape[axis]; }
    int64_t size() const { return body_->size; }
    size_t nbytes() const { return static_cast<size_t>(body_->size) * size_of(body_->dtype); }
    int64_t offset() const { return body_->offset; }
    bool is_contiguous() const { return body_->contiguous; }
    // Null: host memory.
    Device* device() const { return body_->storage->device; }
    // On the device (null: in host memory); itself if it is there. Waits for the device that it comes from.
    Tensor to(Device* device) const { return device == this->device() ? *this : copied_to(device); }
    // Elements that the host may look at: all that reads raw() or data() outside of kernels asks for this first.
    Tensor to_host() const { return to(nullptr); }
    bool goes_along() const { return body_->goes_along; }
    void set_goes_along() { body_->goes_along = true; }
    uint32_t version() const { return body_->version; }
    // Null for all but parameters. An operator's result never is one, nor is a view or a copy of a parameter.
    ParameterInfo* parameter() const { return body_->parameter.get(); }
    // Makes a parameter of this body, or gives it new properties.
    void set_parameter(ParameterInfo info);
    const Distribution* placement() const { return body_->parameter ? body_->parameter->placement : nullptr; }
    bool shares_storage(const Tensor& other) const { return body_->storage == other.body_->storage; }

    // First element, an address of the device: the host reads those of to_host(). Only kernels and code that has just
    // made the tensor may write through it.
    void* raw() const { return body_->data; }
    template <class T>
    T* data() const {
        return static_cast<T*>(body_->data);
    }

    // Other programs have the memory as well: a write goes into it, and none of its elements can be relied on to stay
    // as they are.
    bool is_exported() const { return body_->storage->exports.load(std::memory_order_relaxed) > 0; }
    // For as long as another program has the memory, which is made dense and this body's own first; the contents stay.
    void begin_export();
    void end_export() const { body_->storage->exports.fetch_sub(1, std::memory_order_acq_rel); }

    // A tensor of its own with these elements as they are now: a view, since a write to a tensor makes the storage
    // its own first; a copy of what is exported.
    Tensor apart() const;
    // Whether it is one already, of which there is no other name.
    bool is_apart() const { return body_->refs.load(std::memory_order_relaxed) == 1 && !is_exported(); }

    // Another view of the same storage. `strides` in elements, `offset` relative to this tensor's first element.
    Tensor view(const Shape& shape, const Strides& strides, int64_t offset = 0) const;
    // Same elements with another shape of the same size; copies when the layout does not allow a view.
    Tensor reshaped(const Shape& shape) const;
    // Dense row-major; itself if it already is.
    Tensor contiguous() const;
    Tensor copy() const;          // dense, own storage, on the same device
    Tensor cast(DType to) const;  // itself if it already is

    // True when no other tensor can see a write to this one.
    bool is_sole_owner() const;

    // Makes the storage this body's own and dense, keeping the body: every handle of it goes on seeing the same tensor.
    // To be called before a write; counts as one. What is exported stays where it is; an error where that is
    // not dense.
    void own_storage();
    void count_write() { ++body_->version; }
    // Gives this body, and so every handle of it, the elements of `value`, broadcast and converted to its shape and
    // dtype. No other tensor changes, but for those over the same exported memory. Throws shape_error with `where`.
    void assign(std::string_view where, const Tensor& value);

    // Gives this body the dtype, shape and elements of `value`: every handle of the body sees another tensor, and a
    // parameter stays one. Exported memory is written into where the elements fit it, and left to the others else.
    void become(const Tensor& value);

    // Element `index` in row-major order, as a double (complex: real part), from wherever it is. For tests, printing
    // and scalars; not for kernels, nor for many elements of another device's (see to_host).
    double at(int64_t index) const;
    int64_t integer_at(int64_t index) const;
    void set_at(int64_t index, double value);

    // For handles that keep the body elsewhere (Lua userdata, Value): ownership moves with the pointer.
    TensorBody* release() { return std::exchange(body_, nullptr); }
    TensorBody* body() const { return body_; }
    static Tensor adopt(TensorBody* body) {
        Tensor t;
        t.body_ = body;
        return t;
    }
    static void retain(TensorBody* body) noexcept;
    static void drop(TensorBody* body) noexcept;

  private:
    Tensor copied_to(Device* device) const;
    void write_through(const Tensor& value);
    static void destroy(TensorBody* body) noexcept;
    TensorBody* body_ = nullptr;
};

// Copies the elements of `source` into `destination` in row-major order, converting to its dtype. Both have the same
// number of elements, and the same shape unless both are dense. They must not overlap, and may be on different devices.
void copy_elements(const Tensor& source, const Tensor& destination);

// A faster copy that is asked first and may decline; a device for host memory sets it. The plain one is its judge.
using CopyFn = bool (*)(const Tensor& source, const Tensor& destination);
void set_fast_copy(CopyFn copy);
void plain_copy_elements(const Tensor& source, const Tensor& destination);

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
    Tensor t = empty(dtype_of<T>(), shape);
    T* out = t.data<T>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return t;
}

}  // namespace lunaria
