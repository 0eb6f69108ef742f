#include "core/parallel/piece.h"

#include <algorithm>
#include <array>
#include <string>

namespace lunaria::parallel {
namespace {

constexpr std::array<const char*, 7> kNames = {"none", "sum", "max", "min", "prod", "all", "any"};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Interval& interval) {
    return out << interval.begin << ':' << interval.end;
}

std::ostream& operator<<(std::ostream& out, const Region& region) {
    out << '[';
    for (size_t i = 0; i < region.size(); ++i) out << (i ? ", " : "") << region[i];
    return out << ']';
}

Interval piece_of(int64_t size, int64_t part, int64_t parts) {
    const int64_t chunk = (size + parts - 1) / parts;
    return {std::min(part * chunk, size), std::min((part + 1) * chunk, size)};
}

Interval intersection(const Interval& a, const Interval& b) {
    const int64_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
}

Region intersection(const Region& a, const Region& b) {
    Region both(a.size());
    for (size_t i = 0; i < a.size(); ++i) both[i] = intersection(a[i], b[i]);
    return both;
}

Region whole(const Shape& shape) {
    Region all;
    all.reserve(static_cast<size_t>(shape.rank()));
    for (int64_t size : shape) all.push_back({0, size});
    return all;
}

Shape shape_of(const Region& region) {
    Shape shape;
    for (const Interval& i : region) shape.push_back(i.size());
    return shape;
}

int64_t elements(const Region& region) {
    int64_t n = 1;
    for (const Interval& i : region) n *= i.size();
    return n;
}

const char* name_of(Merge m) { return kNames[static_cast<size_t>(m)]; }

std::optional<Merge> parse_merge(std::string_view name) {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<Merge>(found - kNames.begin());
}

}  // namespace lunaria::parallel
