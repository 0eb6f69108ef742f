// The processor at work: its context, one stream in which everything is done in the order in which it is asked for, the
// memory, and what fails. What fails in a kernel is told by a later call: the queue then says which kernels had been
// asked for since the last call that waited, and starts anew with a context without memory.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backends/gpu/driver.h"
#include "backends/gpu/memory.h"
#include "backends/gpu/staging.h"

namespace lunaria::gpu {

class Queue {
  public:
    // Throws state_error when the driver gives no context.
    explicit Queue(const Driver& driver);
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    // All may be called by several threads at once, and throw state_error when the context is lost.
    Address allocate(size_t bytes);  // throws memory_error
    void release(Address block) noexcept;
    void empty_cache();
    void upload(Address to, const void* from, size_t bytes);
    void download(void* to, Address from, size_t bytes);  // waits
    void copy(Address to, Address from, size_t bytes);
    void fill_zero(Address to, size_t bytes);

    // A function of a module, for launch(). Modules stay; after a loss they are loaded again.
    struct Kernel {
        std::string image;
        FunctionHandle* function = nullptr;
        uint64_t context = 0;  // the one that `function` is of
    };
    static constexpr size_t kMostWords = 512;
    struct Shape {
        unsigned blocks = 1, threads = 1, near_bytes = 0;
    };
    // `words`: the only argument, by value, at most kMostWords. `what`: the name of the operator, for messages.
    // `operands` of the words, from the first one on, are addresses.
    void launch(Kernel& kernel, const Shape& shape, std::vector<uint64_t> words, size_t operands,
                std::string_view what);

    void synchronize();
    uint64_t record();
    double done_at(uint64_t place);
    void wait(uint64_t place);

    DeviceMemory memory_stats();
    void reset_peak_memory();

  private:
    struct Launch {
        std::string what, place;
    };
    void enter();
    // Throws where the result is no success.
    void check(Result result, std::string_view what);
    [[noreturn]] void lose(Result result, std::string_view what);
    void refuse_lost(Address address, std::string_view what) const;
    void make_stream();

    const Driver& driver_;
    std::mutex mutex_;
    ContextHandle* context_ = nullptr;
    uint64_t contexts_ = 1;  // how many there have been
    StreamHandle* stream_ = nullptr;
    Memory memory_;
    Staging staging_;
    std::vector<Launch> launches_;  // since the last call that waited: the last ones
    size_t launched_ = 0;
    EventHandle* start_ = nullptr;  // that times are told from
    uint64_t recorded_ = 0;
    std::map<uint64_t, EventHandle*> events_;  // that may not be done yet
    std::map<uint64_t, double> times_;         // of the last ones that are done
};

}  // namespace lunaria::gpu
