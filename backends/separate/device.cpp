#include "backends/separate/device.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "backends/separate/memory.h"
#include "core/base/error.h"
#include "core/base/program_place.h"
#include "core/loops/graph_backend.h"
#include "core/operator/op.h"
#include "core/threads/work_queue.h"

namespace lunaria::separate {

namespace {

constexpr size_t kAddresses = size_t{64} << 30;

// Operators without a kernel here, so that every test of the device also tests the fallback to the host.
constexpr std::string_view kWithoutKernel[] = {"svd_factors", "cumsum", "cumprod", "unique", "apply_lamb"};

constexpr size_t kTimesKept = 4096;

// Half of the machine's memory, or the bytes given by LUNARIA_SEPARATE_MEMORY.
size_t limit_of_environment() {
    if (const char* limit = std::getenv("LUNARIA_SEPARATE_MEMORY")) return std::strtoull(limit, nullptr, 10);
    return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) / 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class Separate final : public Device, public graph::Backend {
  public:
    explicit Separate(Ways ways) : ways_(std::move(ways)) {}
    std::string_view name() const override { return ways_.name; }

    void* allocate(size_t bytes) override {
        void* block = parts().memory.allocate(bytes);
        if (!ways_.watcher) return block;
        try {
            ways_.watcher->allocating(block, bytes);
        } catch (const Error&) {
            parts().memory.release(block, bytes);
            throw;
        }
        return block;
    }
    void release(void* block, size_t bytes) noexcept override {
        if (ways_.watcher) ways_.watcher->released(block, bytes);
        parts().memory.release(block, bytes);
    }
    // The host may change its memory after the call, so a copy of it travels.
    void copy_from_host(void* device, const void* host, size_t bytes) override {
        if (ways_.watcher && !taking_results_) ways_.watcher->transferred(device, bytes, true);
        const auto* from = static_cast<const char*>(host);
        add([to = parts().memory.inside(device), sent = std::string(from, bytes)] {
            std::memcpy(to, sent.data(), sent.size());
        });
    }
    void copy_to_host(void* host, const void* device, size_t bytes) override {
        if (ways_.watcher) ways_.watcher->transferred(device, bytes, false);
        wait(add([host, from = parts().memory.inside(device), bytes] { std::memcpy(host, from, bytes); }));
    }
    void copy_elements(const Tensor& source, const Tensor& destination) override {
        if (ways_.watcher) ways_.watcher->copied(source, destination);
        add([watcher = ways_.watcher, from = inside(source), to = inside(destination)] {
            lunaria::copy_elements(from, to);
            if (watcher) watcher->written(from, to);
        });
    }

    std::span<const Kernel> kernels(const Op& op) const override {
        if (ways_.kernels) return ways_.kernels(op);
        for (std::string_view name : kWithoutKernel)
            if (op.name() == name) return {};
        return host_device()->kernels(op);
    }
    size_t launch(std::span<const Kernel> kernels, size_t first, KernelCall& call) override {
        const size_t taken = queue(kernels, first, call);
        if (ways_.watcher && taken < kernels.size()) ways_.watcher->launched(call);
        return taken;
    }

    graph::Backend* graphs() override { return this; }
    bool can_compile() const override { return loops().can_compile(); }
    bool adds_as_host() const override { return loops().adds_as_host(); }
    std::vector<graph::LoopRef> compile(std::span<const graph::LoopTask> tasks) override {
        return loops().compile(tasks);
    }
    void launch(const graph::LoopRef& loop, std::span<void* const> pointers) override {
        std::vector<void*> here;
        for (void* pointer : pointers) here.push_back(parts().memory.inside(pointer));
        add([this, loop, here = std::move(here)] { loops().launch(loop, here); }, program_place());
    }

    void synchronize() override {
        if (parts_) wait(parts().queue->last());
    }
    uint64_t record() override {
        // The key is the place, which is known only after the event has been queued.
        auto time = std::make_shared<std::atomic<double>>(-1);
        const uint64_t place = add([time] {
            const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
            *time = now.count();
        });
        std::lock_guard lock(mutex_);
        times_[place] = std::move(time);
        // Only the times of the last finished events are kept: a program may record any number of them.
        while (times_.size() > kTimesKept && *times_.begin()->second >= 0) times_.erase(times_.begin());
        return place;
    }
    double done_at(uint64_t place) override {
        std::lock_guard lock(mutex_);
        const auto found = times_.find(place);
        return found == times_.end() ? 0 : found->second->load();
    }
    void wait(uint64_t number) override { parts().queue->wait(number); }

    DeviceMemory memory() const override { return parts_ ? parts_.load()->memory.stats() : DeviceMemory{}; }
    void reset_peak_memory() override { parts().memory.reset_peak(); }
    void empty_cache() override {
        if (!parts_) return;
        synchronize();
        parts().memory.empty_cache();
    }

    // Ends the thread when all work is done. The memory stays for tensors that outlive the device.
    void end() {
        if (parts_) parts().queue.reset();
    }

  private:
    struct Parts {
        explicit Parts(const std::string& name) : memory(name, kAddresses, limit_of_environment()) {}
        Memory memory;
        std::unique_ptr<WorkQueue> queue = std::make_unique<WorkQueue>();
    };
    // Made with the first tensor, so that a program without one has no second thread.
    Parts& parts() {
        std::call_once(made_, [this] { parts_ = new Parts(ways_.name); });
        return *parts_;
    }
    uint64_t add(std::function<void()> work, std::string place = {}) {
        return parts().queue->add(std::move(work), std::move(place));
    }

    size_t queue(std::span<const Kernel> kernels, size_t first, KernelCall& call);

    // The tensor as kernels see it: the same elements at the device's addresses, as if those were host memory.
    Tensor inside(const Tensor& t) {
        if (t.device() != this) throw state_error(name(), "a kernel was given a tensor of another device");
        const Storage& storage = *t.body()->storage;
        const auto elements = static_cast<int64_t>(storage.bytes / size_of(t.dtype()));
        const Tensor whole = Tensor::over(
            parts().memory.inside(storage.data), t.dtype(), {elements}, [](Storage&) {}, nullptr);
        return whole.view(t.shape(), t.strides(), t.offset());
    }
    Value inside(const Value& v) {
        if (v.is_tensor()) return Value(inside(v.tensor()));
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(inside(item));
        return Value::list(std::move(items));
    }

    // A kernel that writes into an operand first makes a copy of it, in host memory.
    static void take_back(const Value& given, const Value& written) {
        if (given.is_tensor() && written.tensor().version() > 0) {
            Tensor(given.tensor()).own_storage();
            lunaria::copy_elements(written.tensor(), given.tensor());
        }
        for (size_t i = 0; given.is_list() && i < given.items().size(); ++i)
            take_back(given.items()[i], written.items()[i]);
    }

    graph::Backend& loops() const { return ways_.loops ? *ways_.loops : *host_device()->graphs(); }

    // True while this thread copies a result that a kernel has allocated itself, which is no transfer of the program.
    static inline thread_local bool taking_results_ = false;
    struct TakingResults {
        TakingResults() { taking_results_ = true; }
        ~TakingResults() { taking_results_ = false; }
    };

    const Ways ways_;
    std::once_flag made_;
    std::atomic<Parts*> parts_{nullptr};
    std::mutex mutex_;
    std::map<uint64_t, std::shared_ptr<std::atomic<double>>> times_;  // of events; under the mutex
    std::set<std::pair<const Op*, DType>> seen_;  // calls that a kernel has accepted before; under the mutex
};

// A call in the queue.
struct Job {
    const Op& op;
    std::span<const Kernel> kernels;
    size_t taken = 0;  // the kernel to ask first, then the one that accepted the call
    std::vector<Value> args;
    std::vector<Tensor> out;
    DType dtype;
    uint64_t seed, counter;

