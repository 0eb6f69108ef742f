#include "core/io/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

#include "core/base/error.h"

namespace lunaria {
namespace {

uint32_t u32(const std::string& text, size_t at) {
    uint32_t n = 0;
    for (size_t i = 0; i < 4; ++i) n = n << 8 | static_cast<unsigned char>(text[at + i]);
    return n;
}

// Reads what png_bytes writes: checks every chunk and undoes the filters.
std::string decoded(const std::string& file, size_t width, size_t height, size_t channels) {
    EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
    std::string packed;
    size_t at = 8;
    while (at < file.size()) {
        const size_t size = u32(file, at);
        const std::string body = file.substr(at + 4, size + 4);
        EXPECT_EQ(u32(file, at + 8 + size),
                  crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
        if (body.starts_with("IHDR")) {
            EXPECT_EQ(u32(body, 4), width);
            EXPECT_EQ(u32(body, 8), height);
        }
        if (body.starts_with("IDAT")) packed += body.substr(4);
        at += size + 12;
    }
    const size_t row = width * channels;
    std::string rows(height * (row + 1), '\0');
    uLongf length = rows.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &length, reinterpret_cast<const Bytef*>(packed.data()),
                         packed.size()),
              Z_OK);
    EXPECT_EQ(length, rows.size());
    std::string pixels(height * row, '\0');
    for (size_t y = 0; y < height; ++y) {
        const char filter = rows[y * (row + 1)];
        for (size_t i = 0; i < row; ++i) {
            char before = 0;
            if (filter == 1 && i >= channels) before = pixels[y * row + i - channels];
            if (filter == 2 && y > 0) before = pixels[(y - 1) * row + i];
            pixels[y * row + i] = static_cast<char>(rows[y * (row + 1) + 1 + i] + before);
        }
    }
    return pixels;
}

TEST(Png, holds_the_pixels_that_it_was_given) {
    for (size_t channels = 1; channels <= 4; ++channels)
        for (auto [width, height] : {std::pair<size_t, size_t>{1, 1}, {5, 3}, {300, 40}}) {
            std::string pixels(width * height * channels, '\0');
            for (size_t i = 0; i < pixels.size(); ++i)
                pixels[i] = static_cast<char>(i * i / 7 + i / (width * channels));
            const std::string file = png_bytes(pixels, static_cast<int64_t>(width), static_cast<int64_t>(height),
                                               static_cast<int64_t>(channels));
            EXPECT_EQ(decoded(file, width, height, channels), pixels);
        }
}

TEST(Png, drawings_of_few_colours_have_a_palette) {
    std::string pixels;
    for (int i = 0; i < 100; ++i)
        pixels += i % 3 ? std::string("\xff\xff\xff\xff", 4) : std::string("\x01\x02\x03\xff", 4);
    const std::string file = drawing_png_bytes(pixels, 10, 10);
    EXPECT_EQ(file[25], 3);  // the colour type
    const size_t palette = file.find("PLTE");
    ASSERT_NE(palette, std::string::npos);
    EXPECT_EQ(file.substr(palette + 4, 6), "\x01\x02\x03\xff\xff\xff");
    const std::string numbers = decoded(file, 10, 10, 1);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(numbers[static_cast<size_t>(i)], i % 3 ? 1 : 0);
    // Transparent ones and those of many colours keep them all.
    pixels[3] = 0;
    EXPECT_EQ(drawing_png_bytes(pixels, 10, 10)[25], 6);
    std::string many;
    for (int i = 0; i < 4096; ++i)
        many += {static_cast<char>(i * 7), static_cast<char>(i / 16), static_cast<char>(i % 251), '\xff'};
    EXPECT_EQ(drawing_png_bytes(many, 64, 64)[25], 2);
    EXPECT_EQ(decoded(drawing_png_bytes(many, 64, 64), 64, 64, 3).size(), 64u * 64 * 3);
    EXPECT_THROW(drawing_png_bytes("abc", 1, 1), Error);
}

TEST(Png, smooth_pictures_become_small) {
    std::string pixels(200 * 200, '\0');
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i % 200 + i / 200);
    EXPECT_LT(png_bytes(pixels, 200, 200, 1).size(), 2000u);
}

TEST(Png, sizes_that_do_not_fit_are_refused) {
    EXPECT_THROW(png_bytes("abc", 2, 2, 1), Error);
    EXPECT_THROW(png_bytes("", 0, 1, 1), Error);
    EXPECT_THROW(png_bytes("abcde", 1, 1, 5), Error);
    EXPECT_THROW(png_bytes("a", int64_t{1} << 40, 1, 1), Error);
}

}  // namespace
}  // namespace lunaria
