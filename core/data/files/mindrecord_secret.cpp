#include "core/data/files/mindrecord_secret.h"

#include <algorithm>

#include "core/base/interrupt.h"
#include "core/io/sealed.h"

namespace lunaria::data {

namespace {

constexpr std::string_view kEnd = "ENCRYPT", kMode = "AES-GCM";
constexpr std::string_view kHint = "ms.mindrecord.set_enc_key sets the key";

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
    for (uint64_t at = 0; at < source->size(); at += kSealedPiece) {
        poll_interrupt();
        const auto count = static_cast<size_t>(std::min(kSealedPiece, source->size() - at));
        const std::string piece = sealed_piece(cipher, source->text(at, count));
        sink.write(big_endian(static_cast<uint32_t>(piece.size())));
        sink.write(piece);
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
        if (length > end - at) throw source->error("corrupt: a piece goes past its end");
        const std::string bytes = opened_piece(cipher, *source, at, kHint);
        if (length != kSealedHead + bytes.size()) throw source->error("corrupt: a piece has another form");
        to.write(bytes);
        at += length;
    }
    if (at != end) throw source->error("corrupt: bytes are left behind the last piece");
}

}  // namespace lunaria::data
