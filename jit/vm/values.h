// A list of values that needs no memory of its own while it is short: arguments, captures, results.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria::vm {

class Values {
  public:
    Values() = default;
    Values(std::initializer_list<Value> list) { append({list.begin(), list.size()}); }
    Values(const std::vector<Value>& list) { append(list); }
    explicit Values(std::span<const Value> list) { append(list); }
    Values(const Values& other) { append({other.begin(), other.size()}); }
    Values(Values&& other) noexcept { steal(other); }
    Values& operator=(Values other) noexcept {
        clear();
        steal(other);
        return *this;
    }
    ~Values() {
        clear();
        release();
    }

    Value* begin() { return data_; }
    Value* end() { return data_ + size_; }
    const Value* begin() const { return data_; }
    const Value* end() const { return data_ + size_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    Value& operator[](size_t i) { return data_[i]; }
    const Value& operator[](size_t i) const { return data_[i]; }
    Value& front() { return data_[0]; }
    Value& back() { return data_[size_ - 1]; }
    operator std::span<const Value>() const { return {data_, size_}; }

    void push_back(Value v) {
        if (size_ == capacity_) grow(size_ + 1);
        new (data_ + size_++) Value(std::move(v));
    }
    void append(std::span<const Value> list) {
        reserve(size_ + list.size());
        for (const Value& v : list) new (data_ + size_++) Value(v);
    }
    // Appends to a place that has been reserved.
    void push_reserved(Value v) { new (data_ + size_++) Value(std::move(v)); }
    // Moves them to places that hold nil.
    void move_to(Value* place) {
        std::memcpy(static_cast<void*>(place), data_, size_ * sizeof(Value));
        size_ = 0;
    }
    void push_front(Value v) {
        push_back(Value());
        for (size_t i = size_; --i > 0;) data_[i] = std::move(data_[i - 1]);
        data_[0] = std::move(v);
    }
    void pop_front() {
        for (size_t i = 1; i < size_; ++i) data_[i - 1] = std::move(data_[i]);
        data_[--size_].~Value();
    }
    void resize(size_t n) {
        while (size_ > n) data_[--size_].~Value();
        reserve(n);
        while (size_ < n) new (data_ + size_++) Value();
    }
    void reserve(size_t n) {
        if (n > capacity_) grow(n);
    }
    void clear() {
        for (size_t i = 0; i < size_; ++i) data_[i].~Value();
        size_ = 0;
    }
    std::vector<Value> vector() && { return {std::make_move_iterator(begin()), std::make_move_iterator(end())}; }
    // As one value.
    Value list() && { return Value::list_of({data_, size_}); }

  private:
    static constexpr size_t kInline = 6;

    // Values may be moved by copying their bytes: nothing in one refers to its own address.
    void grow(size_t least) {
        const size_t capacity = std::max(least, capacity_ * 2);
        auto* place = static_cast<Value*>(::operator new(capacity * sizeof(Value)));
        std::memcpy(static_cast<void*>(place), data_, size_ * sizeof(Value));
        release();
        data_ = place;
        capacity_ = capacity;
    }
    void steal(Values& other) noexcept {
        release();
        if (other.data_ != other.inline_data()) {
            data_ = other.data_;
            capacity_ = other.capacity_;
        } else {
            data_ = inline_data();
            capacity_ = kInline;
            // Copies all of them, used or not: a copy of known size is no call.
            std::memcpy(inline_, other.inline_, sizeof inline_);
        }
        size_ = other.size_;
        other.data_ = other.inline_data();
        other.capacity_ = kInline;
        other.size_ = 0;
    }
    void release() noexcept {
        if (data_ != inline_data()) ::operator delete(data_);
    }
    Value* inline_data() { return reinterpret_cast<Value*>(inline_); }

    alignas(Value) std::byte inline_[kInline * sizeof(Value)];
    Value* data_ = inline_data();
    size_t size_ = 0, capacity_ = kInline;
};

}  // namespace lunaria::vm
