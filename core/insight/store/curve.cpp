#include "core/insight/store/curve.h"

#include <algorithm>

namespace lunaria::insight {

namespace {

// A stretch of a file that has points in the window.
struct Part {
    const EventFile* file;
    const Series* series;
    size_t stretch;
    bool is_whole;  // all of its points are in the window
};

std::vector<Part> parts_of(const Run& run, std::string_view tag, const Window& window) {
    std::vector<Part> parts;
    for (const auto& [file, series] : run.scalars(tag))
        for (size_t i = 0; i < series->stretches().size(); ++i) {
            const Stretch& s = series->stretches()[i];
            if (s.high(window.axis) < window.from || s.low(window.axis) > window.to) continue;
            const bool whole = s.low(window.axis) >= window.from && s.high(window.axis) <= window.to;
            parts.push_back({file, series, i, whole});
        }
    return parts;
}

// Reads points of parts one after the other; a file stays open while its parts follow each other.
class PartReader {
  public:
    PartReader(std::string_view tag, const Window& window) : tag_(tag), window_(window) {}
    // The points of a part that are in the window.
    const std::vector<Point>& read(const Part& part) {
        if (part.file != file_) {
            source_.emplace(part.file->place());
            file_ = part.file;
        }
        points_.clear();
        read_points(*source_, tag_, *part.series, part.stretch, points_);
        std::erase_if(points_, [&](const Point& p) { return !window_.holds(p); });
        return points_;
    }

  private:
    std::string_view tag_;
    const Window& window_;
    const EventFile* file_ = nullptr;
    std::optional<RecordSource> source_;
    std::vector<Point> points_;
};

}  // namespace

Curve curve_of(const Run& run, std::string_view tag, const Window& window, uint64_t points) {
    Curve curve;
    PartReader reader(tag, window);
    const std::vector<Part> parts = parts_of(run, tag, window);
    uint64_t most = 0;
    for (const Part& part : parts) most += part.series->stretches()[part.stretch].count;
    // Parts at the ends of the window hold up to 64 points that are not in it.
    const bool may_be_exact = most <= points + 4 * Series::kPoints;
    std::vector<Point> all;
    for (const Part& part : parts) {
        if (part.is_whole) curve.stretches.push_back(part.series->stretches()[part.stretch]);
        if (part.is_whole && !may_be_exact) continue;
        const std::vector<Point>& in_window = reader.read(part);
        if (may_be_exact) all.insert(all.end(), in_window.begin(), in_window.end());
        if (part.is_whole) continue;
        Stretch cut;
        for (const Point& p : in_window) cut.add(p);
        if (cut.count > 0) curve.stretches.push_back(cut);
    }
    for (const Stretch& s : curve.stretches) curve.count += s.count;
    curve.is_exact = may_be_exact && curve.count <= points;
    const Axis axis = window.axis;
    if (curve.is_exact) {
        curve.stretches.clear();
        curve.points = std::move(all);
        std::ranges::stable_sort(curve.points, {}, [&](const Point& p) { return p.at(axis); });
        return curve;
    }
    std::ranges::stable_sort(curve.stretches, {}, [&](const Stretch& s) { return s.low(axis); });
    // Neighbours are put together until there are few enough.
    const size_t together = (curve.stretches.size() + points - 1) / std::max<uint64_t>(points, 1);
    if (together > 1) {
        size_t count = 0;
        for (size_t i = 0; i < curve.stretches.size(); ++i) {
            if (i % together == 0)
                curve.stretches[count++] = curve.stretches[i];
            else
                curve.stretches[count - 1].add(curve.stretches[i]);
        }
        curve.stretches.resize(count);
    }
    return curve;
}

void for_points(const Run& run, std::string_view tag, const Window& window,
                const std::function<void(const std::vector<Point>&)>& f) {
    PartReader reader(tag, window);
    for (const Part& part : parts_of(run, tag, window)) f(reader.read(part));
}

}  // namespace lunaria::insight
