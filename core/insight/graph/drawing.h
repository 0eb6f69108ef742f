// Views as files: an SVG picture, and the bytes that the page draws from.
#pragma once

#include <span>

#include "core/insight/graph/scene.h"

namespace lunaria::insight {

// Numbers of nodes, such as times: the sums of groups too.
struct Overlay {
    std::vector<double> nodes, groups;  // NaN: there is none
    double most = 0;                    // of nodes
};
Overlay overlay_of(const GraphModel& model, const Tree& tree,
                   const std::vector<std::pair<std::string, double>>& numbers);

struct DrawOptions {
    bool dark = false;
    const Overlay* overlay = nullptr;
    std::span<const uint8_t> states = {};  // of nodes: 0 as ever, 1 removed, 2 added, 3 changed
};
std::string svg_of(const Scene& scene, const View& view, const DrawOptions& options = {});

// Little-endian, for typed arrays: "LGV1", how many items, edges, floats of points, and bytes of text (u32 each), width
// and height (f32), 0; of items x, y, width, height (f32), id, parent, key of the equal part (i32); of edges from, to,
// count (i32), and start in points (u32, one more); points (f32); starts of label and note of each item in the text
// (u32, one more); of items kind and marks, of edges way + 4 for control edges (u8); the text.
std::string bytes_of(const Scene& scene, const View& view);

}  // namespace lunaria::insight
