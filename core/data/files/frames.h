// Records one after the other, each between its length, a check sum of the length and one of the bytes (CRC-32C,
// rotated and offset): the framing of TFRecord and of event files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/io/crc32c.h"
#include "core/io/file.h"

namespace lunaria {

// The check sum of such records.
inline uint32_t masked_crc32c(std::string_view bytes) {
    const uint32_t c = crc32c(bytes);
    return ((c >> 15) | (c << 17)) + 0xA282EAD8u;
}

struct Frame {
    uint64_t start = 0, bytes = 0;  // of the content
    uint64_t end() const;           // where the next frame begins
};

// The frame that begins at `at`, which is before the end of the source. Throws when the file ends within it or its
// length is damaged. `record`: its number, for messages.
Frame frame_at(const Source& source, uint64_t at, size_t record);
// The frame's content; throws when it is damaged.
std::string content_of(const Source& source, const Frame& frame, size_t record);
// Whether the file ends within the frame at `at`, as it does while its writer is at work.
bool is_cut_off(const Source& source, uint64_t at);

void append_frame(Sink& sink, std::string_view content);

}  // namespace lunaria
