#include "core/tensor/tensor.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/memory/free_list.h"
#include "core/tensor/device.h"
#include "core/tensor/parameter_watch.h"
#include "core/tensor/turned.h"

namespace lunaria {

namespace {

constinit thread_local FreeList<TensorBody> free_bodies;
constinit thread_local FreeList<Storage> free_storages;

void drop_storage(Storage* storage) noexcept {
    if (!drop_reference(storage->refs)) return;
    if (storage->foreign) [[unlikely]]
        forget_turned(*storage);
    if (storage->release_foreign)
        storage->release_foreign(*storage);
    else if (storage->device)
        storage->device->release(storage->data, storage->bytes);
    else if (storage->data)
        lunaria::release(storage->data, storage->bytes);
    storage->~Storage();
    free_storages.give(storage);
}

TensorBody* new_body(DType dtype, const Shape& shape, Storage* storage) {
    // Built in one step: default values first would write everything twice.
    return new (free_bodies.take()) TensorBody{
        1, dtype, true, shape, contiguous_strides(shape), 0, shape.size(), storage, storage->data, 0, false, {}};
}

void* allocate_on(Device& device, size_t bytes) {
    detail::has_places.store(true, std::memory_order_relaxed);
    count_allocation(bytes);
    try {
        return device.allocate(bytes);
    } catch (const Error& e) {
        if (e.kind() != ErrorKind::memory) throw;
    }
    relieve_memory_pressure();
    device.empty_cache();
    return device.allocate(bytes);
}

Storage* new_storage(size_t bytes, Device* device) {
    auto* storage = new (free_storages.take()) Storage;
    storage->device = device;
    storage->bytes = bytes;
    try {
        storage->data = device ? allocate_on(*device, bytes) : lunaria::allocate(bytes);
    } catch (...) {
        storage->~Storage();
        free_storages.give(storage);
        throw;
    }
    return storage;
}

bool dense(const Shape& shape, const Strides& strides) {
    // Beside an axis without elements the others may have any size: their product wraps around.
    uint64_t step = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
        if (shape[i] != 1 && static_cast<uint64_t>(strides[i]) != step) return false;
        step *= static_cast<uint64_t>(shape[i]);
    }
    return true;
}

[[maybe_unused]] bool lies_in_its_storage(const TensorBody& body) {
    if (body.size == 0) return true;
    int64_t first = 0, last = 0;
    for (int axis = 0; axis < body.shape.rank(); ++axis)
        (body.strides[axis] < 0 ? first : last) += body.strides[axis] * (body.shape[axis] - 1);
    const auto element = static_cast<int64_t>(size_of(body.dtype));
    const int64_t at = static_cast<const char*>(body.data) - static_cast<const char*>(body.storage->data);
    return at + first * element >= 0 && at + (last + 1) * element <= static_cast<int64_t>(body.storage->bytes);
}

// Element offset of the `index`-th element in row-major order.
int64_t element_offset(const Tensor& t, int64_t index) {
    if (t.is_contiguous()) return index;
    int64_t offset = 0;
    for (int axis = t.rank() - 1; axis >= 0; --axis) {
        offset += index % t.dim(axis) * t.strides()[axis];
        index /= t.dim(axis);
    }
    return offset;
}

template <class From, class To>
To convert_element(From x) {
    if constexpr (std::is_same_v<From, To>)
        return x;
    else if constexpr (kIsComplex<From> && std::is_same_v<To, bool>)
        return x != From(0);
    else if constexpr (kIsComplex<From> && kIsComplex<To>)
        return To(x);
    else if constexpr (kIsComplex<From>)
        return convert_element<typename From::value_type, To>(x.real());
    else if constexpr (kIsComplex<To>)
        return To(static_cast<typename To::value_type>(x), 0);
    else if constexpr (std::is_same_v<To, bool>)
        return static_cast<float>(x) != 0.0f || x != From(0);
    else if constexpr (!std::is_arithmetic_v<To>)  // narrow floats
        return To(static_cast<float>(x));
    else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
        // A float outside the range of the integer has no defined conversion in C++; it saturates, and NaN becomes 0.
        double d = static_cast<double>(static_cast<std::conditional_t<std::is_same_v<From, double>, double, float>>(x));
        if (std::isnan(d)) return To(0);
        if constexpr (sizeof(To) < 8) {
            // As through int64: narrower integers then wrap, which is what MindSpore and numpy give on x86.
            if (d >= 9.2233720368547758e18) return static_cast<To>(std::numeric_limits<int64_t>::max());
            if (d <= -9.2233720368547758e18) return static_cast<To>(std::numeric_limits<int64_t>::min());
            return static_cast<To>(static_cast<int64_t>(d));
        } else if constexpr (std::is_unsigned_v<To>) {
            if (d >= 1.8446744073709552e19) return std::numeric_limits<To>::max();
            if (d <= -9.2233720368547758e18) return static_cast<To>(std::numeric_limits<int64_t>::min());
            return d < 0 ? static_cast<To>(static_cast<int64_t>(d)) : static_cast<To>(d);
        } else {
            if (d >= 9.2233720368547758e18) return std::numeric_limits<To>::max();
            if (d <= -9.2233720368547758e18) return std::numeric_limits<To>::min();
            return static_cast<To>(d);
        }
    } else
        return static_cast<To>(x);
}

