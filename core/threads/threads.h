// The number of threads that kernels may use, and the loop that splits work among them. One OpenMP pool serves our
// kernels, OpenBLAS (its OpenMP build) and oneDNN.
//
// The pool's threads spin for a moment after a piece of work and then sleep. Waking a sleeping thread costs tens of
// microseconds, so work is only split when every part is worth that much: callers say how many items make a worthwhile
// part.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lunaria {

// At least 1. Without set_num_threads: the number of cores this process may run on, or OMP_NUM_THREADS, or as many as
// the system gives, which the first call finds out (prepare_pool).
int num_threads();
// Applies to the whole process; throws value_error unless 1 <= n <= 1024, and state_error where the system does not
// give so many threads.
void set_num_threads(int n);
// Makes the pool's threads before this thread shares out work for the first time, since OpenMP ends the process when it
// cannot make one. Where the system refuses them (limits of processes or of memory), fewer are used from then on, and a
// warning says so. To be called before a library that shares out work to the pool itself.
void prepare_pool();

namespace detail {
using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
void run_parallel(int64_t count, int64_t part, int64_t align, RangeBody body, void* context);
}  // namespace detail

// Calls body(begin, end) for ranges that together cover 0 .. count, on several threads if there is more than one part
// of `part` items; on this thread alone otherwise and inside another parallel loop. Ranges start at multiples of
// `align`. Within each thread the range comes in pieces, between which an interrupt is noticed. An exception of the
// body is thrown to the caller when all threads have stopped (one of them, if there are several).
template <class Body>
void parallel_for(int64_t count, int64_t part, int64_t align, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    detail::run_parallel(
        count, part, align,
        [](void* context, int64_t begin, int64_t end) { (*static_cast<Plain*>(context))(begin, end); },
        const_cast<void*>(static_cast<const void*>(&body)));
}

template <class Body>
void parallel_for(int64_t count, int64_t part, Body&& body) {
    parallel_for(count, part, 1, body);
}

// To be alive while a library shares out work to the pool itself: wakes the pool if it sleeps, each thread on a
// processor of its own. Only for work that is worth the waking.
class PoolUse {
  public:
    PoolUse();
    ~PoolUse();
    PoolUse(const PoolUse&) = delete;
};

}  // namespace lunaria
