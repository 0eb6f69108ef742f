#include "kernel/logo.h"

#include <array>

#include "core/io/png.h"

namespace lunaria::jupyter {

namespace {

// In units of the square's side: a disc, and the disc that is cut out of it.
constexpr double kCentre = 0.5, kRadius = 0.42, kCutX = 0.64, kCutY = 0.40, kCutRadius = 0.34;
constexpr int kSamples = 4;  // per pixel and axis
constexpr std::array<unsigned char, 3> kColor = {0x3b, 0x5b, 0xa5};

bool in_disc(double x, double y, double cx, double cy, double r) {
    return (x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r;
}

bool in_crescent(double x, double y) {
    return in_disc(x, y, kCentre, kCentre, kRadius) && !in_disc(x, y, kCutX, kCutY, kCutRadius);
}

}  // namespace

std::string logo_svg() {
    // The same two circles; the second one masks the first.
    return R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">
  <mask id="cut"><rect width="100" height="100" fill="white"/><circle cx="64" cy="40" r="34" fill="black"/></mask>
  <circle cx="50" cy="50" r="42" fill="#3b5ba5" mask="url(#cut)"/>
</svg>
)svg";
}

std::string logo_png(int size) {
    std::string pixels;
    for (int row = 0; row < size; ++row)
        for (int column = 0; column < size; ++column) {
            int inside = 0;
            for (int i = 0; i < kSamples * kSamples; ++i)
                inside += in_crescent((column + (i % kSamples + 0.5) / kSamples) / size,
                                      (row + (i / kSamples + 0.5) / kSamples) / size);
            for (const unsigned char part : kColor) pixels += static_cast<char>(part);
            pixels += static_cast<char>(inside * 255 / (kSamples * kSamples));
        }
    return png_bytes(pixels, size, size, 4);
}

}  // namespace lunaria::jupyter
