#include "core/data/files/mindrecord_secret.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "core/base/interrupt.h"
#include "core/io/aes_gcm.h"
#include "core/io/file.h"

namespace lunaria::data {

namespace {

constexpr std::string_view kEnd = "ENCRYPT", kMode = "AES-GCM";
constexpr uint64_t kPiece = uint64_t{64} << 20;
constexpr uint32_t kMagic = 0x7f3a5ed8;
constexpr size_t kStart = 16;  // bytes

// The header of a piece, after its length: the magic number, the tag, the number of bytes after these three, the start
// with its length, the length of the data; all numbers with the lowest byte first.
struct Head {
    uint32_t magic = kMagic;
    AesGcm::Block tag{};
    uint32_t rest = 0, start_size = kStart;
    std::array<uint8_t, kStart> start{};
    uint32_t size = 0;
};
static_assert(sizeof(Head) == 48);

// The reference product stores 16 bytes of the start and uses only as many as the counter mode takes.
std::string_view text_of(const std::array<uint8_t, kStart>& start) {
    return {reinterpret_cast<const char*>(start.data()), 12};
}

std::string big_endian(uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
}

uint32_t big_endian_at(const Source& source, uint64_t offset) {
    uint32_t value = 0;
    for (unsigned char c : source.text(offset, 4)) value = value << 8 | c;
    return value;
}

std::string mark_of(const Source& source) {
    constexpr size_t kMarks = kMode.size() + kEnd.size();
    if (source.size() < kMarks + 4) return {};
    const std::string marks = source.text(source.size() - kMarks, kMarks);
    return marks.ends_with(kEnd) ? marks.substr(0, kMode.size()) : std::string();
}

}  // namespace

std::string encryption_of(const std::string& path) { return mark_of(*open_source(path)); }

void encrypt_mindrecord(const std::string& path, std::string_view key) {
    const AesGcm cipher(key);
    const auto source = open_source(path);
    FileSink sink(path);
    std::random_device chance;
    for (uint64_t at = 0; at < source->size(); at += kPiece) {
        poll_interrupt();
        std::string bytes = source->text(at, static_cast<size_t>(std::min(kPiece, source->size() - at)));
        Head head;
        for (uint8_t& byte : head.start) byte = static_cast<uint8_t>(chance());
        head.size = static_cast<uint32_t>(bytes.size());
        head.rest = head.size + kStart + 8;
        head.tag = cipher.seal(text_of(head.start), bytes);
        sink.write(big_endian(static_cast<uint32_t>(sizeof head) + head.size));
        sink.write(&head, sizeof head);
        sink.write(bytes);
    }
    sink.write(big_endian(0));
    sink.write(kMode);
    sink.write(kEnd);
    sink.commit();
}

void decrypt_mindrecord(const std::string& from, Sink& to, std::string_view key) {
    const AesGcm cipher(key);
    const auto source = open_source(from);
    if (mark_of(*source) != kMode) throw source->error("is not encrypted by AES-GCM");
    const uint64_t end = source->size() - kMode.size() - kEnd.size();
    uint64_t at = 0;
    for (;;) {
        poll_interrupt();
        if (end - at < 4) throw source->error("corrupt: a piece goes past its end");
        const uint64_t length = big_endian_at(*source, at);
        at += 4;
        if (length == 0) break;
        Head head;
        if (length < sizeof head || length > end - at) throw source->error("corrupt: a piece goes past its end");
        source->read(at, &head, sizeof head);
        if (head.magic != kMagic || head.start_size != kStart || head.size != length - sizeof head)
            throw source->error("corrupt: a piece has another form");
        std::string bytes = source->text(at + sizeof head, head.size);
        if (!cipher.open(text_of(head.start), head.tag, bytes))
            throw source->error("cannot be decrypted: the key is another one, or the file is damaged")
                .hint("ms.mindrecord.set_enc_key sets the key");
        to.write(bytes);
        at += length;
    }
    if (at != end) throw source->error("corrupt: bytes are left behind the last piece");
}

}  // namespace lunaria::data
