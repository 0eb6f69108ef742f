#include "interpreter/display/sixel.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace lunaria {

namespace {

constexpr int kLevels = 6, kColors = kLevels * kLevels * kLevels, kBand = 6;

int level(unsigned char value) { return (value * (kLevels - 1) + 127) / 255; }

// The colour's number, or -1 where there is none.
int color_at(const Picture& picture, int64_t x, int64_t y) {
    const auto* p = reinterpret_cast<const unsigned char*>(picture.pixels.data()) + (y * picture.width + x) * 4;
    return p[3] < 128 ? -1 : (level(p[0]) * kLevels + level(p[1])) * kLevels + level(p[2]);
}

void append_run(std::string& text, char sixel, int64_t count) {
    if (count > 3)
        text += str('!', count, sixel);
    else
        text.append(static_cast<size_t>(count), sixel);
}

}  // namespace

std::string sixel_text(const Picture& picture) {
    std::string text = str("\033P0;1;0q\"1;1;", picture.width, ';', picture.height);
    for (int c = 0; c < kColors; ++c) {
        const auto percent = [](int n) { return n * 100 / (kLevels - 1); };
        text += str('#', c, ";2;", percent(c / kLevels / kLevels), ';', percent(c / kLevels % kLevels), ';',
                    percent(c % kLevels));
    }
    for (int64_t top = 0; top < picture.height; top += kBand) {
        // For each colour of the band, the pixels of every column of six that have it.
        std::vector<std::vector<unsigned char>> columns(kColors);
        for (int64_t y = top; y < std::min(top + kBand, picture.height); ++y)
            for (int64_t x = 0; x < picture.width; ++x) {
                const int color = color_at(picture, x, y);
                if (color < 0) continue;
                auto& bits = columns[static_cast<size_t>(color)];
                if (bits.empty()) bits.resize(static_cast<size_t>(picture.width));
                bits[static_cast<size_t>(x)] |= static_cast<unsigned char>(1 << (y - top));
            }
        for (size_t color = 0; color < columns.size(); ++color) {
            const auto& bits = columns[color];
            if (bits.empty()) continue;
            text += str('#', color);
            for (size_t x = 0; x < bits.size();) {
                size_t end = x;
                while (end < bits.size() && bits[end] == bits[x]) ++end;
                append_run(text, static_cast<char>('?' + bits[x]), static_cast<int64_t>(end - x));
                x = end;
            }
            text += '$';
        }
        text += '-';
    }
    return text + "\033\\";
}

}  // namespace lunaria
