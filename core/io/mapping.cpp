#include "core/io/mapping.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace lunaria {

namespace {

// The mapped ranges, for a signal handler: no locks, and nothing moves. A slot with a begin of 0 is free.
struct Slot {
    std::atomic<uintptr_t> begin{0}, end{0};
};
constexpr size_t kSlots = 1024;
std::array<Slot, kSlots> slots;
struct sigaction previous;

bool is_mapped(uintptr_t at) {
    for (const Slot& slot : slots) {
        const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
        if (begin != 0 && at >= begin && at < slot.end.load(std::memory_order_relaxed)) return true;
    }
    return false;
}

// Handles an access to a page that the mapped file no longer has.
void on_lost_page(int, siginfo_t* info, void*) {
    constexpr char kMessage[] =
        "lunaria: a file became shorter while its tensors were mapped: the program is interrupted\n";
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = at / page * page;
    if (!is_mapped(at) || mmap(reinterpret_cast<void*>(begin), page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                               -1, 0) == MAP_FAILED) {
        // Not one of our mappings, or no memory: the earlier handler is put back, and the instruction faults once more.
        sigaction(SIGBUS, &previous, nullptr);
        return;
    }
    if (!interrupt_requested()) {
        [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
        request_interrupt();
    }
}

void watch_for_lost_pages() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_lost_page;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &previous);
    });
}

size_t take_slot(uintptr_t begin, size_t size) {
    for (size_t i = 0; i < kSlots; ++i) {
        uintptr_t none = 0;
        // The end may follow the begin: no page of the file is accessed before both are set.
        if (slots[i].begin.compare_exchange_strong(none, begin, std::memory_order_acq_rel)) {
            slots[i].end.store(begin + size, std::memory_order_release);
            return i;
        }
    }
    return kSlots;
}

struct Owner {
    std::shared_ptr<Mapping> mapping;
};

void release_owner(Storage& storage) { delete static_cast<Owner*>(storage.foreign); }

}  // namespace

std::shared_ptr<Mapping> Mapping::of(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    auto refuse = [&](std::string_view why) {
        if (file >= 0) close(file);
        return file_error(path, str("cannot be mapped into memory: ", why));
    };
    if (file < 0) throw refuse(std::system_category().message(errno));
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) throw refuse("it is not a regular file");
    if (info.st_size == 0) throw refuse("it is empty");
    const auto size = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) throw refuse(std::system_category().message(errno));
    close(file);
    watch_for_lost_pages();
    const size_t slot = take_slot(reinterpret_cast<uintptr_t>(data), size);
    if (slot == kSlots) {
        munmap(data, size);
        throw file_error(path, str("cannot be mapped into memory: ", kSlots, " files are mapped already"));
    }
    return std::shared_ptr<Mapping>(new Mapping(data, size, slot));
}

Mapping::~Mapping() {
    slots[slot_].begin.store(0, std::memory_order_release);
    munmap(data_, size_);
}

bool Mapping::holds(const Tensor& tensor) { return tensor.body()->storage->release_foreign == release_owner; }

Tensor Mapping::tensor(DType dtype, const Shape& shape, size_t offset) {
    char* at = data_ + offset;
    const size_t width = is_complex(dtype) ? size_of(dtype) / 2 : size_of(dtype);
    if (reinterpret_cast<uintptr_t>(at) % width != 0) return {};
    return Tensor::over(at, dtype, shape, release_owner, new Owner{shared_from_this()});
}

}  // namespace lunaria
