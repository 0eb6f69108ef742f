#include "backends/gpu/queue.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backends/gpu/streams.h"
#include "core/base/error.h"
#include "core/base/program_place.h"
#include "core/loops/generator.h"
#include "core/memory/memory.h"

namespace lunaria::gpu {

namespace {

constexpr size_t kLaunchesTold = 8, kTimesKept = 4096;

bool is_set(const char* variable, std::string_view value) {
    const char* wish = std::getenv(variable);
    return wish && wish == value;
}
bool waits_for_all() {
    static const bool waits = is_set("LUNARIA_GPU_WAIT", "1");
    return waits;
}
bool has_no_graphs() {
    static const bool none = is_set("LUNARIA_GPU_GRAPHS", "0") || waits_for_all();
    return none;
}

}  // namespace

Queue::Queue(const Driver& driver) : driver_(driver), memory_(driver), staging_(driver, nullptr), feeder_(driver) {
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
    feeder_.lose(stream_);
}

void Queue::enter() {
    // Each thread has its own current context; the driver only checks whether it is another one.
    check(driver_.context_set(context_), "the context");
}

void Queue::check(Result result, std::string_view what) {
    if (result == kSuccess) return;
    if (loses_context(result)) lose(result, what);
    if (result == kOutOfMemory) throw memory_error(what, str("out of device memory on ", driver_.name));
    throw state_error(what, str("the driver refuses: ", text_of(driver_, result)));
}

// Everything in the context is lost: its tensors cannot be read any more, but new ones can be made.
void Queue::lose(Result result, std::string_view what) {
    std::vector<Launch> told = std::move(launches_);
    launches_.clear();
    launched_ = 0;
    std::string names;
    for (const Launch& l : told)
        names += str(names.empty() ? "" : ", ", l.what, l.place.empty() ? "" : " at ", l.place);
    failure_ = text_of(driver_, result);
    std::string message = str("the device failed: ", failure_, "; tensors on it are lost");
    if (told.size() > 1) message += str("; one of the last operators failed: ", names);
    memory_.lose();
    refusals_ = 0;
    may_refuse_ = false;
    gathered_.clear();
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
    throw state_error(what, str("a tensor was lost when the device failed: ", failure_))
        .hint("make it anew, from the host's data");
}

Address Queue::allocate(size_t bytes) {
    for (int attempt = 0;; ++attempt) {
        {
            const std::lock_guard lock(mutex_);
            enter();
            if (const Address block = memory_.allocate(bytes, position_)) return block;
            // Cached memory can be given back once nothing uses it. Any call of the driver may report that the context
            // is lost.
            wait_for_all("an allocation");
            if (const Address block = memory_.allocate_by_all_means(bytes, position_)) return block;
        }
        if (attempt == 0 && relieve_memory_pressure()) continue;
        size_t free = 0, total = 0;
        driver_.memory_info(&free, &total);
        // In the device's name, which operators replace by their own.
        throw memory_error("GPU", str("out of device memory: ", bytes, " bytes are asked for, ", memory_stats().live,
                                      " are in tensors, ", free, " of ", total, " are free"));
    }
}

void Queue::release(Address block) noexcept {
    const std::lock_guard lock(mutex_);
    memory_.release(block, position_);
}

void Queue::empty_cache() {
    const std::lock_guard lock(mutex_);
    enter();
    wait_for_all("empty_cache");
    memory_.empty_cache();
}

void Queue::upload(Address to, const void* from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    enter();
    refuse_lost(to, "to");
    hand_over();
    const Memory::Age age = memory_.age_of(to);
    const auto* elements = static_cast<const char*>(from);
    // Work submitted since the allocation may use the memory.
    const bool is_fresh = age.allocated == position_ && bytes >= Feeder::kFewest;
    check(is_fresh ? feeder_.upload(to, elements, bytes, age.free_since, position_)
                   : staging_.upload(to, elements, bytes),
          "to");
    if (!is_fresh) ++position_;
}

void Queue::download(void* to, Address from, size_t bytes) {
    const std::lock_guard lock(mutex_);
    enter();
    refuse_lost(from, "to");
    hand_over();
    check(staging_.download(static_cast<char*>(to), from, bytes), "to");
    launches_.clear();
    tell_refusals();
}

Address Queue::place_for_refusal(std::string_view what) {
    const std::lock_guard lock(mutex_);
    if (!gathering_ || gatherer_ != std::this_thread::get_id()) return 0;
    enter();
    constexpr size_t kBytes = kRefusals * sizeof(int64_t);
    if (!refusals_) {
        refusals_ = memory_.allocate(kBytes, position_);
        if (!refusals_) return 0;
        hand_over();
        check(driver_.fill(refusals_, 0, kBytes, stream_), what);
    }
    // The same flag in every run, so that graphs stay as they are.
    Launch launch{std::string(what), program_place()};
    const auto same = [&](const Launch& l) { return l.what == launch.what && l.place == launch.place; };
    auto found = std::ranges::find_if(refused_, same);
    if (found == refused_.end()) {
        // With very many flags the first ones are dropped; their refusals are then reported under another name.
        if (refused_.size() == kRefusals) refused_.clear();
        found = refused_.insert(refused_.end(), std::move(launch));
    }
    may_refuse_ = true;
    return refusals_ + static_cast<size_t>(found - refused_.begin()) * sizeof(int64_t);
}

void Queue::fail(const std::string& why) {
    const std::lock_guard lock(foreign_mutex_);
    if (foreign_failure_.empty()) foreign_failure_ = why;
}

void Queue::tell_refusals() {
    {
        const std::lock_guard lock(foreign_mutex_);
        if (!foreign_failure_.empty())
            throw state_error("communication", std::exchange(foreign_failure_, {}))
                .hint("what was computed since the last result that was read is of no use");
    }
    if (!std::exchange(may_refuse_, false)) return;
    int64_t set[kRefusals] = {};
    check(staging_.download(reinterpret_cast<char*>(set), refusals_, sizeof set), "to");
    const auto found = std::ranges::find_if(set, [](int64_t v) { return v != 0; });
    if (found == std::end(set)) return;
    check(driver_.fill(refusals_, 0, sizeof set, stream_), "to");
    const auto at = static_cast<size_t>(found - set);
    const Launch told = at < refused_.size() ? refused_[at] : Launch{"a compiled function", ""};
    const Error error = index_error(told.what, "an index of a compiled function was out of range")
                            .hint("what was computed since is of no use; LUNARIA_GPU_WAIT=1 tells which index it is");
    throw told.place.empty() ? error : error.at(told.place);
}

void Queue::copy(Address to, Address from, size_t bytes) {
    call({to, from, bytes}, 2, "copy",
         [=, this](StreamHandle* stream) { return driver_.copy_on_device(to, from, bytes, stream); });
}

void Queue::fill_zero(Address to, size_t bytes) {
    if (bytes > 0)
        call({to, bytes}, 1, "zeros", [=, this](StreamHandle* stream) { return driver_.fill(to, 0, bytes, stream); });
}

void Queue::launch(ModuleFunction& kernel, const LaunchShape& shape, std::vector<uint64_t> words, size_t operands,
                   std::string_view what) {
    const std::lock_guard lock(mutex_);
    enter();
    if (kernel.context != contexts_) {
        ModuleHandle* module = nullptr;
        check(driver_.module_load(&module, kernel.image.c_str()), what);
        check(driver_.module_function(&kernel.function, module, graph::kLoopSymbol), what);
        kernel.context = contexts_;
    }
    add({.kernel = &kernel, .shape = shape, .words = std::move(words), .operands = operands}, what);
}

void Queue::call(std::vector<uint64_t> words, size_t operands, std::string_view what,
                 std::function<Result(StreamHandle*)> run) {
    const std::lock_guard lock(mutex_);
    enter();
    add({.words = std::move(words), .operands = operands, .run = std::move(run)}, what);
}

void Queue::add(Work work, std::string_view what) {
    for (size_t i = 0; i < work.operands; ++i) refuse_lost(work.words[i], what);
    if (launches_.size() == kLaunchesTold) launches_.erase(launches_.begin());
    launches_.push_back({std::string(what), program_place()});
    ++position_;
    if (gathering_ && gatherer_ == std::this_thread::get_id()) {
        gathered_.push_back(std::move(work));
        return;
    }
    hand_over();
    check(work.give(driver_, stream_), what);
    check(feeder_.passed(position_), what);
    if (waits_for_all()) wait_for_all(what);
}

class Queue::Gathering final : public graph::Replay {
  public:
    explicit Gathering(Queue& queue) : queue_(queue) {}
    // Graphs of the driver are used under the queue's lock.
    ~Gathering() override {
        const std::lock_guard lock(queue_.mutex_);
        for (const auto& segment : segments_) segment->leave_all_but(queue_.contexts_);
        segments_.clear();
    }

