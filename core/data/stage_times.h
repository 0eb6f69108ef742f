// How long the stages of a pipeline take.
#pragma once

#include <atomic>
#include <map>

#include "core/data/node.h"

namespace lunaria::data {

// One stage. Times are in nanoseconds, those of the stages below are in them.
struct StageTime {
    std::atomic<int64_t> drawing{0}, making{0}, rows{0};
};

class StageTimes {
  public:
    explicit StageTimes(const Node& root) { add(root); }
    StageTime& of(const Node& node) { return stages_.at(&node); }

    // Of the queue between the threads and the one who asks for rows.
    std::atomic<int64_t> waits{0}, asked{0}, waiting{0}, full{0}, places{0};

  private:
    void add(const Node& node) {
        stages_[&node];
        for (const auto& child : node.children()) add(*child);
    }
    std::map<const Node*, StageTime> stages_;
};

// The same cursor, but it adds its times to `time`.
std::unique_ptr<Cursor> timed(std::unique_ptr<Cursor> cursor, StageTime& time);

}  // namespace lunaria::data
