// Bytes in order, from a stretch of a source as it is or out of a compressed one (deflate in a zip archive, gzip).
#pragma once

#include <memory>

#include "core/io/file.h"

namespace lunaria {

class Stream {
  public:
    virtual ~Stream() = default;
    // Exactly `bytes` bytes; throws file_error when they are not there.
    virtual void read(void* to, size_t bytes) = 0;
    // An upper bound on the bytes still to come, known without decompressing: deflate expands a byte to at most 1032. A
    // reader compares it with what a header promises before it allocates.
    virtual uint64_t most() const = 0;
    // To be called at the end: throws when bytes are left over or a checksum is wrong.
    virtual void finish() = 0;
    const std::string& name() const { return name_; }
    Error error(std::string_view message) const { return file_error(name_, message); }

  protected:
    explicit Stream(std::string name) : name_(std::move(name)) {}

  private:
    std::string name_;
};

// The streams keep a reference to the source.
std::unique_ptr<Stream> plain_stream(const Source& source);
// `size` bytes from `offset`, called `name` in messages.
std::unique_ptr<Stream> plain_stream(const Source& source, std::string name, uint64_t offset, uint64_t size);
std::unique_ptr<Stream> gzip_stream(const Source& source);

// A member of an archive.
struct Stretch {
    std::string name;       // name in messages
    uint64_t offset = 0;    // of the stored bytes in the source
    uint64_t stored = 0;    // number of stored bytes
    uint64_t size = 0;      // bytes when unpacked
    uint32_t checksum = 0;  // CRC-32 of the unpacked bytes
    bool deflated = false;
};
std::unique_ptr<Stream> member_stream(const Source& source, const Stretch& member);

// Raw deflate of `bytes`, for writers.
std::string deflate_bytes(std::string_view bytes);
uint32_t crc32_of(std::string_view bytes, uint32_t start = 0);

}  // namespace lunaria
