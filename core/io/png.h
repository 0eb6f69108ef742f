// Pixels as the bytes of a PNG file, 8 bits for each channel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lunaria {

// `pixels` holds the rows from the top, width * height * channels bytes. Channels: 1 grey, 2 grey and alpha, 3 red,
// green and blue, 4 with alpha. Throws value_error when the sizes do not fit each other.
std::string png_bytes(std::string_view pixels, int64_t width, int64_t height, int64_t channels);

// A drawing of few colours as a small file: `pixels` are red, green, blue, alpha. Up to 256 colours become a palette; a
// drawing with more, from the soft edges of letters and lines, is rounded to 32 shades of each channel if it then has
// at most 256. Otherwise, or where something is transparent, as png_bytes.
std::string drawing_png_bytes(std::string_view pixels, int64_t width, int64_t height);

}  // namespace lunaria
