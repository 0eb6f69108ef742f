// Random parts of images.
#pragma once

#include "core/data/vision/image.h"

namespace lunaria::vision {

struct Part {
    int64_t top, left, height, width;
};

// Share of the area from `least` to `most`, width / height from `narrow` to `broad`.
struct PartRule {
    double least, most, narrow, broad;
    int64_t attempts;
};

PartRule part_rule(const Arguments& a, size_t first);
Part random_part(RowDraws& draws, int64_t height, int64_t width, const PartRule& rule);

struct Target {
    int64_t height, width;
};
// The new size of an image of height x width; w = 0: h is the new length of the shorter side.
Target target_size(const Arguments& a, int64_t height, int64_t width, int64_t h, int64_t w);

// The part that RandomCrop takes of the image with its border, which this function adds to `image`.
Part random_crop(const Arguments& a, Tensor& image, RowDraws& draws, Padding& padding);

}  // namespace lunaria::vision
