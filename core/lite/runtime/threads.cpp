#include "core/lite/runtime/threads.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

namespace lunaria::lite {

namespace {

std::vector<int> usable_cores() {
    cpu_set_t set;
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &set)) cores.push_back(core);
    return cores;
}

// The highest clock of a core, 0 where the system does not say.
long clock_of(int core) {
    const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/cpuinfo_max_freq";
    long clock = 0;
    if (FILE* file = std::fopen(path.c_str(), "r")) {
        if (std::fscanf(file, "%ld", &clock) != 1) clock = 0;
        std::fclose(file);
    }
    return clock;
}

// The usable cores by their clocks; `middle` begins with those below the fastest.
std::vector<int> cores_for(Affinity affinity) {
    if (affinity == Affinity::none) return {};
    std::vector<int> cores = usable_cores();
    std::map<int, long> clocks;
    for (const int core : cores) clocks[core] = clock_of(core);
    std::stable_sort(cores.begin(), cores.end(), [&](int a, int b) { return clocks[a] > clocks[b]; });
    if (affinity == Affinity::middle && !cores.empty()) {
        const long top = clocks[cores[0]];
        std::stable_partition(cores.begin(), cores.end(), [&](int core) { return clocks[core] < top; });
    }
    return cores;
}

void bind(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);  // the calling thread
}

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    asm volatile("yield");
#endif
}

}  // namespace

int processor_count() { return std::max<int>(1, static_cast<int>(usable_cores().size())); }

Threads::Threads(int count, Affinity affinity, std::vector<int> cores) {
    if (cores.empty()) cores = cores_for(affinity);
    threads_.reserve(static_cast<size_t>(count));
    try {
        for (int worker = 1; worker < count; ++worker) {
            const int core = cores.empty() ? -1 : cores[static_cast<size_t>(worker) % cores.size()];
            threads_.emplace_back([this, worker, core] {
                if (core >= 0) bind(core);
                work(worker);
            });
        }
    } catch (const std::exception&) {
        // The system gives no more; as many as there are do the work.
    }
}

Threads::~Threads() {
    ends_.store(true);
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& t : threads_) t.join();
}

void Threads::run(int64_t count, Task task, void* closure) {
    if (threads_.empty() || count <= 1) {
        for (int64_t i = 0; i < count; ++i) task(closure, i, 0);
        return;
    }
    count_ = count;
    task_ = task;
    closure_ = closure;
    next_.store(0, std::memory_order_relaxed);
    busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    take_part(0);
    for (int turn = 0; busy_.load(std::memory_order_acquire) != 0; ++turn)
        if (turn < 1000)
            pause();
        else
            std::this_thread::yield();
}

void Threads::take_part(int worker) {
    for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < count_;
         i = next_.fetch_add(1, std::memory_order_relaxed))
        task_(closure_, i, worker);
}

void Threads::work(int worker) {
    uint32_t seen = 0;
    for (;;) {
        using Clock = std::chrono::steady_clock;
        const auto until = Clock::now() + std::chrono::microseconds(50);
        while (round_.load(std::memory_order_acquire) == seen && Clock::now() < until) pause();
        round_.wait(seen, std::memory_order_acquire);
        ++seen;
        if (ends_.load()) return;
        take_part(worker);
        busy_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace lunaria::lite
