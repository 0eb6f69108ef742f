// Memory for the length of a call.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "core/memory/memory.h"

namespace lunaria::cpu {

// Memory from the tensors' allocator for the length of a call: the allocator's cache gives the same warm block again.
class Buffer {
  public:
    explicit Buffer(size_t bytes) : data_(bytes ? allocate(bytes) : nullptr), bytes_(bytes) {}
    Buffer(const Buffer&) = delete;
    ~Buffer() {
        if (data_) release(data_, bytes_);
    }
    void* data() const { return data_; }

  private:
    void* data_;
    size_t bytes_;
};

// Memory that stays with its thread, in whose own cache it stays from one call to the next. More than kMost bytes are
// allocated for the length of a call only.
class Workspace {
  public:
    // Valid until the next call of take.
    std::byte* take(size_t bytes) {
        large_.reset();
        if (bytes > kMost) return take_large(bytes);
        if (bytes > bytes_) {
            kept_.reset();
            kept_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, round_up(bytes))));
            bytes_ = kept_ ? round_up(bytes) : 0;
            if (!kept_) return take_large(bytes);
        }
        return kept_.get();
    }
    void finish() { large_.reset(); }
    static size_t round_up(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  private:
    static constexpr size_t kMost = 6u << 20;
    std::byte* take_large(size_t bytes) {
        large_ = std::make_unique<Buffer>(bytes);
        return static_cast<std::byte*>(large_->data());
    }
    struct Free {
        void operator()(std::byte* p) const { std::free(p); }
    };
    std::unique_ptr<std::byte, Free> kept_;
    std::unique_ptr<Buffer> large_;
    size_t bytes_ = 0;
};

}  // namespace lunaria::cpu
