// Pixels as the bytes of a PNG file, 8 bits for each channel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lunaria {

// `pixels` holds the rows from the top, width * height * channels bytes. Channels: 1 grey, 2 grey and alpha, 3 red,
// green and blue, 4 with alpha. Throws value_error when the sizes do not fit each other.
std::string png_bytes(std::string_view pixels, int64_t width, int64_t height, int64_t channels);

}  // namespace lunaria
