// Memory of the host that the device can access by itself. All elements pass through it, and the host goes on
// meanwhile.
#pragma once

#include <cstddef>
#include <span>

#include "backends/gpu/driver.h"

namespace lunaria::gpu {

class Staging {
  public:
    Staging(const Driver& driver, StreamHandle* stream) : driver_(driver), stream_(stream) {}
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Uploads the present content, in the order of the stream's work.
    Result upload(Address to, const char* from, size_t bytes);
    // Waits until everything has arrived.
    Result download(char* to, Address from, size_t bytes);

    // The context is lost: what was in it is forgotten.
    void lose(StreamHandle* stream);

  private:
    static constexpr size_t kPart = size_t{1} << 20;
    static constexpr size_t kUploads = 8, kDownloads = 2;
    struct Part {
        char* memory = nullptr;
        EventHandle* done = nullptr;
        bool travels = false;
    };
    Result prepare(std::span<Part> parts);
    Result next_upload();

    const Driver& driver_;
    StreamHandle* stream_;
    Part up_[kUploads], down_[kDownloads];
    size_t now_ = 0, used_ = 0;  // the part that uploads fill, and the bytes used in it
};

}  // namespace lunaria::gpu