template <class From, class To>
void copy_strided(const From* in, const Strides& in_strides, To* out, const Strides& out_strides, const Shape& shape) {
    int last = shape.rank() - 1;
    int64_t inner = last >= 0 ? shape[last] : 1;
    int64_t in_step = last >= 0 ? in_strides[last] : 0, out_step = last >= 0 ? out_strides[last] : 0;
    int64_t outer = 1;
    for (int i = 0; i < last; ++i) outer *= shape[i];
    std::array<int64_t, kMaxRank> index{};
    for (int64_t row = 0; row < outer; ++row) {
        int64_t from = 0, to = 0;
        for (int i = 0; i < last; ++i) {
            from += index[static_cast<size_t>(i)] * in_strides[i];
            to += index[static_cast<size_t>(i)] * out_strides[i];
        }
        for (int64_t j = 0; j < inner; ++j) out[to + j * out_step] = convert_element<From, To>(in[from + j * in_step]);
        for (int i = last - 1; i >= 0; --i) {
            if (++index[static_cast<size_t>(i)] < shape[i]) break;
            index[static_cast<size_t>(i)] = 0;
        }
    }
}

std::atomic<CopyFn>& fast_copy() {
    static std::atomic<CopyFn> copy{nullptr};
    return copy;
}

// Strides of a view of `t` with another shape of the same size, if there is one: each run of old axes that becomes a
// run of new ones must be evenly spaced in memory.
bool strides_for(const Tensor& t, const Shape& shape, Strides& strides) {
    strides = contiguous_strides(shape);
    if (t.is_contiguous() || t.size() == 0) return true;
    Shape old_shape;
    Strides old_strides;
    for (int i = 0; i < t.rank(); ++i) {
        if (t.dim(i) == 1) continue;
        old_shape.push_back(t.dim(i));
        old_strides.push_back(t.strides()[i]);
    }
    int from = 0, to = 0;
    while (from < old_shape.rank() && to < shape.rank()) {
        int from_end = from + 1, to_end = to + 1;
        int64_t old_size = old_shape[from], new_size = shape[to];
        while (old_size != new_size) {
            if (old_size < new_size)
                old_size *= old_shape[from_end++];
            else
                new_size *= shape[to_end++];
        }
        for (int k = from; k + 1 < from_end; ++k)
            if (old_strides[k] != old_shape[k + 1] * old_strides[k + 1]) return false;
        int64_t step = old_strides[from_end - 1];
        for (int k = to_end - 1; k >= to; --k) {
            strides[k] = step;
            step *= shape[k];
        }
        from = from_end;
        to = to_end;
    }
    return true;
}

}  // namespace

