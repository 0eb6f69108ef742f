// SVG drawn as pixels by librsvg, which is opened when the first picture is asked for: it takes some 15 MB and nobody
// else needs it.
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

// The drawing at `scale` times the size that it states. Throws value_error for what is no SVG or has no size,
// state_error without librsvg.
Picture draw_svg(std::string_view svg, double scale);

}  // namespace lunaria
