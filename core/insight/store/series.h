// The scalars of a tag in one file: a summary of every 64 points, and where each point's record lies in the file. The
// points themselves stay there and are read when a curve needs them, so that a million points take 4 MB.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lunaria::insight {

enum class Axis { step, wall };

struct Point {
    int64_t step = 0;
    double wall = 0, value = 0;
    double at(Axis axis) const { return axis == Axis::step ? static_cast<double>(step) : wall; }
};

// Some points in the order of the file. NaN counts in `nan` only.
struct Stretch {
    int64_t first_step = 0, low_step = 0, high_step = 0;
    double first_wall = 0, low_wall = 0, high_wall = 0;
    double first = 0, last = 0, sum = 0;
    double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
    uint64_t count = 0, nan = 0;

    void add(const Point& p);
    void add(const Stretch& later);
    double low(Axis axis) const { return axis == Axis::step ? static_cast<double>(low_step) : low_wall; }
    double high(Axis axis) const { return axis == Axis::step ? static_cast<double>(high_step) : high_wall; }
};

class Series {
  public:
    static constexpr uint64_t kPoints = 64;  // of a stretch; more only where a record has several points

    // `offset`: of the record in the file. Offsets never fall; equal ones are points of the same record.
    void add(uint64_t offset, const Point& point);

    const std::vector<Stretch>& stretches() const { return stretches_; }
    uint64_t size() const { return size_; }
    // The offsets of the records of a stretch's points.
    std::vector<uint64_t> offsets(size_t stretch) const;

  private:
    struct Place {
        uint64_t offset = 0;  // of the first record
        uint64_t deltas = 0;  // where the distances to the following ones begin
    };
    std::vector<Stretch> stretches_;
    std::vector<Place> places_;
    std::string deltas_;  // distances between records, 7 bits a byte
    uint64_t size_ = 0, last_offset_ = 0;
};

}  // namespace lunaria::insight
