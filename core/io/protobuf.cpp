#include "core/io/protobuf.h"

namespace lunaria {

namespace {

enum Wire : int { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

}  // namespace

uint64_t ProtoReader::varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (rest_.empty()) fail("a number is cut off");
        const auto byte = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        if (shift == 63 && byte > 1) fail("a number is longer than 64 bits");
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail("a number is longer than 64 bits");
}

std::string_view ProtoReader::take(uint64_t count) {
    if (count > rest_.size())
        fail(str("field ", field_, " promises ", count, " bytes, but ", rest_.size(), " are left"));
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
}

bool ProtoReader::next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff) fail(str("there is no field number ", key >> 3));
    field_ = static_cast<uint32_t>(key >> 3);
    wire_ = static_cast<int>(key & 7);
    switch (wire_) {
        case kVarint:
            number_ = varint();
            return true;
        case kFixed64:
            bytes_ = take(8);
            return true;
        case kLength:
            bytes_ = take(varint());
            return true;
        case kFixed32:
            bytes_ = take(4);
            return true;
        case 3:
        case 4:
            fail(str("field ", field_, " is a group, which these files do not have"));
        default:
            fail(str("field ", field_, " has the unknown kind ", wire_));
    }
}

int64_t ProtoReader::integer() const {
    if (wire_ != kVarint) fail(str("field ", field_, " is no integer"));
    return static_cast<int64_t>(number_);
}

float ProtoReader::float32() const {
    if (wire_ != kFixed32) fail(str("field ", field_, " is no 32-bit number"));
    return std::bit_cast<float>(fixed<uint32_t>(0));
}

double ProtoReader::float64() const {
    if (wire_ != kFixed64) fail(str("field ", field_, " is no 64-bit number"));
    return std::bit_cast<double>(fixed<uint64_t>(0));
}

std::string_view ProtoReader::bytes() const {
    if (wire_ != kLength) fail(str("field ", field_, " is neither text nor a message"));
    return bytes_;
}

std::string ProtoReader::text() const {
    if (!is_utf8(bytes())) fail(str("the text of field ", field_, " is not UTF-8"));
    return std::string(bytes_);
}

ProtoReader ProtoReader::message() const {
    ProtoReader inner = *this;
    inner.rest_ = bytes();
    ++inner.depth_;
    if (inner.depth_ > kDeepest) fail(str("messages are nested more than ", kDeepest, " times"));
    return inner;
}

void ProtoReader::packed_size(size_t each) const {
    if (bytes().size() % each) fail(str("field ", field_, " has ", bytes_.size(), " bytes, no multiple of ", each));
}

void ProtoWriter::varint(uint64_t value) {
    while (value >= 0x80) {
        text_ += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    text_ += static_cast<char>(value);
}

ProtoWriter& ProtoWriter::integer(uint32_t field, int64_t value) {
    varint(uint64_t{field} << 3 | kVarint);
    varint(static_cast<uint64_t>(value));
    return *this;
}

ProtoWriter& ProtoWriter::float32(uint32_t field, float value) {
    varint(uint64_t{field} << 3 | kFixed32);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) text_ += static_cast<char>(bits >> (8 * i));
    return *this;
}

ProtoWriter& ProtoWriter::float64(uint32_t field, double value) {
    varint(uint64_t{field} << 3 | kFixed64);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) text_ += static_cast<char>(bits >> (8 * i));
    return *this;
}

ProtoWriter& ProtoWriter::bytes(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | kLength);
    varint(value.size());
    text_ += value;
    return *this;
}

bool is_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const int more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
        if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || i + static_cast<size_t>(more) >= text.size())
            return false;
        uint32_t code = more == 0 ? first : first & (0x3fu >> more);
        for (int k = 1; k <= more; ++k) {
            const auto next = static_cast<unsigned char>(text[i + static_cast<size_t>(k)]);
            if ((next & 0xc0) != 0x80) return false;
            code = code << 6 | (next & 0x3f);
        }
        // Refuses overlong forms, surrogates, and code points beyond Unicode.
        if ((more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
            (more == 3 && (code < 0x10000 || code > 0x10ffff)))
            return false;
        i += static_cast<size_t>(more) + 1;
    }
    return true;
}

}  // namespace lunaria
