// Tensor: a value. A copy shares its storage; operators never change an operand, so sharing cannot be observed. The few
// operations that write (index assignment, assign) first make the storage their own: see Tensor::own_storage.
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

// A counted block of memory on one device, owned by the tensors that refer to it.
struct Storage {
    std::atomic<int32_t> refs{1};
    Device* device = nullptr;  // nullptr: host memory of core/memory/memory.h
    void* data = nullptr;
    size_t bytes = 0;
    // Frees foreign memory (mapped files) instead of the allocator; nullptr: the memory is not foreign.
    void (*release_foreign)(Storage&) = nullptr;
    void* foreign = nullptr;
    // The number of other programs that share the memory, which they read and write at any time (DLPack).
    std::atomic<int32_t> exports{0};
};

// The layout of a tensor's parts on several processes that compute together. Equal layouts are one object, so that
// addresses are compared. Null: the tensor is whole on each process, as all are until something distributes them.
class Distribution;
// The properties of a tensor that is a parameter of a network; optimizers and gradients find it by its body.
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
    // Increased by every write to this body: a holder of the tensor sees by it that the content has changed.
    uint32_t version = 0;
    // A constant of a rule or an expansion, in host memory: operators copy it to the device of their operands.
    bool goes_along = false;
    std::unique_ptr<ParameterInfo> parameter;  // null: a plain tensor
};

class Tensor {
  public:
    Tensor() = default;
    // A dense tensor with undefined contents. `device` null: in host memory.
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
    // A tensor over foreign memory; `release` is called when the last tensor over it is freed.
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
    // The tensor on the device (null: in host memory); the same tensor if it is already there. Waits for the source
    // device.
    Tensor to(Device* device) const { return device == this->device() ? *this : copied_to(device); }
    // The elements in host memory, as code outside of kernels needs them for raw() and data().
    Tensor to_host() const { return to(nullptr); }
    bool goes_along() const { return body_->goes_along; }
    void set_goes_along() { body_->goes_along = true; }
    uint32_t version() const { return body_->version; }
    // Null except for parameters. The result of an operator is never a parameter, nor is a view or a copy of one.
    ParameterInfo* parameter() const { return body_->parameter.get(); }
    // Makes this body a parameter, or changes its properties.
    void set_parameter(ParameterInfo info);
    const Distribution* placement() const { return body_->parameter ? body_->parameter->placement : nullptr; }
    bool shares_storage(const Tensor& other) const { return body_->storage == other.body_->storage; }

    // The address of the first element on the device; the host reads that of to_host(). Only kernels and code that has
    // just made the tensor may write through it.
    void* raw() const { return body_->data; }
    template <class T>
    T* data() const {
        return static_cast<T*>(body_->data);
    }

    // Other programs share the memory: writes go into it, and its elements may change at any time.
    bool is_exported() const { return body_->storage->exports.load(std::memory_order_relaxed) > 0; }
    // Until end_export another program shares the memory, which is first made dense and this body's own; the contents
    // stay.
    void begin_export();
    void end_export() const { body_->storage->exports.fetch_sub(1, std::memory_order_acq_rel); }

    // A tensor of its own with the present elements. It is a view, since a write to either tensor first makes its
    // storage its own; exported memory is copied.
    Tensor apart() const;
    // Whether it already is such a tensor, with no other handle of the body.
    bool is_apart() const { return body_->refs.load(std::memory_order_relaxed) == 1 && !is_exported(); }

    // Another view of the same storage. `strides` in elements, `offset` relative to this tensor's first element.
    Tensor view(const Shape& shape, const Strides& strides, int64_t offset = 0) const;
    // Same elements with another shape of the same size; copies when the layout does not allow a view.
    Tensor reshaped(const Shape& shape) const;
    // A dense row-major tensor; the same tensor if it already is.
    Tensor contiguous() const;
    Tensor copy() const;          // dense, own storage, on the same device
    Tensor cast(DType to) const;  // the same tensor if it already has that type

    // True if no other tensor would see a write to this one.
    bool is_sole_owner() const;

    // Makes the storage this body's own and dense and keeps the body, so that every handle still refers to the same
    // tensor. To be called before a write; counts as one. Exported memory stays in place; an error if it is not dense.
    void own_storage();
    void count_write() { ++body_->version; }
    // Replaces the elements of this body, seen by all its handles, by those of `value`, broadcast and converted to its
    // shape and dtype. Other tensors do not change, except those over the same exported memory. Throws shape_error with
    // `where`.
    void assign(std::string_view where, const Tensor& value);

    // Replaces dtype, shape and elements of this body by those of `value`: all handles of the body see the new tensor,
    // and a parameter stays one. Exported memory is written into if the elements fit it, and otherwise left to the
    // other programs.
    void become(const Tensor& value);

    // Element `index` in row-major order as a double (complex: the real part), from any device. For tests, printing and
    // scalars, not for kernels, nor for many elements of another device (see to_host).
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

// Copies the elements of `source` into `destination` in row-major order, converted to its dtype. Both have the same
// number of elements, and the same shape unless both are dense. They must not overlap, and may be on different devices.
void copy_elements(const Tensor& source, const Tensor& destination);

// A faster copy, tried first, which may decline; the device of host memory sets it. Tests compare it with the plain
// one.
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
