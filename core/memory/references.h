// Counting of references to shared objects. A process of one thread needs no locked instructions for it, which take as
// long as everything else that a copy does; the C library knows whether there is, or was, a second thread.
#pragma once

#include <atomic>
#include <cstdint>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace lunaria {

inline bool is_single_threaded() {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

inline void add_reference(std::atomic<int32_t>& refs) {
    if (is_single_threaded())
        refs.store(refs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
        refs.fetch_add(1, std::memory_order_relaxed);
}

// Whether this was the last reference.
inline bool drop_reference(std::atomic<int32_t>& refs) {
    const int32_t count = refs.load(std::memory_order_acquire);
    // A sole owner needs no read-modify-write: no other reference exists that could be copied.
    if (count == 1) return true;
    if (is_single_threaded()) {
        refs.store(count - 1, std::memory_order_relaxed);
        return false;
    }
    return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

}  // namespace lunaria
