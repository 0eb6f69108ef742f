#include "core/memory/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace lunaria {

bool address_space_has(size_t bytes) {
    static const bool limited = [] {
        rlimit limit{};
        return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    }();
    if (!limited) return true;
    void* const place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return false;
    munmap(place, bytes);
    return true;
}

}  // namespace lunaria
