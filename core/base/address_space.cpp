#include "core/base/address_space.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "core/base/error.h"

namespace lunaria {

bool address_space_is_limited() {
    static const bool limited = [] {
        rlimit limit{};
        return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    }();
    return limited;
}

bool address_space_has(size_t bytes) {
    if (!address_space_is_limited()) return true;
    void* const place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return false;
    munmap(place, bytes);
    return true;
}

void* open_library(const char* file, int flags, size_t room, std::string& why) {
    if (!address_space_has(room)) {
        why = str(file, ": there is too little memory; it takes ", room >> 20, " MB of addresses (ulimit -v)");
        return nullptr;
    }
    void* const library = dlopen(file, flags);
    if (library) return library;
    const char* reason = dlerror();
    why = reason ? reason : str(file, ": no reason given");
    return nullptr;
}

}  // namespace lunaria
