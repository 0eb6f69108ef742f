#include "core/memory/cache_size.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace lunaria {

namespace {

// The caches of the first processor as the kernel reports them. The C library adds up those of all cores of a socket.
int64_t kernel_says() {
    int64_t largest = 0;
    for (int index = 0;; ++index) {
        std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
        int64_t size = 0;
        char unit = 0;
        if (!(file >> size)) return largest;
        file >> unit;
        largest = std::max(largest, unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size);
    }
}

}  // namespace

int64_t last_cache_bytes() {
    static const int64_t bytes = [] {
        const int64_t size = kernel_says();
        return size > 0 ? size : std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
    }();
    return bytes;
}

}  // namespace lunaria
