#include "core/memory/unfilled_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <mutex>

namespace lunaria {

namespace {

constexpr size_t kAbove = 64 * 1024;
constexpr size_t kReserved = size_t{1} << 42;

constinit thread_local bool wanted = false;
std::atomic<char*> piece = nullptr;

// Reserved at the first request and never given back; bytes written into it by mistake are forgotten between uses.
char* reserved_piece() {
    static std::once_flag once;
    std::call_once(once, [] {
        void* space =
            mmap(nullptr, kReserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (space != MAP_FAILED) piece = static_cast<char*>(space);
    });
    return piece;
}

}  // namespace

UnfilledMemory::UnfilledMemory() : before_(wanted) { wanted = true; }

UnfilledMemory::~UnfilledMemory() {
    wanted = before_;
    if (char* space = piece; space && !wanted) madvise(space, kReserved, MADV_DONTNEED);
}

void* UnfilledMemory::piece_for(size_t bytes) {
    return wanted && bytes > kAbove && bytes <= kReserved ? reserved_piece() : nullptr;
}

bool UnfilledMemory::is_wanted() { return wanted; }

bool UnfilledMemory::owns(const void* block) {
    const char* space = piece.load(std::memory_order_relaxed);
    return space && block == space;
}

}  // namespace lunaria
