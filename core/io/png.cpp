#include "core/io/png.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace lunaria {

namespace {

constexpr int64_t kLongestSide = 1 << 20;
constexpr unsigned char kColorTypes[] = {0, 4, 2, 6};
enum Filter : unsigned char { filter_none, filter_sub, filter_up };

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

// A row as differences from the pixel before it or from the row above it. The sum of their sizes tells well enough
// which of them deflate makes least of.
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

}  // namespace

std::string png_bytes(std::string_view pixels, int64_t width, int64_t height, int64_t channels) {
    if (channels < 1 || channels > 4) throw value_error("png", str("an image has 1 to 4 channels, got ", channels));
    if (width < 1 || height < 1 || width > kLongestSide || height > kLongestSide)
        throw value_error("png", str("sides must be between 1 and ", kLongestSide, ", got ", width, " and ", height));
    if (pixels.size() != static_cast<uint64_t>(width) * static_cast<uint64_t>(height * channels))
        throw value_error("png", str("an image of ", width, " by ", height, " pixels with ", channels, " channels has ",
                                     width * height * channels, " bytes, got ", pixels.size()));
    const size_t row_size = static_cast<size_t>(width * channels);
    const std::string rows = filtered(pixels, row_size, static_cast<size_t>(channels));
    uLongf size = compressBound(static_cast<uLong>(rows.size()));
    std::string body(size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(body.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                  static_cast<uLong>(rows.size()), 6) != Z_OK)
        throw memory_error("png", "zlib has no memory for the image");
    body.resize(size);
    if (body.size() > UINT32_MAX / 2) throw value_error("png", "the image is too large for a PNG file");

    std::string header;
    append_u32(header, static_cast<uint32_t>(width));
    append_u32(header, static_cast<uint32_t>(height));
    header += {8, static_cast<char>(kColorTypes[channels - 1]), 0, 0, 0};
    std::string file = "\x89PNG\r\n\x1a\n";
    append_chunk(file, "IHDR", header);
    append_chunk(file, "IDAT", body);
    append_chunk(file, "IEND", "");
    return file;
}

}  // namespace lunaria
