// The processor at work: its context, one stream in which all work runs in the order in which it is submitted (and one
// for uploads beside it), the memory, and failures. A kernel's failure is reported by a later call: the queue then
// names the kernels submitted since the last call that waited, and begins anew with an empty context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backends/gpu/driver.h"
#include "backends/gpu/feeder.h"
#include "backends/gpu/memory.h"
#include "backends/gpu/replay.h"
#include "backends/gpu/staging.h"
#include "core/loops/graph_backend.h"

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

    // `words`: the only argument, by value, at most Work::kMostWords. `what`: the name of the operator, for messages.
    // `operands` of the words, from the first one on, are addresses.
    void launch(ModuleFunction& kernel, const LaunchShape& shape, std::vector<uint64_t> words, size_t operands,
                std::string_view what);
    // Work that a library submits to the stream. `words` identify it; they begin with its operands.
    void call(std::vector<uint64_t> words, size_t operands, std::string_view what,
              std::function<Result(StreamHandle*)> run);
    // Calls `use` with the context current in this thread, and with the number of the context that owns its handles.
    template <class F>
    void in_context(F&& use) {
        const std::lock_guard lock(mutex_);
        enter();
        use(contexts_);
    }

    // The address at which a kernel of this operator reports a refusal by setting an element that is otherwise 0, for
    // work that the caller does not wait for: the next call that waits reports it. 0 where this thread's work is not
    // gathered, and is waited for.
    Address place_for_refusal(std::string_view what);

    // Gathers the work of runs of one graph (core/loops/graph_backend.h).
    std::unique_ptr<graph::Replay> make_replay();

    // The next call that waits throws this, once: work by others than the driver has failed.
    void fail(const std::string& why);

    void synchronize();
    uint64_t record();
    double done_at(uint64_t place);
    void wait(uint64_t place);

    DeviceMemory memory_stats();
    void reset_peak_memory();

  private:
    class Gathering;
    struct Launch {
        std::string what, place;
    };
    void enter();
    // Throws unless the result is a success.
    void check(Result result, std::string_view what);
    [[noreturn]] void lose(Result result, std::string_view what);
    void refuse_lost(Address address, std::string_view what) const;
    void make_stream();
    void add(Work work, std::string_view what);
    // Submits the gathered work to the stream, before other work.
    void hand_over();
    void wait_for_all(std::string_view what);
    // Throws where a kernel has refused its operands; all work must be done.
    void tell_refusals();

    const Driver& driver_;
    std::mutex mutex_;
    ContextHandle* context_ = nullptr;
    std::string failure_;    // the failure by which the last context was lost
    uint64_t contexts_ = 1;  // number of contexts so far
    StreamHandle* stream_ = nullptr;
    Memory memory_;
    Staging staging_;
    Feeder feeder_;
    uint64_t position_ = 0;  // number of pieces of work submitted
    // The run for which work is gathered, its thread, and the gathered work.
    Gathering* gathering_ = nullptr;
    std::thread::id gatherer_;
    std::vector<Work> gathered_;
    // The elements through which kernels refuse operands, and the operators to which they belong.
    static constexpr size_t kRefusals = 256;
    Address refusals_ = 0;  // 0: none in this context
    std::vector<Launch> refused_;
    std::string foreign_failure_;  // as fail() was told; it comes from any thread
    std::mutex foreign_mutex_;
    bool may_refuse_ = false;       // some may be set and were not read yet
    std::vector<Launch> launches_;  // since the last call that waited: the last ones
    size_t launched_ = 0;
    EventHandle* start_ = nullptr;  // the start of measured times
    uint64_t recorded_ = 0;
    std::map<uint64_t, EventHandle*> events_;  // that may not be done yet
    std::map<uint64_t, double> times_;         // of the last ones that are done
};

}  // namespace lunaria::gpu
