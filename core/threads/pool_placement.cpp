#include "core/threads/pool_placement.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/signals.h"

namespace lunaria {

namespace {

// The id may have passed to a thread of another program since it was noted.
bool is_thread_of_ours(pid_t id) { return id > 0 && syscall(SYS_tgkill, getpid(), id, 0) == 0; }

// A processor of `allowed` that is not among `taken`, the preferred one if possible; -1 if there is none.
int choose(int preferred, const cpu_set_t& allowed, const cpu_set_t& taken) {
    auto free = [&](int cpu) { return CPU_ISSET(cpu, &allowed) && !CPU_ISSET(cpu, &taken); };
    if (preferred >= 0 && preferred < CPU_SETSIZE && free(preferred)) return preferred;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (free(cpu)) return cpu;
    return -1;
}

}  // namespace

PoolPlacement& PoolPlacement::own() {
    thread_local PoolPlacement placement;
    return placement;
}

void PoolPlacement::note(int worker) noexcept {
    thread_local const pid_t id = gettid();
    leave_signals_to_others();
    Worker& w = workers_[static_cast<size_t>(worker)];
    // Writes only on a change: a cache line that is only read stays with all its readers.
    const int processor = sched_getcpu();
    if (w.id != id) w.id = id;
    if (w.processor != processor) w.processor = processor;
}

void PoolPlacement::bind() {
    last_bound_ = Clock::now();
    too_many_ = false;
    const int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return;
    cpu_set_t taken;
    CPU_ZERO(&taken);
    CPU_SET(here, &taken);
    for (size_t i = 1; i < workers_.size(); ++i) {
        Worker& w = workers_[i];
        if (!is_thread_of_ours(w.id) || sched_getaffinity(w.id, sizeof w.allowed, &w.allowed) != 0) continue;
        const int processor = choose(w.processor, w.allowed, taken);
        if (processor < 0) {
            too_many_ = true;
            continue;
        }
        CPU_SET(processor, &taken);
        cpu_set_t only;
        CPU_ZERO(&only);
        CPU_SET(processor, &only);
        w.bound = sched_setaffinity(w.id, sizeof only, &only) == 0;
    }
}

void PoolPlacement::release() {
    cpu_set_t seen;
    CPU_ZERO(&seen);
    const int here = sched_getcpu();
    if (here >= 0 && here < CPU_SETSIZE) CPU_SET(here, &seen);
    crowded_ = false;
    for (size_t i = 1; i < workers_.size(); ++i) {
        Worker& w = workers_[i];
        if (w.bound) sched_setaffinity(w.id, sizeof w.allowed, &w.allowed);
        w.bound = false;
        if (w.processor < 0 || w.processor >= CPU_SETSIZE) continue;
        crowded_ |= CPU_ISSET(w.processor, &seen) && !too_many_;
        CPU_SET(w.processor, &seen);
    }
}

}  // namespace lunaria
