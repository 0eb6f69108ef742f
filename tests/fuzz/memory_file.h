// Bytes as a file, for readers that open paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

class MemoryFile {
  public:
    MemoryFile(const uint8_t* data, size_t size) : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
        for (size_t done = 0; done < size;) {
            const ssize_t count = write(file_, data + done, size - done);
            if (count <= 0) break;
            done += static_cast<size_t>(count);
        }
    }
    ~MemoryFile() { close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

  private:
    int file_;
};
