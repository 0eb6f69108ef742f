// Zip archives in the form that .npz files need: stored and deflated members, zip64; no encryption, no spanning. Only
// the central directory counts. It must lie at the end of the file and its members must not overlap each other, so that
// no byte of a file can be unpacked twice (the trick of the best zip bombs).
#pragma once

#include <vector>

#include "core/io/stream.h"

namespace lunaria {

struct ZipMember {
    std::string name;  // as in the archive, but relative, without "..", and unique
    Stretch stretch;
};

// Throws file_error if `source` is no valid archive.
std::vector<ZipMember> zip_directory(const Source& source);

class ZipWriter {
  public:
    explicit ZipWriter(Sink& sink) : sink_(sink) {}
    void add(const std::string& name, std::string_view content, bool deflated);
    // Writes the directory; nothing can be added after it.
    void finish();

  private:
    struct Entry {
        std::string name;
        uint64_t offset, stored, size;
        uint32_t checksum;
        bool deflated;
    };
    Sink& sink_;
    std::vector<Entry> entries_;
};

}  // namespace lunaria
