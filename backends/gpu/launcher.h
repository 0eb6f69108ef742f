// One call of an operator on its way to the device: kernels written as thread programs, memory for the length of the
// call, and refusals by kernels.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/queue.h"
#include "backends/gpu/writer.h"
#include "core/tensor/tensor.h"

namespace lunaria::gpu {

// Memory for the length of a launch: it may be released once the launch is queued.
class Room {
  public:
    explicit Room(Queue& queue) : queue_(queue) {}
    ~Room() {
        for (Address block : blocks_) queue_.release(block);
    }
    Room(const Room&) = delete;
    Address take(size_t bytes) {
        blocks_.push_back(queue_.allocate(bytes));
        return blocks_.back();
    }

  private:
    Queue& queue_;
    std::vector<Address> blocks_;
};

// The arguments of a launch: addresses, then counts, then numbers, in the order in which the writer asks for them.
class Words {
  public:
    Words& tensor(const Tensor& t);
    Words& address(Address a, int64_t elements) {
        words_.push_back(a);
        ++operands_;
        return count(elements);
    }
    Words& size(int64_t n) {
        words_.push_back(static_cast<uint64_t>(n));
        return count(n);
    }
    Words& word(uint64_t v) {
        words_.push_back(v);
        return *this;
    }
    Words& real(double v);
    bool is_narrow() const { return narrow_; }

  private:
    friend class Launcher;
    Words& count(int64_t n);
    std::vector<uint64_t> words_;
    size_t operands_ = 0;
    bool narrow_ = true;
};

// The number of elements from a tensor's first to its last, whatever its strides.
int64_t reach_of(const Tensor& t);

// The type for moving elements of this size.
DType moved_dtype(DType t);

class Launcher {
  public:
    Launcher(Queue& queue, const std::string& target, std::string_view what)
        : room_(queue), queue_(queue), target_(target), what_(what) {}

    Queue& queue() const { return queue_; }
    const std::string& target() const { return target_; }

    // `name`: kernels of the same name are equal. False where no code can be made.
    using Write = std::function<void(Writer&)>;
    bool run(const std::string& name, int64_t blocks, int threads, const Words& words, const Write& write);
    // As many blocks as `count` threads take, up to some for each processor.
    bool run_for(const std::string& name, int64_t count, const Words& words, const Write& write);

    // Work of a library in place of a kernel; see Queue::call.
    void call(std::vector<uint64_t> words, size_t operands, std::function<Result(StreamHandle*)> run) {
        queue_.call(std::move(words), operands, what_, std::move(run));
    }

    Address take(int64_t bytes) { return room_.take(static_cast<size_t>(bytes)); }
    void fill_zero(Address to, int64_t bytes);
    // The address of an element that is 0 until a kernel writes there to refuse its operands.
    Address make_flag();
    // Waits for the flag and reads it. Within a run that is being gathered it returns false, and the next call that
    // waits reports the refusal.
    bool is_set(Address flag);

  private:
    Room room_;
    Queue& queue_;
    const std::string& target_;
    const std::string_view what_;
    bool is_waited_for_ = true;
};

}  // namespace lunaria::gpu
