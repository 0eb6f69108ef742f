#include "core/vision/decode.h"

#include <cstring>

namespace lunaria::vision {

void check_size(std::string_view where, int64_t height, int64_t width) {
    if (height <= 0 || width <= 0) throw file_error(where, str("the picture has ", height, " x ", width, " pixels"));
    if (height > kMostDecoded / width)
        throw file_error(
            where, str("the picture has ", height, " x ", width, " pixels: too large, the limit is ", kMostDecoded));
}

namespace {

struct Bitmap {
    int64_t height, width, bits, first, stride;
    bool from_top;
    std::string_view palette;
};

template <class T>
T little(std::string_view bytes, size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

// Uncompressed, 8, 24 or 32 bits.
Bitmap read_header(std::string_view where, std::string_view bytes) {
    const auto damaged = [&](std::string_view what) { return file_error(where, str("the BMP ", what)); };
    if (bytes.size() < 54) throw damaged("is damaged: it ends in its header");
    const auto header = little<uint32_t>(bytes, 14);
    if (header < 40 || header > 124) throw damaged("has a header that is not known");
    Bitmap b{};
    b.width = little<int32_t>(bytes, 18);
    b.height = little<int32_t>(bytes, 22);
    b.from_top = b.height < 0;
    b.height = std::abs(b.height);
    b.bits = little<uint16_t>(bytes, 28);
    b.first = little<uint32_t>(bytes, 10);
    const auto compression = little<uint32_t>(bytes, 30);
    check_size(where, b.height, b.width);
    if ((compression != 0 && !(compression == 3 && b.bits == 32)) || (b.bits != 8 && b.bits != 24 && b.bits != 32))
        throw damaged(
            str("has ", b.bits, " bits for each pixel and compression ", compression, ", which cannot be read"));
    b.stride = (b.width * b.bits + 31) / 32 * 4;
    const auto size = static_cast<int64_t>(bytes.size());
    if (b.first > size || b.stride * b.height > size - b.first) throw damaged("is damaged: it ends in its pixels");
    if (b.bits == 8) {
        uint64_t colours = little<uint32_t>(bytes, 46);
        if (colours == 0 || colours > 256) colours = 256;
        if (14 + uint64_t{header} + 4 * colours > bytes.size()) throw damaged("is damaged: it ends in its colours");
        b.palette = bytes.substr(14 + header, 4 * colours);
    }
    return b;
}

}  // namespace

Extent bmp_size(std::string_view where, std::string_view bytes) {
    const Bitmap b = read_header(where, bytes);
    return {b.height, b.width, 3, false};
}

Tensor decode_bmp(std::string_view where, std::string_view bytes) {
    const Bitmap b = read_header(where, bytes);
    const Tensor out = Tensor::empty(DType::u8, {b.height, b.width, 3});
    auto* to = out.data<uint8_t>();
    for (int64_t y = 0; y < b.height; ++y) {
        const auto* row =
            reinterpret_cast<const uint8_t*>(bytes.data()) + b.first + (b.from_top ? y : b.height - 1 - y) * b.stride;
        for (int64_t x = 0; x < b.width; ++x, to += 3) {
            const uint8_t* pixel = row + x * b.bits / 8;
            if (b.bits == 8) {
                if (4 * size_t{*pixel} >= b.palette.size())
                    throw file_error(where, "the BMP is damaged: there is no such colour");
                pixel = reinterpret_cast<const uint8_t*>(b.palette.data()) + 4 * *pixel;
            }
            to[0] = pixel[2];
            to[1] = pixel[1];
            to[2] = pixel[0];
        }
    }
    return out;
}

namespace {

enum class Format { jpeg, png, bmp };

Format format_of(std::string_view where, std::string_view bytes) {
    if (is_jpeg(bytes)) return Format::jpeg;
    if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return Format::png;
    if (bytes.starts_with("BM")) return Format::bmp;
    std::string_view other = "";
    if (bytes.starts_with("GIF8")) other = ", but a GIF";
    if (bytes.starts_with("RIFF")) other = ", but a WebP or a sound";
    if (bytes.starts_with("II*") || bytes.starts_with("MM")) other = ", but a TIFF";
    throw file_error(where, str("the ", bytes.size(), " bytes are no JPEG, PNG or BMP", other));
}

}  // namespace

Tensor decode(std::string_view where, std::string_view bytes, ReadMode mode) {
    switch (format_of(where, bytes)) {
        case Format::jpeg:
            return decode_jpeg(where, bytes, mode);
        case Format::png:
            return decode_png(where, bytes, mode);
        case Format::bmp:
            break;
    }
    const Tensor image = decode_bmp(where, bytes);
    return mode == ReadMode::grey ? grey(image, where).reshaped({image.dim(0), image.dim(1)}) : image;
}

Extent picture_size(std::string_view where, std::string_view bytes) {
    switch (format_of(where, bytes)) {
        case Format::jpeg:
            return jpeg_size(where, bytes);
        case Format::png:
            return png_size(where, bytes);
        case Format::bmp:
            break;
    }
    return bmp_size(where, bytes);
}

}  // namespace lunaria::vision
