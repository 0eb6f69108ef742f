#include "kernel/logo.h"

#include <array>
#include <cstdint>

namespace lunaria::jupyter {

namespace {

// In units of the square's side: a disc, and the disc that is cut out of it.
constexpr double kCentre = 0.5, kRadius = 0.42, kCutX = 0.64, kCutY = 0.40, kCutRadius = 0.34;
constexpr int kSamples = 4;  // per pixel and axis
constexpr std::array<unsigned char, 3> kColor = {0x3b, 0x5b, 0xa5};

bool in_disc(double x, double y, double cx, double cy, double r) {
    return (x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r;
}

bool in_crescent(double x, double y) {
    return in_disc(x, y, kCentre, kCentre, kRadius) && !in_disc(x, y, kCutX, kCutY, kCutRadius);
}

void add_number(std::string& text, uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 255);
}

uint32_t crc32(const std::string& text) {
    uint32_t crc = ~uint32_t{0};
    for (const char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

uint32_t adler32(const std::string& text) {
    uint32_t a = 1, b = 0;
    for (const char c : text) {
        a = (a + static_cast<unsigned char>(c)) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

void add_chunk(std::string& file, const std::string& type, const std::string& data) {
    add_number(file, static_cast<uint32_t>(data.size()));
    file += type + data;
    add_number(file, crc32(type + data));
}

// As zlib's format has it, but without compression: a few kilobytes are not worth a library.
std::string stored(const std::string& data) {
    constexpr size_t kBlock = 65535;
    std::string text = "\x78\x01";
    for (size_t at = 0; at < data.size(); at += kBlock) {
        const std::string block = data.substr(at, kBlock);
        const auto size = static_cast<uint32_t>(block.size());
        text += at + kBlock >= data.size() ? '\1' : '\0';
        for (const uint32_t n : {size, ~size})
            for (const int shift : {0, 8}) text += static_cast<char>(n >> shift & 255);
        text += block;
    }
    add_number(text, adler32(data));
    return text;
}

}  // namespace

std::string logo_svg() {
    // The same two circles; the second one masks the first.
    return R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">
  <mask id="cut"><rect width="100" height="100" fill="white"/><circle cx="64" cy="40" r="34" fill="black"/></mask>
  <circle cx="50" cy="50" r="42" fill="#3b5ba5" mask="url(#cut)"/>
</svg>
)svg";
}

std::string logo_png(int size) {
    std::string pixels;
    for (int row = 0; row < size; ++row) {
        pixels += '\0';  // no filter
        for (int column = 0; column < size; ++column) {
            int inside = 0;
            for (int i = 0; i < kSamples * kSamples; ++i)
                inside += in_crescent((column + (i % kSamples + 0.5) / kSamples) / size,
                                      (row + (i / kSamples + 0.5) / kSamples) / size);
            for (const unsigned char part : kColor) pixels += static_cast<char>(part);
            pixels += static_cast<char>(inside * 255 / (kSamples * kSamples));
        }
    }
    std::string head;
    add_number(head, static_cast<uint32_t>(size));
    add_number(head, static_cast<uint32_t>(size));
    head += std::string("\x08\x06\0\0\0", 5);  // 8 bits, red green blue alpha
    std::string file = "\x89PNG\r\n\x1a\n";
    add_chunk(file, "IHDR", head);
    add_chunk(file, "IDAT", stored(pixels));
    add_chunk(file, "IEND", "");
    return file;
}

}  // namespace lunaria::jupyter