    void begin() override {
        const std::lock_guard lock(queue_.mutex_);
        // A run within a run is a part of it; work of another thread is submitted directly.
        is_outermost_ = !queue_.gathering_;
        if (!is_outermost_) return;
        queue_.gathering_ = this;
        queue_.gatherer_ = std::this_thread::get_id();
        at_ = 0;
    }
    void end() override {
        const std::lock_guard lock(queue_.mutex_);
        if (!is_outermost_) return;
        const Ending ending{*this};
        queue_.enter();
        queue_.hand_over();
    }
    void give_up() noexcept override {
        try {
            end();
        } catch (const Error&) {
            // The run's own error is reported instead. A lost context was replaced.
        }
    }

    Result give(std::vector<Work> work) {
        if (at_ == segments_.size()) segments_.push_back(std::make_unique<Segment>(queue_.driver_));
        return segments_[at_++]->give(queue_.stream_, queue_.contexts_, std::move(work));
    }

  private:
    struct Ending {
        Gathering& run;
        ~Ending() {
            run.is_outermost_ = false;
            run.queue_.gathering_ = nullptr;
        }
    };
    Queue& queue_;
    bool is_outermost_ = false;
    size_t at_ = 0;
    std::vector<std::unique_ptr<Segment>> segments_;
};

std::unique_ptr<graph::Replay> Queue::make_replay() {
    return has_no_graphs() ? nullptr : std::make_unique<Gathering>(*this);
}

void Queue::hand_over() {
    if (gathered_.empty()) return;
    std::vector<Work> work = std::move(gathered_);
    gathered_.clear();
    check(gathering_->give(std::move(work)), "a compiled function");
    check(feeder_.passed(position_), "a compiled function");
}

void Queue::wait_for_all(std::string_view what) {
    hand_over();
    check(driver_.stream_synchronize(stream_), what);
    launches_.clear();
    tell_refusals();
}

void Queue::synchronize() {
    const std::lock_guard lock(mutex_);
    enter();
    wait_for_all("synchronize");
}

uint64_t Queue::record() {
    const std::lock_guard lock(mutex_);
    enter();
    hand_over();
    EventHandle* event = nullptr;
    check(driver_.event_create(&event, 0), "record");
    events_.emplace(++recorded_, event);
    check(driver_.event_record(event, stream_), "record");
    return recorded_;
}

double Queue::done_at(uint64_t place) {
    const std::lock_guard lock(mutex_);
    enter();
    hand_over();
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
