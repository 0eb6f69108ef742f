#include "core/data/files/frames.h"

#include <cstring>

namespace lunaria {

namespace {

constexpr uint64_t kHead = 12, kTail = 4;  // bytes before and after the content

template <class T>
T number(std::string_view text, size_t at) {
    T value;
    std::memcpy(&value, text.data() + at, sizeof value);
    return value;
}

[[noreturn]] void fail(const Source& source, size_t record, const std::string& what, uint64_t offset) {
    throw source.error(str("record ", record, " is corrupt: ", what, " (offset ", offset, ")"));
}

}  // namespace

uint64_t Frame::end() const { return start + bytes + kTail; }

Frame frame_at(const Source& source, uint64_t at, size_t record) {
    const uint64_t left = source.size() - at;
    if (left < kHead + kTail)
        fail(source, record, str("the file ends within it, ", left, " bytes after it begins"), at);
    const std::string head = source.text(at, kHead);
    if (masked_crc32c(std::string_view(head).substr(0, 8)) != number<uint32_t>(head, 8))
        fail(source, record, "the crc of its length is wrong", at);
    const auto length = number<uint64_t>(head, 0);
    if (length > left - kHead - kTail)
        fail(source, record, str("its length, ", length, " bytes, goes past the end of the file"), at);
    return {at + kHead, length};
}

std::string content_of(const Source& source, const Frame& frame, size_t record) {
    std::string text = source.text(frame.start, static_cast<size_t>(frame.bytes + kTail));
    const auto crc = number<uint32_t>(text, static_cast<size_t>(frame.bytes));
    text.resize(static_cast<size_t>(frame.bytes));
    if (masked_crc32c(text) != crc) fail(source, record, "the crc of its data is wrong", frame.start);
    return text;
}

bool is_cut_off(const Source& source, uint64_t at) {
    const uint64_t left = source.size() - at;
    if (left < kHead) return true;
    const std::string head = source.text(at, kHead);
    // A damaged length tells nothing about the bytes that should follow.
    return masked_crc32c(std::string_view(head).substr(0, 8)) == number<uint32_t>(head, 8) &&
           (left < kHead + kTail || number<uint64_t>(head, 0) > left - kHead - kTail);
}

void append_frame(Sink& sink, std::string_view content) {
    const uint64_t length = content.size();
    const auto put = [&](const auto& value) { sink.write(&value, sizeof value); };
    put(length);
    put(masked_crc32c({reinterpret_cast<const char*>(&length), sizeof length}));
    sink.write(content);
    put(masked_crc32c(content));
}

}  // namespace lunaria
