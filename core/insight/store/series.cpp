#include "core/insight/store/series.h"

#include <algorithm>
#include <cmath>

namespace lunaria::insight {

void Stretch::add(const Point& p) {
    if (count == 0) {
        first_step = low_step = high_step = p.step;
        first_wall = low_wall = high_wall = p.wall;
        first = p.value;
    }
    low_step = std::min(low_step, p.step);
    high_step = std::max(high_step, p.step);
    low_wall = std::min(low_wall, p.wall);
    high_wall = std::max(high_wall, p.wall);
    last = p.value;
    ++count;
    if (std::isnan(p.value)) {
        ++nan;
        return;
    }
    sum += p.value;
    min = std::min(min, p.value);
    max = std::max(max, p.value);
}

void Stretch::add(const Stretch& later) {
    if (later.count == 0) return;
    if (count == 0) {
        *this = later;
        return;
    }
    low_step = std::min(low_step, later.low_step);
    high_step = std::max(high_step, later.high_step);
    low_wall = std::min(low_wall, later.low_wall);
    high_wall = std::max(high_wall, later.high_wall);
    last = later.last;
    count += later.count;
    nan += later.nan;
    sum += later.sum;
    min = std::min(min, later.min);
    max = std::max(max, later.max);
}

void Series::add(uint64_t offset, const Point& point) {
    // Points of one record stay together, since they are read together.
    if (size_ == 0 || (stretches_.back().count >= kPoints && offset != last_offset_)) {
        stretches_.emplace_back();
        places_.push_back({offset, deltas_.size()});
    } else {
        uint64_t distance = offset - last_offset_;
        for (; distance >= 128; distance >>= 7) deltas_ += static_cast<char>((distance & 127) | 128);
        deltas_ += static_cast<char>(distance);
    }
    stretches_.back().add(point);
    last_offset_ = offset;
    ++size_;
}

std::vector<uint64_t> Series::offsets(size_t stretch) const {
    std::vector<uint64_t> list = {places_[stretch].offset};
    const auto* at = reinterpret_cast<const unsigned char*>(deltas_.data()) + places_[stretch].deltas;
    while (list.size() < stretches_[stretch].count) {
        uint64_t distance = 0;
        int shift = 0;
        for (; *at >= 128; ++at, shift += 7) distance |= static_cast<uint64_t>(*at & 127) << shift;
        distance |= static_cast<uint64_t>(*at++) << shift;
        list.push_back(list.back() + distance);
    }
    return list;
}

}  // namespace lunaria::insight