namespace {
// Throws where the size overflows, so that rules of operators need no check of their own before they make a table.
size_t bytes_of(DType dtype, const Shape& shape) {
    auto bytes = static_cast<int64_t>(size_of(dtype));
    bool overflow = false;
    for (int64_t n : shape) overflow |= n < 0 || __builtin_mul_overflow(bytes, n, &bytes);
    // An axis of size 0 makes the number 0, whatever the others overflow.
    if (overflow) [[unlikely]]
        return static_cast<size_t>(checked_shape("memory", shape.dims(), size_of(dtype)).size()) * size_of(dtype);
    return static_cast<size_t>(bytes);
}
}  // namespace

Tensor Tensor::empty(DType dtype, const Shape& shape, Device* device) {
    return adopt(new_body(dtype, shape, new_storage(bytes_of(dtype, shape), device)));
}

Tensor Tensor::like(const Tensor& t) {
    Storage* storage = new_storage(t.nbytes(), nullptr);
    const TensorBody& body = *t.body_;
    // The strides are not copied: those of axes of size 1 may have any value.
    return adopt(new (free_bodies.take()) TensorBody{1,
                                                     body.dtype,
                                                     true,
                                                     body.shape,
                                                     contiguous_strides(body.shape),
                                                     0,
                                                     body.size,
                                                     storage,
                                                     storage->data,
                                                     0,
                                                     false,
                                                     {}});
}

Tensor Tensor::zeros(DType dtype, const Shape& shape) {
    Tensor t = empty(dtype, shape);
    if (t.nbytes()) std::memset(t.raw(), 0, t.nbytes());
    return t;
}

Tensor Tensor::full(DType dtype, const Shape& shape, double value) {
    Tensor t = empty(dtype, shape);
    visit_stored(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T element = convert_element<double, T>(value);
        T* out = t.data<T>();
        for (int64_t i = 0; i < t.size(); ++i) out[i] = element;
    });
    return t;
}

Tensor Tensor::scalar(int64_t value) {
    Tensor t = empty(DType::i64, {});
    *t.data<int64_t>() = value;
    return t;
}

Tensor Tensor::over(void* data, DType dtype, const Shape& shape, void (*release)(Storage&), void* foreign,
                    Device* device) {
    auto* storage = new (free_storages.take()) Storage;
    storage->device = device;
    storage->data = data;
    storage->bytes = static_cast<size_t>(shape.size()) * size_of(dtype);
    storage->release_foreign = release;
    storage->foreign = foreign;
    return adopt(new_body(dtype, shape, storage));
}

void Tensor::retain(TensorBody* body) noexcept { add_reference(body->refs); }

void Tensor::drop(TensorBody* body) noexcept {
    if (drop_reference(body->refs)) destroy(body);
}

void Tensor::destroy(TensorBody* body) noexcept {
    drop_storage(body->storage);
    body->~TensorBody();
    free_bodies.give(body);
}

Tensor Tensor::view(const Shape& shape, const Strides& strides, int64_t offset) const {
    add_reference(body_->storage->refs);
    char* data = static_cast<char*>(body_->data) + offset * static_cast<int64_t>(size_of(dtype()));
    auto* body = new (free_bodies.take()) TensorBody{
        1,    dtype(), dense(shape, strides), shape, strides, body_->offset + offset, shape.size(), body_->storage,
        data, 0,       body_->goes_along,     {}};
    assert(lies_in_its_storage(*body));
    return adopt(body);
}

Tensor Tensor::reshaped(const Shape& shape) const {
    Strides strides;
    return !is_turned(*this) && strides_for(*this, shape, strides) ? view(shape, strides)
                                                                   : contiguous().reshaped(shape);
}

Tensor Tensor::contiguous() const {
    if (is_contiguous()) return *this;
    return is_turned(*this) ? row_major(*this) : copy();
}

Tensor Tensor::copy() const {
    Tensor result = empty(dtype(), shape(), device());
    copy_elements(*this, result);
    result.body_->goes_along = body_->goes_along;
    return result;
}

Tensor Tensor::cast(DType to) const {
    if (to == dtype()) return *this;
    Tensor result = empty(to, shape(), device());
    copy_elements(*this, result);
    result.body_->goes_along = body_->goes_along;
    return result;
}

Tensor Tensor::copied_to(Device* device) const {
    Tensor result = empty(dtype(), shape(), device);
    copy_elements(*this, result);
    return result;
}

