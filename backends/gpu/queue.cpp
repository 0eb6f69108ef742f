#include "backends/gpu/queue.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/loops/generator.h"
#include "core/memory.h"
#include "core/program_place.h"

namespace lunaria::gpu {

namespace {

constexpr size_t kLaunchesTold = 8, kTimesKept = 4096;
constexpr unsigned kNoWaitForOthers = 1;  // of a stream: for the driver's own

}  // namespace

Queue::Queue(const Driver& driver) : driver_(driver), memory_(driver), staging_(driver, nullptr) {
    if (Result r = driver_.context_retain(&context_, driver_.device))
        throw state_error(driver_.name, str("cannot be used: ", text_of(driver_, r)));
    const std::lock_guard lock(mutex_);
    enter();
    make_stream();
}

void Queue::make_stream() {
    check(driver_.stream_create(&stream_, kNoWaitForOthers), "a stream");
    check(driver_.event_create(&start_, 0), "a stream");
    check(driver_.event_record(start_, stream_), "a stream");
    staging_.lose(stream_);
}

void Queue::enter() {
    // Each thread has its own current context; the driver only looks whether it is another one.
    check(driver_.context_set(context_), "the context");
}

void Queue::check(Result result, std::string_view what) {
    if (result == kSuccess) return;
    if (loses_context(result)) lose(result, what);
    if (result == kOutOfMemory) throw memory_error(what, str("out of device memory on ", driver_.name));
    throw state_error(what, str("the driver refuses: ", text_of(driver_, result)));
}

// Everything in the context is gone: tensors that lie there cannot be read any more, but the next ones can be made.
void Queue::lose(Result result, std::string_view what) {
    std::vector<Launch> told = std::move(launches_);
    launches_.clear();
    launched_ = 0;
    std::string names;
    for (const Launch& l : told)
        names += str(names.empty() ? "" : ", ", l.what, l.place.empty() ? "" : " at ", l.place);
    std::string message = str("the device failed: ", text_of(driver_, result), "; tensors on it are lost");
    if (told.size() > 1) message += str("; one of the last operators failed: ", names);
    memory_.lose();
    events_.clear();
    times_.clear();
    ++contexts_;
    driver_.context_reset(driver_.device);
    if (driver_.context_set(context_) == kSuccess) make_stream();
    const Error error = state_error(told.size() == 1 ? std::string_view(told[0].what) : what, message)
                            .hint(
                                "new tensors can be made there; LUNARIA_GPU_WAIT=1 waits for every operator, so that "
                                "the one that fails is told");
    throw told.size() == 1 && !told[0].place.empty() ? error.at(told[0].place) : error;
}

void Queue::refuse_lost(Address address, std::string_view what) const {
    if (!memory_.is_lost(address)) return;
    throw state_error(what, "a tensor was lost when the device failed").hint("make it anew, from the host's data");
}

Address Queue::allocate(size_t bytes) {
    for (int attempt = 0;; ++attempt) {
        {
            const std::lock_guard lock(mutex_);
            enter();
            if (const Address block = memory_.allocate(bytes)) return block;
            // The driver tells by any call that the context is lost.
            check(driver_.stream_synchronize(stream_), "an allocation");
            launches_.clear();
        }
        if (attempt == 0 && relieve_memory_pressure()) continue;
        size_t free = 0, total = 0;
        driver_.memory_info(&free, &total);
        // By the device's name, for which operators put their own.
        throw memory_error("GPU", str("out of device memory: ", bytes, " bytes are asked for, ", memory_stats().live,
                                      " are in tensors, ", free, " of ", total, " are free"));
    }
}

void Queue::release(Address block) noexcept {
    const std::lock_guard lock(mutex_);
    memory_.release(block);
}

void Queue::empty_cache() {
    const std::lock_guard lock(mutex_);
    enter();
    check(driver_.stream_synchronize(stream_), "empty_cache");
    memory_.empty_cache();
}

void Queue::upload(Address to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    enter();
    refuse_lost(to, "to");
    check(staging_.upload(to, static_cast<const char*>(from), bytes), "to");
}

void Queue::download(void* to, Address from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    enter();
    refuse_lost(from, "to");
    check(staging_.download(static_cast<char*>(to), from, bytes), "to");
    launches_.clear();
}

void Queue::copy(Address to, Address from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    enter();
    refuse_lost(to, "copy");
    refuse_lost(from, "copy");
    check(driver_.copy_on_device(to, from, bytes, stream_), "copy");
}

void Queue::fill_zero(Address to, size_t bytes) {
    const std::lock_guard lock(mutex_);
    enter();
    refuse_lost(to, "zeros");
    if (bytes > 0) check(driver_.fill(to, 0, bytes, stream_), "zeros");
}

void Queue::launch(Kernel& kernel, const Shape& shape, std::vector<uint64_t> words, size_t operands,
                   std::string_view what) {
    static const bool waits = [] {
        const char* wish = std::getenv("LUNARIA_GPU_WAIT");
        return wish && std::string_view(wish) == "1";
    }();
    const std::lock_guard lock(mutex_);
    enter();
    for (size_t i = 0; i < operands; ++i) refuse_lost(words[i], what);
    if (kernel.context != contexts_) {
        ModuleHandle* module = nullptr;
        check(driver_.module_load(&module, kernel.image.c_str()), what);
        check(driver_.module_function(&kernel.function, module, graph::kLoopSymbol), what);
        kernel.context = contexts_;
    }
    if (launches_.size() == kLaunchesTold) launches_.erase(launches_.begin());
    launches_.push_back({std::string(what), program_place()});
    words.resize(kMostWords);  // the driver knows how many of them the kernel takes
    void* arguments[] = {words.data()};
    check(driver_.launch(kernel.function, shape.blocks, 1, 1, shape.threads, 1, 1, shape.near_bytes, stream_, arguments,
                         nullptr),
          what);
    if (!waits) return;
    check(driver_.stream_synchronize(stream_), what);
    launches_.clear();
}

void Queue::synchronize() {
    const std::lock_guard lock(mutex_);
    enter();
    check(driver_.stream_synchronize(stream_), "synchronize");
    launches_.clear();
}

uint64_t Queue::record() {
    const std::lock_guard lock(mutex_);
    enter();
    EventHandle* event = nullptr;
    check(driver_.event_create(&event, 0), "record");
    events_.emplace(++recorded_, event);
    check(driver_.event_record(event, stream_), "record");
    return recorded_;
}

double Queue::done_at(uint64_t place) {
    const std::lock_guard lock(mutex_);
    enter();
    for (auto at = events_.begin(); at != events_.end() && at->first <= place; at = events_.erase(at)) {
        const Result state = driver_.event_query(at->second);
        if (state == kNotReady) return -1;
        check(state, "query");
        float milliseconds = 0;
        check(driver_.event_elapsed(&milliseconds, start_, at->second), "query");
        times_[at->first] = static_cast<double>(milliseconds) / 1000;
        driver_.event_destroy(at->second);
        if (times_.size() > kTimesKept) times_.erase(times_.begin());
    }
    const auto found = times_.find(place);
    return found == times_.end() ? 0 : found->second;
}

void Queue::wait(uint64_t place) {
    const std::lock_guard lock(mutex_);
    enter();
    const auto found = events_.find(place);
    if (found != events_.end()) check(driver_.event_synchronize(found->second), "synchronize");
}

DeviceMemory Queue::memory_stats() {
    const std::lock_guard lock(mutex_);
    return memory_.stats();
}

void Queue::reset_peak_memory() {
    const std::lock_guard lock(mutex_);
    memory_.reset_peak();
}

}  // namespace lunaria::gpu
