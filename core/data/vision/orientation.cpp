// The orientation in the EXIF of a JPEG or PNG, by which viewers turn the picture.
#include <cstring>

#include "core/data/vision/decode.h"

namespace lunaria::vision {

namespace {

constexpr int kAsItIs = 1, kOrientation = 0x0112;

// Reads numbers of a TIFF in the byte order that it states. Numbers outside of its bytes are 0.
class Tiff {
  public:
    explicit Tiff(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}

    int orientation() const {
        if (!bytes_.starts_with("MM") && !bytes_.starts_with("II")) return kAsItIs;
        const uint64_t first = number(4, 4), count = number(first, 2);
        for (uint64_t i = 0; i < count; ++i) {
            const uint64_t entry = first + 2 + 12 * i;
            if (entry + 12 > bytes_.size()) return kAsItIs;
            if (number(entry, 2) != kOrientation) continue;
            const uint64_t value = number(entry + 8, 2);
            return value >= 1 && value <= 8 ? static_cast<int>(value) : kAsItIs;
        }
        return kAsItIs;
    }

  private:
    uint64_t number(uint64_t at, size_t size) const {
        uint64_t value = 0;
        if (at + size > bytes_.size()) return 0;
        for (size_t i = 0; i < size; ++i)
            value = value << 8 | static_cast<uint8_t>(bytes_[at + (big_ ? i : size - 1 - i)]);
        return value;
    }
    std::string_view bytes_;
    bool big_;
};

uint64_t big_endian(std::string_view bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
    return value;
}

// The TIFF in the segments before a JPEG's pixels; empty: there is none.
std::string_view jpeg_exif(std::string_view bytes) {
    constexpr std::string_view kExif("Exif\0\0", 6);
    for (size_t at = 2; at + 4 <= bytes.size() && bytes[at] == '\xff';) {
        const auto marker = static_cast<uint8_t>(bytes[at + 1]);
        if (marker == 0xff) {  // a fill byte
            ++at;
            continue;
        }
        if (marker == 0xda || marker == 0xd9) break;
        const uint64_t size = big_endian(bytes, at + 2, 2);
        if (size < 2 || at + 2 + size > bytes.size()) break;
        const std::string_view segment = bytes.substr(at + 4, size - 2);
        if (marker == 0xe1 && segment.starts_with(kExif)) return segment.substr(kExif.size());
        at += 2 + size;
    }
    return {};
}

std::string_view png_exif(std::string_view bytes) {
    for (size_t at = 8; at + 12 <= bytes.size();) {
        const uint64_t size = big_endian(bytes, at, 4);
        if (size > bytes.size() - at - 12) break;
        if (bytes.substr(at + 4, 4) == "eXIf") return bytes.substr(at + 8, size);
        at += 12 + size;
    }
    return {};
}

}  // namespace

int orientation_of(std::string_view bytes) {
    return Tiff(is_jpeg(bytes) ? jpeg_exif(bytes) : bytes.starts_with("\x89PNG") ? png_exif(bytes) : "").orientation();
}

Tensor upright(const Tensor& image, int orientation) {
    if (orientation == kAsItIs) return image;
    const Extent e = extent(image);
    // From 5 on rows of the picture are columns of the file.
    const bool turned = orientation >= 5;
    const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const int64_t height = turned ? e.width : e.height, width = turned ? e.height : e.width;
    const Tensor out = Tensor::empty(image.dtype(), e.shape(height, width));
    const size_t pixel = static_cast<size_t>(e.channels) * size_of(image.dtype());
    const auto* from = static_cast<const char*>(image.raw());
    auto* to = static_cast<char*>(out.raw());
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x, to += pixel) {
            int64_t row = turned ? x : y, column = turned ? y : x;
            if (from_below) row = e.height - 1 - row;
            if (from_right) column = e.width - 1 - column;
            std::memcpy(to, from + static_cast<size_t>(row * e.width + column) * pixel, pixel);
        }
    return out;
}

}  // namespace lunaria::vision
