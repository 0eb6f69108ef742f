// Times of the stages of a pipeline.
#pragma once

#include <atomic>
#include <map>

#include "core/data/node.h"

namespace lunaria::data {

// The times of one stage in nanoseconds, including the stages below.
struct StageTime {
    std::atomic<int64_t> drawing{0}, making{0}, rows{0};
};

class StageTimes {
  public:
    explicit StageTimes(const Node& root) { add(root); }
    StageTime& of(const Node& node) { return stages_.at(&node); }

    // Counters of the queue between the threads and the consumer of rows.
    std::atomic<int64_t> waits{0}, asked{0}, waiting{0}, full{0}, places{0};

  private:
    void add(const Node& node) {
        stages_[&node];
        for (const auto& child : node.children()) add(*child);
    }
    std::map<const Node*, StageTime> stages_;
};

// A cursor over the same rows that adds its times to `time`.
std::unique_ptr<Cursor> timed(std::unique_ptr<Cursor> cursor, StageTime& time);

}  // namespace lunaria::data
