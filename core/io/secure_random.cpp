#include "core/io/secure_random.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"

namespace lunaria {

void secure_random(std::string_view where, void* to, size_t bytes) {
    auto* next = static_cast<unsigned char*>(to);
    while (bytes > 0) {
        // A call gives at most 32 MiB at once, and a signal may end one that is larger than 256 bytes.
        const ssize_t got = getrandom(next, std::min(bytes, size_t{1} << 24), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) throw state_error(where, "the system gives no random numbers");
        next += got;
        bytes -= static_cast<size_t>(got);
    }
}

}  // namespace lunaria