    void run() {
        const std::vector<Tensor> wanted = out;
        KernelCall call{op, args, out, dtype, seed, counter};
        while (taken < kernels.size() && !kernels[taken](call)) ++taken;
        for (size_t i = 0; i < out.size() && taken < kernels.size(); ++i)
            if (wanted[i] && !out[i].same_body(wanted[i])) lunaria::copy_elements(out[i], wanted[i]);
    }
};

size_t Separate::queue(std::span<const Kernel> kernels, size_t first, KernelCall& call) {
    auto job = std::make_shared<Job>(Job{call.op, kernels, first, {}, {}, call.dtype, call.seed, call.counter});
    for (const Value& v : call.args) job->args.push_back(inside(v));
    const bool writes = call.op.writes();
    bool waits = writes || call.op.may_raise(call.dtype);
    for (const Tensor& t : call.out) {
        job->out.push_back(t ? inside(t) : Tensor());
        waits |= !t;
    }
    {
        // Whether a kernel accepts the call is known only after it was asked; the answer holds for all similar calls.
        std::lock_guard lock(mutex_);
        waits |= !seen_.contains({&call.op, call.dtype});
    }
    if (!waits) {
        add(
            [job] {
                job->run();
                if (job->taken == job->kernels.size())
                    throw dtype_error(job->op.name(), str("is not defined for ", name_of(job->dtype)));
            },
            program_place());
        return first;
    }
    wait(add([job] { job->run(); }));
    if (job->taken == kernels.size()) return kernels.size();
    {
        std::lock_guard lock(mutex_);
        seen_.emplace(&call.op, call.dtype);
    }
    for (size_t i = 0; i < call.out.size(); ++i)
        if (!call.out[i]) {
            const TakingResults taking;
            call.out[i] = job->out[i].to(this);
        }
    for (size_t i = 0; i < call.args.size() && writes; ++i) take_back(call.args[i], job->args[i]);
    return job->taken;
}

}  // namespace

Device& make_device(const Ways& ways) {
    // Not destroyed, since tensors may be released last of all.
    static std::vector<Separate*> made;
    static const struct End {
        ~End() {
            for (Separate* device : made) device->end();
        }
    } at_exit;
    return *made.emplace_back(new Separate(ways));
}

Device& device() {
    static Device& separate = make_device({});
    return separate;
}

}  // namespace lunaria::separate
