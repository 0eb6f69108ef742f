#include "core/data/vision/decode.h"

namespace lunaria::vision {

void check_size(std::string_view where, int64_t height, int64_t width) {
    if (height <= 0 || width <= 0) throw file_error(where, str("the picture has ", height, " x ", width, " pixels"));
    if (height > kMostDecoded / width)
        throw file_error(
            where, str("the picture has ", height, " x ", width, " pixels: too large, the limit is ", kMostDecoded));
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

static Tensor decode_as_stored(std::string_view where, std::string_view bytes, ReadMode mode) {
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

Tensor decode(std::string_view where, std::string_view bytes, ReadMode mode, bool turned) {
    const Tensor image = decode_as_stored(where, bytes, mode);
    return turned ? upright(image, orientation_of(bytes)) : image;
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