bool Tensor::is_sole_owner() const {
    return body_->refs.load(std::memory_order_acquire) == 1 &&
           body_->storage->refs.load(std::memory_order_acquire) == 1 && !body_->storage->release_foreign;
}

namespace {
std::atomic<ParameterWatch>& parameter_watch() {
    static std::atomic<ParameterWatch> watch{nullptr};
    return watch;
}

void tell_of_parameter(const TensorBody& body) {
    if (!body.parameter || !body.storage->device) return;
    if (const ParameterWatch watch = parameter_watch()) watch(*body.storage);
}
}  // namespace

void watch_parameters(ParameterWatch watch) { parameter_watch() = watch; }

void Tensor::set_parameter(ParameterInfo info) {
    body_->parameter = std::make_unique<ParameterInfo>(std::move(info));
    tell_of_parameter(*body_);
}

namespace {
// Exchanges the contents of two bodies of the same dtype and shape; their owners stay.
void adopt_contents(TensorBody& body, TensorBody& from) {
    ++body.version;
    std::swap(body.contiguous, from.contiguous);
    std::swap(body.strides, from.strides);
    std::swap(body.offset, from.offset);
    std::swap(body.storage, from.storage);
    std::swap(body.data, from.data);
    tell_of_parameter(body);
}
}  // namespace

namespace {
// The value with the shape that it is broadcast to.
Tensor spread(const Tensor& value, const Shape& shape) {
    Strides strides;
    strides.resize(shape.rank(), 0);
    const int extra = shape.rank() - value.rank();
    for (int i = 0; i < value.rank(); ++i)
        if (value.dim(i) != 1) strides[i + extra] = value.strides()[i];
    return value.view(shape, strides);
}
}  // namespace

Tensor Tensor::apart() const { return is_exported() ? copy() : view(shape(), strides()); }

void Tensor::begin_export() {
    const bool sole = body_->storage->refs.load(std::memory_order_acquire) == 1 && !body_->storage->release_foreign;
    if (!is_exported() && !(sole && is_contiguous())) {
        const uint32_t before = version();
        const Tensor fresh = copy();
        adopt_contents(*body_, *fresh.body());
        body_->version = before;
    }
    body_->storage->exports.fetch_add(1, std::memory_order_acq_rel);
}

void Tensor::own_storage() {
    if (is_exported() && !is_contiguous())
        throw state_error("write", str("the memory of this tensor of shape ", shape(),
                                       " belongs to another program as well, and its elements are not in a row"))
            .hint("write into a copy of it: x = x:copy()");
    const bool sole = body_->storage->refs.load(std::memory_order_acquire) == 1 && !body_->storage->release_foreign;
    if (is_exported() || (sole && is_contiguous())) return count_write();
    Tensor fresh = copy();
    adopt_contents(*body_, *fresh.body());
}

void Tensor::write_through(const Tensor& value) {
    count_write();
    // Two tensors may have the same exported memory.
    copy_elements(spread(value.is_exported() ? value.copy() : value, shape()), *this);
}

void Tensor::assign(std::string_view where, const Tensor& value) {
    if (value.same_body(*this)) return;
    if (!(broadcast(where, shape(), value.shape()) == shape()))
        throw shape_error(where, str("a value of shape ", value.shape(), " does not fit a tensor of shape ", shape()));
    if (is_exported()) return write_through(value);
    // Shares the value's storage where dtype, shape and layout fit: a later write to either tensor copies first.
    size_t bytes = nbytes();
    bool share = value.dtype() == dtype() && value.shape() == shape() && value.is_contiguous() &&
                 value.device() == device() && value.body()->storage->bytes <= bytes &&
                 !value.body()->storage->release_foreign;
    Tensor fresh;
    if (share) {
        fresh = value.apart();
    } else {
        fresh = empty(dtype(), shape(), device());
        copy_elements(spread(value, shape()), fresh);
    }
    adopt_contents(*body_, *fresh.body());
}

void Tensor::become(const Tensor& value) {
    if (is_exported() && value.dtype() == dtype() && value.shape() == shape() && value.device() == device())
        return write_through(value);
    Tensor fresh = value.apart();
    std::swap(body_->dtype, fresh.body()->dtype);
    std::swap(body_->shape, fresh.body()->shape);
    std::swap(body_->size, fresh.body()->size);
    adopt_contents(*body_, *fresh.body());
}

