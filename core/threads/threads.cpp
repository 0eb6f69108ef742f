#include "core/threads/threads.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/address_space.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/signals.h"
#include "core/base/warning.h"
#include "core/threads/lone_thread.h"
#include "core/threads/pool_placement.h"
#include "core/threads/pool_settings.h"

namespace lunaria {

namespace {

// The size of a piece in worthwhile parts: milliseconds of work between two looks at the interrupt flag.
constexpr int64_t kPartsPerPiece = 16;

std::atomic<int>& thread_count() {
    [[maybe_unused]] static const bool spins_briefly = pool_spin_is_ours();
    static std::atomic<int> count{std::clamp(omp_get_max_threads(), 1, 1024)};
    return count;
}

// The largest pool that this thread has had so far, including itself.
thread_local int pool_size = 1;

// Whether work is split is up to the calling thread.
bool shares_work() { return !LoneThread::is_here() && !omp_in_parallel(); }

// The number of threads of this process that the system knows, including some that have just ended.
int threads_alive() {
    int count = 0;
    if (std::FILE* file = std::fopen("/proc/self/stat", "r")) {
        // Twenty numbers. The second field is a name, which may hold any bytes but ends with the last ")".
        char text[1024];
        text[std::fread(text, 1, sizeof text - 1, file)] = 0;
        std::fclose(file);
        const char* at = std::strrchr(text, ')');
        for (int field = 2; at && field < 20; ++field) at = std::strchr(at + 1, ' ');
        if (at) count = std::atoi(at);
    }
    return count;
}

// Makes up to `wanted` threads that only wait for each other, and returns how many could be there at once.
int try_threads(int wanted) {
    struct Gate {
        std::mutex mutex;
        std::condition_variable opened, came;
        int inside = 0;
        bool open = false;
    } gate;
    const int before = threads_alive();
    std::vector<pthread_t> made;
    made.reserve(static_cast<size_t>(wanted));
    for (int i = 0; i < wanted; ++i) {
        pthread_t thread;
        const auto wait = [](void* given) -> void* {
            auto& g = *static_cast<Gate*>(given);
            leave_signals_to_others();
            std::unique_lock lock(g.mutex);
            ++g.inside;
            g.came.notify_one();
            g.opened.wait(lock, [&] { return g.open; });
            return nullptr;
        };
        if (pthread_create(&thread, nullptr, wait, &gate) != 0) break;
        made.push_back(thread);
    }
    int count = static_cast<int>(made.size());
    {
        std::unique_lock lock(gate.mutex);
        gate.came.wait(lock, [&] { return gate.inside == count; });
        // OpenMP's own records, without which it ends the process, need room beside the threads.
        if (count > 0 && !address_space_has(kAddressesLeft)) --count;
        gate.open = true;
    }
    gate.opened.notify_all();
    for (const pthread_t thread : made) pthread_join(thread, nullptr);
    // A joined thread still counts until the system has removed it.
    for (int i = 0; i < 1000 && threads_alive() > before; ++i)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    return count;
}

// A pool of `wanted` threads for this thread, or of as many as the system gives; returns their number.
int make_pool(int wanted) {
    if (pool_size >= wanted) return wanted;
    const int got = std::min(wanted, 1 + try_threads(wanted - 1));
    omp_set_num_threads(got);
#pragma omp parallel num_threads(got)
    if (omp_get_thread_num() > 0) leave_signals_to_others();
    pool_size = std::max(pool_size, got);
    return got;
}

constexpr std::string_view kLimits = "the limit of processes (ulimit -u) or of memory (ulimit -v) is reached; raise it";

// Walks in pieces, between which an interrupt is noticed.
void walk(detail::RangeBody body, void* context, int64_t begin, int64_t end, int64_t piece) {
    for (int64_t at = begin; at < end; at += piece) {
        if (at != begin) poll_interrupt();
        body(context, at, std::min(at + piece, end));
    }
}

// The data for the threads, in one place: each cache line that one thread has written and others read costs them as
// much as a few hundred additions.
struct alignas(64) Region {
    detail::RangeBody body;
    void* context;
    int64_t count, piece, share, threads;
    PoolPlacement* placement;
    std::atomic<bool> failed{false};
    std::exception_ptr failure{};

    // An exception must not leave a parallel region: it is stored and thrown again outside.
    void run(int number, int64_t step) noexcept {
        if (number) placement->note(number);
        // The pool may give fewer threads than asked for: the shares are then dealt out in turn.
        for (int64_t i = number; i < threads; i += step) {
            const int64_t begin = std::min(i * share, count);
            try {
                walk(body, context, begin, std::min(begin + share, count), piece);
            } catch (...) {
                if (!failed.exchange(true)) failure = std::current_exception();
            }
        }
    }
};

}  // namespace

thread_local bool LoneThread::alone_ = false;

int num_threads() {
    prepare_pool();
    return thread_count().load(std::memory_order_relaxed);
}

void prepare_pool() {
    const int wanted = thread_count().load(std::memory_order_relaxed);
    if (pool_size >= wanted || !shares_work()) [[likely]]
        return;
    const int got = make_pool(wanted);
    if (got == wanted) return;
    thread_count().store(got, std::memory_order_relaxed);
    warn("lunaria", str("the system gives only ", got, " of ", wanted, " threads, which are used"), kLimits);
}

void set_num_threads(int n) {
    if (n < 1 || n > 1024)
        throw value_error("set_num_threads", str("the number of threads must be 1 to 1024, not ", n));
    if (shares_work() && make_pool(n) < n) {
        const int got = omp_get_max_threads();
        omp_set_num_threads(std::min(thread_count().load(std::memory_order_relaxed), got));
        throw state_error("set_num_threads", str("the system gives only ", got, " of ", n, " threads")).hint(kLimits);
    }
    // OpenBLAS (OpenMP build) and oneDNN ask OpenMP how many threads there are at each call.
    omp_set_num_threads(n);
    thread_count().store(n, std::memory_order_relaxed);
}

void detail::run_parallel(int64_t count, int64_t part, int64_t align, RangeBody body, void* context) {
    if (count <= 0) return;
    part = std::max<int64_t>(part, 1);
    if (count <= part) return body(context, 0, count);
    int64_t piece = (part * kPartsPerPiece + align - 1) / align * align;
    int64_t threads = std::min<int64_t>(num_threads(), (count + part - 1) / part);
    if (threads <= 1 || LoneThread::is_here() || omp_in_parallel()) return walk(body, context, 0, count, piece);

    Region region{body,
                  context,
                  count,
                  piece,
                  ((count + threads - 1) / threads + align - 1) / align * align,
                  threads,
                  &PoolPlacement::own()};
    PoolPlacement& placement = *region.placement;
    placement.before(static_cast<int>(threads));
    Region* const shared = &region;
#pragma omp parallel num_threads(static_cast <int>(threads)) firstprivate(shared)
    shared->run(omp_get_thread_num(), omp_get_num_threads());
    placement.after();
    if (region.failure) std::rethrow_exception(region.failure);
}

PoolUse::PoolUse() {
    if (num_threads() < 2 || LoneThread::is_here() || omp_in_parallel()) return;
    PoolPlacement& placement = PoolPlacement::own();
    if (!placement.is_asleep()) return;
    placement.before(num_threads());
#pragma omp parallel num_threads(num_threads())
    if (const int number = omp_get_thread_num()) placement.note(number);
    placement.after();
}

PoolUse::~PoolUse() {
    if (!LoneThread::is_here()) PoolPlacement::own().used();
}

}  // namespace lunaria
