#include "core/threads.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/lone_thread.h"
#include "core/pool_placement.h"
#include "core/pool_settings.h"

namespace lunaria {

namespace {

// Pieces are about this many worthwhile parts: milliseconds of work between two looks at the interrupt flag.
constexpr int64_t kPartsPerPiece = 16;

std::atomic<int>& thread_count() {
    [[maybe_unused]] static const bool spins_briefly = pool_spin_is_ours();
    static std::atomic<int> count{std::clamp(omp_get_max_threads(), 1, 1024)};
    return count;
}

// In pieces, between which an interrupt is noticed.
void walk(detail::RangeBody body, void* context, int64_t begin, int64_t end, int64_t piece) {
    for (int64_t at = begin; at < end; at += piece) {
        if (at != begin) poll_interrupt();
        body(context, at, std::min(at + piece, end));
    }
}

// What the threads have to know, side by side: each line of memory that one has written and others read costs them as
// much as a few hundred additions.
struct alignas(64) Region {
    detail::RangeBody body;
    void* context;
    int64_t count, piece, share, threads;
    PoolPlacement* placement;
    std::atomic<bool> failed{false};
    std::exception_ptr failure{};

    // An exception must not leave a parallel region: it is carried out by hand.
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

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
    if (n < 1 || n > 1024)
        throw value_error("set_num_threads", str("the number of threads must be 1 to 1024, not ", n));
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
