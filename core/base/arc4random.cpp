// glibc has this function since 2.36, and what is compiled for Debian 12 calls it: LLVM, which is linked into the code
// generator, and libstdc++, for std::random_device. The programs export theirs, so that they run with glibc 2.35.
#include <sys/random.h>

#include <cstdint>

extern "C" [[gnu::visibility("default")]] uint32_t arc4random() noexcept {
    uint32_t word = 0;
    // At most 256 bytes come in one piece, unless a signal comes before there is enough entropy at the start of the
    // system.
    while (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
    }
    return word;
}
