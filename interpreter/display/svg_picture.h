// SVG drawn as pixels by librsvg, which is opened for the first picture: it takes some 15 MB that other programs do not
// need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lunaria {

struct Picture {
    int64_t width = 0, height = 0;
    std::string pixels;  // red, green, blue, alpha; the top row first
};

// Whether librsvg is installed.
bool can_draw_svg();

// The drawing at `scale` times the size that it states. Throws value_error for text that is not SVG or has no size,
// state_error without librsvg.
Picture draw_svg(std::string_view svg, double scale);

}  // namespace lunaria