namespace {
// The single element of a tensor on another device, in host memory.
Tensor host_element(const Tensor& t, int64_t offset) { return t.view({}, {}, offset).to_host(); }
}  // namespace

double Tensor::at(int64_t index) const {
    int64_t offset = element_offset(*this, index);
    if (device()) return host_element(*this, offset).at(0);
    return visit_stored(dtype(), [&](auto tag) -> double {
        using T = typename decltype(tag)::type;
        return convert_element<T, double>(data<T>()[offset]);
    });
}

int64_t Tensor::integer_at(int64_t index) const {
    int64_t offset = element_offset(*this, index);
    if (device()) return host_element(*this, offset).integer_at(0);
    return visit_stored(dtype(), [&](auto tag) -> int64_t {
        using T = typename decltype(tag)::type;
        return convert_element<T, int64_t>(data<T>()[offset]);
    });
}

void Tensor::set_at(int64_t index, double value) {
    count_write();
    int64_t offset = element_offset(*this, index);
    if (device()) return copy_elements(scalar(dtype(), value), view({}, {}, offset));
    visit_stored(dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        data<T>()[offset] = convert_element<double, T>(value);
    });
}

void plain_copy_elements(const Tensor& source, const Tensor& destination) {
    if (source.size() == 0) return;
    // A dense side may have another shape: its elements are matched with those of the other side in order.
    bool by_source = !source.is_contiguous() || destination.is_contiguous();
    const Shape& shape = by_source ? source.shape() : destination.shape();
    Strides dense_strides = contiguous_strides(shape);
    const Strides& from_strides = source.is_contiguous() ? dense_strides : source.strides();
    const Strides& to_strides = destination.is_contiguous() ? dense_strides : destination.strides();
    visit_stored(source.dtype(), [&](auto from) {
        visit_stored(destination.dtype(), [&](auto to) {
            using From = typename decltype(from)::type;
            using To = typename decltype(to)::type;
            copy_strided(source.data<From>(), from_strides, destination.data<To>(), to_strides, shape);
        });
    });
}

void set_fast_copy(CopyFn copy) { fast_copy().store(copy, std::memory_order_relaxed); }

namespace {
// At least one of them is not in host memory. Different dtypes or layouts are converted on one side, so that dense
// elements travel.
void copy_between(const Tensor& source, const Tensor& destination) {
    Device *from = source.device(), *to = destination.device();
    if (destination.size() == 0) return;
    if (from == to) return to->copy_elements(source, destination);
    if (from && to) return copy_elements(source.to_host(), destination);
    const bool as_it_is = destination.is_contiguous() && destination.dtype() == source.dtype();
    if (to) {
        const Tensor dense = source.cast(destination.dtype()).contiguous();
        if (destination.is_contiguous()) return to->copy_from_host(destination.raw(), dense.raw(), dense.nbytes());
        const Tensor there = Tensor::empty(dense.dtype(), destination.shape(), to);
        to->copy_from_host(there.raw(), dense.raw(), dense.nbytes());
        return to->copy_elements(there, destination);
    }
    const Tensor dense = source.contiguous();
    const Tensor here = as_it_is ? destination : Tensor::empty(dense.dtype(), dense.shape());
    from->copy_to_host(here.raw(), dense.raw(), dense.nbytes());
    if (!as_it_is) copy_elements(here, destination);
}
}  // namespace

void copy_elements(const Tensor& source, const Tensor& destination) {
    if (source.device() || destination.device()) [[unlikely]]
        return copy_between(source, destination);
    if (source.is_contiguous() && destination.is_contiguous() && source.dtype() == destination.dtype() &&
        source.nbytes() < (size_t{1} << 16)) {
        if (source.size()) std::memcpy(destination.raw(), source.raw(), source.nbytes());
        return;
    }
    CopyFn copy = fast_copy().load(std::memory_order_relaxed);
    if (!copy || !copy(source, destination)) plain_copy_elements(source, destination);
}

}  // namespace lunaria
