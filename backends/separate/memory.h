// Memory that the host cannot touch: the same pages are mapped twice, once without access rights, at the addresses of
// tensors, and once where the device's thread finds them. The system ends a program that reads an element of such a
// tensor without a copy.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/tensor/device.h"

namespace lunaria::separate {

class Memory {
  public:
    // For the device `name`: addresses for `size` bytes, of which `limit` may be in use; pages come as they are used.
    // Lasts to the end of the process.
    Memory(std::string name, size_t size, size_t limit);
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // Blocks at the host's addresses. A released block serves the next allocation at once: work of its next user is
    // queued after that of the present one.
    void* allocate(size_t bytes);  // throws memory_error
    void release(void* block, size_t bytes) noexcept;
    // Gives the pages of released blocks back; no work may be queued.
    void empty_cache();

    // The device's address for one of the host's.
    void* inside(const void* address) const { return const_cast<char*>(static_cast<const char*>(address)) + distance_; }
    DeviceMemory stats() const;
    void reset_peak();

  private:
    static size_t rounded(size_t bytes);
    std::string name_;
    int file_ = -1;
    char *outside_ = nullptr, *fresh_ = nullptr;  // the first address never given out
    ptrdiff_t distance_ = 0;
    size_t size_, limit_;
    mutable std::mutex mutex_;
    using Blocks = std::map<size_t, std::vector<char*>>;  // by size
    char* take(Blocks& blocks, size_t size);
    Blocks free_, dry_;              // dry: without pages
    std::map<size_t, size_t> made_;  // the number of blocks of a size, free or not
    DeviceMemory stats_;
};

}  // namespace lunaria::separate
