// Schedules of a pipeline: which stage works on which micro-batch when. A schedule is a table, a list of pieces of work
// for each stage; what runs it, times it or checks it knows nothing of how it was made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::parallel {

enum class Phase : uint8_t {
    forward,
    backward,         // both of the following at once
    input_gradient,   // what the stage before waits for
    weight_gradient,  // what nothing waits for but the optimizer
};
const char* name_of(Phase phase);

struct Slot {
    Phase phase = Phase::forward;
    int chunk = 0;  // of the stage's parts of the network
    int micro_batch = 0;
    friend bool operator==(const Slot&, const Slot&) = default;
};

enum class ScheduleKind : uint8_t {
    gpipe,           // all forward, then all backward
    one_f_one_b,     // at most as many micro-batches live as stages follow
    interleaved,     // 1F1B with several chunks for each stage
    zero_bubble_h1,  // 1F1B's memory, a third of its idle time
    zero_bubble_h2,  // twice its memory, no idle time where all phases take equally long
    zero_bubble_v,   // two chunks for each stage in the form of a V, 1F1B's memory, no idle time either
};
const char* name_of(ScheduleKind kind);
// By its name, or by MindSpore's ("1f1b", "zero_bubble_v").
std::optional<ScheduleKind> schedule_of(std::string_view name);

struct Schedule {
    ScheduleKind kind = ScheduleKind::gpipe;
    int stages = 1, micro_batches = 1, chunks = 1;
    std::vector<std::vector<Slot>> table;  // of each stage, in order

    // The network's parts are numbered in the order in which data meets them: 0 .. parts() - 1.
    int parts() const { return stages * chunks; }
    int part(int stage, int chunk) const;
    int stage_of(int part) const;
    int chunk_of(int part) const;
};

// Throws Error where there is no such schedule: interleaved ones need micro-batches in multiples of the stages, the V
// has two chunks, those that are not interleaved have one.
Schedule make_schedule(ScheduleKind kind, int stages, int micro_batches, int chunks = 1);

// What is wrong with a schedule, or nothing: each piece is there once, backward phases are whole or in halves, and the
// stages, each in its own order, come to an end without waiting for one another in a circle.
std::string problem_of(const Schedule& schedule);

// Seconds, for each part of the network.
struct PartTimes {
    double forward = 0, input_gradient = 0, weight_gradient = 0;
    double send = 0;  // of a result to the next part, and of its gradient back, where that is another stage
};

struct TimedSlot {
    Slot piece;
    double start = 0, stop = 0;
};

struct PipelineTimes {
    double seconds = 0;  // from the first start to the last end
    double bubble = 0;   // the largest idle share of a stage's time from its own first start to its last end
    double excess = 0;   // the idle seconds of that stage
    std::vector<std::vector<TimedSlot>> timeline;  // of each stage
    std::vector<int> peak_live;  // of each stage: chunks of micro-batches between forward and backward
    std::vector<int> peak_kept;  // of each stage: the same until their weight gradients are made
};

// One event after the other. `parts`: one entry for each part, or one for all. Throws Error for a schedule with a
// problem.
PipelineTimes simulate(const Schedule& schedule, const std::vector<PartTimes>& parts);

// A picture in text: a row for each stage, a column for each `unit` of time, F, B, b (input gradient) and w.
std::string picture(const PipelineTimes& times, double unit);

}  // namespace lunaria::parallel
