// The scalars of a tag in a window of steps or times: all points where they are few, otherwise summaries of
// neighbouring points, whose minimum and maximum are those of all points in them.
#pragma once

#include "core/insight/store/run.h"

namespace lunaria::insight {

struct Window {
    Axis axis = Axis::step;
    double from = -std::numeric_limits<double>::infinity(), to = std::numeric_limits<double>::infinity();
    bool holds(const Point& p) const { return p.at(axis) >= from && p.at(axis) <= to; }
};

struct Curve {
    uint64_t count = 0;  // of points in the window
    bool is_exact = false;
    std::vector<Point> points;       // where it is exact, by the axis
    std::vector<Stretch> stretches;  // otherwise
};

// At most `points` points or summaries.
Curve curve_of(const Run& run, std::string_view tag, const Window& window, uint64_t points);

// Calls f(points) with all points in the window, some at a time.
void for_points(const Run& run, std::string_view tag, const Window& window,
                const std::function<void(const std::vector<Point>&)>& f);

}  // namespace lunaria::insight
