#include "core/io/png.h"

#include <zlib.h>

#include <cstdlib>
#include <optional>
#include <unordered_map>

#include "core/base/error.h"

namespace lunaria {

namespace {

constexpr int64_t kLongestSide = 1 << 20;
constexpr unsigned char kColorTypes[] = {0, 4, 2, 6}, kPalette = 3;
enum Filter : unsigned char { filter_none, filter_sub, filter_up };

void check_size(std::string_view pixels, int64_t width, int64_t height, int64_t channels) {
    if (channels < 1 || channels > 4) throw value_error("png", str("an image has 1 to 4 channels, got ", channels));
    if (width < 1 || height < 1 || width > kLongestSide || height > kLongestSide)
        throw value_error("png", str("sides must be between 1 and ", kLongestSide, ", got ", width, " and ", height));
    if (pixels.size() != static_cast<uint64_t>(width) * static_cast<uint64_t>(height * channels))
        throw value_error("png", str("an image of ", width, " by ", height, " pixels with ", channels, " channels has ",
                                     width * height * channels, " bytes, got ", pixels.size()));
}

void append_u32(std::string& to, uint32_t n) {
    for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(n >> shift);
}

void append_chunk(std::string& to, std::string_view type, std::string_view body) {
    append_u32(to, static_cast<uint32_t>(body.size()));
    const size_t start = to.size();
    to += type;
    to += body;
    append_u32(to, static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(to.data()) + start,
                                               static_cast<uInt>(to.size() - start))));
}

// A row as differences from the pixel before it or from the row above it. The sum of absolute differences is PNG's
// usual estimate of how small deflate will make a row.
uint64_t filter_row(Filter filter, std::string_view row, std::string_view above, size_t channels, std::string& out) {
    out.assign(1, static_cast<char>(filter));
    uint64_t cost = 0;
    for (size_t i = 0; i < row.size(); ++i) {
        const char before = filter == filter_sub  ? (i >= channels ? row[i - channels] : '\0')
                            : filter == filter_up ? (above.empty() ? '\0' : above[i])
                                                  : '\0';
        const char difference = static_cast<char>(row[i] - before);
        cost += static_cast<uint64_t>(std::abs(static_cast<signed char>(difference)));
        out += difference;
    }
    return cost;
}

std::string filtered(std::string_view pixels, size_t row_size, size_t channels) {
    std::string result, candidate, best;
    result.reserve(pixels.size() + pixels.size() / row_size);
    std::string_view above;
    for (size_t at = 0; at < pixels.size(); at += row_size) {
        const std::string_view row = pixels.substr(at, row_size);
        uint64_t least = filter_row(filter_none, row, above, channels, best);
        for (Filter filter : {filter_sub, filter_up}) {
            const uint64_t cost = filter_row(filter, row, above, channels, candidate);
            if (cost >= least) continue;
            least = cost;
            best.swap(candidate);
        }
        result += best;
        above = row;
    }
    return result;
}

std::string compressed(const std::string& rows) {
    uLongf size = compressBound(static_cast<uLong>(rows.size()));
    std::string body(size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(body.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                  static_cast<uLong>(rows.size()), 6) != Z_OK)
        throw memory_error("png", "zlib has no memory for the image");
    body.resize(size);
    if (body.size() > UINT32_MAX / 2) throw value_error("png", "the image is too large for a PNG file");
    return body;
}

std::string file_of(int64_t width, int64_t height, unsigned char color_type, const std::string& palette,
                    const std::string& rows) {
    const std::string body = compressed(rows);
    std::string header;
    append_u32(header, static_cast<uint32_t>(width));
    append_u32(header, static_cast<uint32_t>(height));
    header += {8, static_cast<char>(color_type), 0, 0, 0};
    std::string file = "\x89PNG\r\n\x1a\n";
    append_chunk(file, "IHDR", header);
    if (!palette.empty()) append_chunk(file, "PLTE", palette);
    append_chunk(file, "IDAT", body);
    append_chunk(file, "IEND", "");
    return file;
}

// The index of each pixel's colour in the palette; nothing when there are more than 256 colours.
std::optional<std::string> indexed(std::string_view pixels, int keep_bits, std::string& palette) {
    std::unordered_map<uint32_t, unsigned char> known;
    std::string numbers;
    numbers.reserve(pixels.size() / 4);
    const int lost = 8 - keep_bits;
    palette.clear();
    for (size_t i = 0; i < pixels.size(); i += 4) {
        uint32_t color = 0;
        for (size_t c = 0; c < 3; ++c) {
            const unsigned value = static_cast<unsigned char>(pixels[i + c]) >> lost;
            // White stays white.
            color = color << 8 | value * 255 / (255u >> lost);
        }
        const auto [found, is_new] = known.try_emplace(color, static_cast<unsigned char>(known.size()));
        if (is_new) {
            if (known.size() > 256) return std::nullopt;
            for (int shift = 16; shift >= 0; shift -= 8) palette += static_cast<char>(color >> shift);
        }
        numbers += static_cast<char>(found->second);
    }
    return numbers;
}

}  // namespace

std::string png_bytes(std::string_view pixels, int64_t width, int64_t height, int64_t channels) {
    check_size(pixels, width, height, channels);
    return file_of(width, height, kColorTypes[channels - 1], "",
                   filtered(pixels, static_cast<size_t>(width * channels), static_cast<size_t>(channels)));
}

std::string drawing_png_bytes(std::string_view pixels, int64_t width, int64_t height) {
    check_size(pixels, width, height, 4);
    for (size_t i = 3; i < pixels.size(); i += 4)
        if (pixels[i] != '\xff') return png_bytes(pixels, width, height, 4);
    std::string palette;
    for (const int bits : {8, 5, 4})
        if (const auto numbers = indexed(pixels, bits, palette)) {
            // Neighbours in a palette are not neighbours in colour, so that no filter helps.
            std::string rows;
            for (int64_t y = 0; y < height; ++y)
                rows += '\0' + numbers->substr(static_cast<size_t>(y * width), static_cast<size_t>(width));
            return file_of(width, height, kPalette, palette, rows);
        }
    std::string opaque;
    for (size_t i = 0; i < pixels.size(); i += 4) opaque += pixels.substr(i, 3);
    return png_bytes(opaque, width, height, 3);
}

}  // namespace lunaria
