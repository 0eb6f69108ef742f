#include "core/parallel/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

struct KindName {
    ScheduleKind kind;
    std::array<std::string_view, 2> names;
};
constexpr KindName kKinds[] = {
    {ScheduleKind::gpipe, {"gpipe", ""}},
    {ScheduleKind::one_f_one_b, {"1f1b", "one_f_one_b"}},
    {ScheduleKind::interleaved, {"interleaved", "interleaved_1f1b"}},
    {ScheduleKind::zero_bubble_h1, {"zero_bubble_h1", "zb_h1"}},
    {ScheduleKind::zero_bubble_h2, {"zero_bubble_h2", "zb_h2"}},
    {ScheduleKind::zero_bubble_v, {"zero_bubble_v", "zb_v"}},
};

bool has_halves(ScheduleKind kind) { return kind >= ScheduleKind::zero_bubble_h1; }

using Row = std::vector<Slot>;

Row gpipe(int micro_batches) {
    Row row;
    for (Phase phase : {Phase::forward, Phase::backward})
        for (int i = 0; i < micro_batches; ++i) row.push_back({phase, 0, i});
    return row;
}

// With `halves`, weight gradients come as many micro-batches after the input gradients as the stage has stages before
// it: then every stage keeps what they need for the same number of micro-batches, and the first ones make the last
// stages' idle time short.
Row one_f_one_b(int stages, int stage, int micro_batches, bool halves) {
    Row row;
    int forward = 0, late = 0;
    const auto add_forward = [&] {
        if (forward < micro_batches) row.push_back({Phase::forward, 0, forward++});
    };
    for (int i = 0; i < stages - stage; ++i) add_forward();
    for (int i = 0; i < micro_batches; ++i) {
        row.push_back({halves ? Phase::input_gradient : Phase::backward, 0, i});
        const bool is_late = i >= stage || forward == micro_batches;
        if (halves && is_late) row.push_back({Phase::weight_gradient, 0, late++});
        add_forward();
    }
    while (halves && late < micro_batches) row.push_back({Phase::weight_gradient, 0, late++});
    return row;
}

// Forward pieces go through the chunks in groups of as many micro-batches as there are stages, backward ones through
// the chunks from the last to the first.
Row interleaved(int stages, int stage, int micro_batches, int chunks) {
    Row row;
    const int count = micro_batches * chunks, round = stages * chunks;
    const auto add = [&](Phase phase, int i) {
        const int chunk = i % round / stages;
        const int micro_batch = i / round * stages + i % stages;
        row.push_back({phase, phase == Phase::forward ? chunk : chunks - 1 - chunk, micro_batch});
    };
    const int ahead = std::min(count, 2 * (stages - 1 - stage) + (chunks - 1) * stages);
    for (int i = 0; i < ahead; ++i) add(Phase::forward, i);
    for (int i = 0; i < count; ++i) {
        if (ahead + i < count) add(Phase::forward, ahead + i);
        add(Phase::backward, i);
    }
    return row;
}

// The table that list scheduling gives where every phase takes one unit of time: what is ready goes in the order input
// gradient, forward, weight gradient, with at most 2 (stages - stage) - 1 micro-batches live and 2 stages - 1 kept.
std::vector<Row> zero_bubble_h2(int stages, int micro_batches) {
    struct Stage {
        int forward = 0, input = 0, weight = 0;
    };
    std::vector<Row> table(static_cast<size_t>(stages));
    std::vector<Stage> now(table.size());
    const auto busy = [&](const Stage& s) { return s.weight < micro_batches; };
    while (std::ranges::any_of(now, busy)) {
        const std::vector<Stage> before = now;
        for (int s = 0; s < stages; ++s) {
            const auto at = static_cast<size_t>(s);
            const Stage& old = before[at];
            const int arrived = s == 0 ? micro_batches : before[at - 1].forward;
            const int returned = s + 1 == stages ? old.forward : before[at + 1].input;
            const int live = old.forward - old.input, kept = old.forward - old.weight;
            if (old.input < std::min(returned, old.forward))
                table[at].push_back({Phase::input_gradient, 0, now[at].input++});
            else if (old.forward < arrived && live < 2 * (stages - s) - 1 && kept < 2 * stages - 1)
                table[at].push_back({Phase::forward, 0, now[at].forward++});
            else if (old.weight < old.input)
                table[at].push_back({Phase::weight_gradient, 0, now[at].weight++});
        }
    }
    return table;
}

// Data goes down the stages through chunk 0 and up again through chunk 1, so that the first stage has both ends of the
// network. The table is that of at least 2 stages - 1 micro-batches; of fewer ones pieces are left out.
Row zero_bubble_v(int stages, int stage, int micro_batches) {
    Row row;
    const int whole = std::max(micro_batches, 2 * stages - 1), after = stages - stage;
    int done[2][4] = {};
    const auto add = [&](int chunk, std::initializer_list<Phase> phases) {
        for (Phase phase : phases) {
            const int i = done[chunk][static_cast<int>(phase)]++;
            if (i < micro_batches) row.push_back({phase, chunk, i});
        }
    };
    const auto count = [&](int chunk, Phase phase) { return done[chunk][static_cast<int>(phase)]; };
    using enum Phase;
    for (int i = 0; i < 2 * after - 1; ++i) add(0, {forward});
    for (int i = 0; i < stage; ++i) add(1, {forward}), add(0, {forward});
    for (int i = 0; i < after; ++i) add(1, {forward, input_gradient, weight_gradient});
    while (count(1, forward) < whole) {
        if (count(0, forward) < whole) add(0, {forward});
        add(0, {input_gradient, weight_gradient});
        add(1, {forward, input_gradient, weight_gradient});
    }
    for (int i = 0; i < stage; ++i) add(0, {input_gradient}), add(1, {input_gradient});
    for (int i = 0; i < after; ++i) add(0, {input_gradient, weight_gradient});
    for (int chunk : {1, 0})
        while (count(chunk, weight_gradient) < whole) add(chunk, {weight_gradient});
    return row;
}

// When each piece ended; a stage's order and the pieces that a piece needs decide when it starts.
class Clock {
  public:
    Clock(const Schedule& schedule, const std::vector<PartTimes>& parts) : schedule_(schedule), parts_(parts) {
        const auto cells = static_cast<size_t>(schedule.parts()) * static_cast<size_t>(schedule.micro_batches);
        for (auto& list : ended_) list.assign(cells, -1);
    }

    // Runs all that can run; whether everything did.
    bool run(PipelineTimes& times) {
        const auto stages = static_cast<size_t>(schedule_.stages);
        times.timeline.assign(stages, {});
        std::vector<double> free(stages, 0);
        for (bool moves = true; moves;) {
            moves = false;
            for (size_t s = 0; s < stages; ++s) {
                auto& done = times.timeline[s];
                while (done.size() < schedule_.table[s].size()) {
                    const Slot piece = schedule_.table[s][done.size()];
                    const double ready = ready_time(static_cast<int>(s), piece);
                    if (ready < 0) break;
                    const double start = std::max(ready, free[s]);
                    free[s] = start + duration(static_cast<int>(s), piece);
                    note(static_cast<int>(s), piece, free[s]);
                    done.push_back({piece, start, free[s]});
                    moves = true;
                }
            }
        }
        for (size_t s = 0; s < stages; ++s)
            if (times.timeline[s].size() < schedule_.table[s].size()) return false;
        return true;
    }

    double duration(int stage, const Slot& piece) const {
        const PartTimes& t = times_of(schedule_.part(stage, piece.chunk));
        switch (piece.phase) {
            case Phase::forward:
                return t.forward;
            case Phase::backward:
                return t.input_gradient + t.weight_gradient;
            case Phase::input_gradient:
                return t.input_gradient;
            case Phase::weight_gradient:
                return t.weight_gradient;
        }
        return 0;
    }

  private:
    const PartTimes& times_of(int part) const { return parts_[parts_.size() == 1 ? 0 : static_cast<size_t>(part)]; }
    size_t cell(int part, int micro_batch) const {
        return static_cast<size_t>(part) * static_cast<size_t>(schedule_.micro_batches) +
               static_cast<size_t>(micro_batch);
    }
    enum What : uint8_t { forward, input, weight };
    double& ended(What what, int part, int i) { return ended_[what][cell(part, i)]; }

    void note(int stage, const Slot& piece, double time) {
        const int part = schedule_.part(stage, piece.chunk);
        if (piece.phase == Phase::forward) ended(forward, part, piece.micro_batch) = time;
        if (piece.phase == Phase::backward || piece.phase == Phase::input_gradient)
            ended(input, part, piece.micro_batch) = time;
        if (piece.phase == Phase::backward || piece.phase == Phase::weight_gradient)
            ended(weight, part, piece.micro_batch) = time;
    }

    // When what `part` gives has come to `stage`; -1: it is not made yet.
    double arrival(What what, int part, int i, int sender_of_time, int stage) {
        const double time = ended(what, part, i);
        if (time < 0) return -1;
        return time + (schedule_.stage_of(part) != stage ? times_of(sender_of_time).send : 0);
    }

    double ready_time(int stage, const Slot& piece) {
        const int part = schedule_.part(stage, piece.chunk), i = piece.micro_batch;
        if (piece.phase == Phase::forward) return part == 0 ? 0 : arrival(forward, part - 1, i, part - 1, stage);
        if (piece.phase == Phase::weight_gradient) return ended(input, part, i);
        const double own = ended(forward, part, i);
        if (own < 0 || part + 1 == schedule_.parts()) return own;
        const double gradient = arrival(input, part + 1, i, part, stage);
        return gradient < 0 ? -1 : std::max(own, gradient);
    }

    const Schedule& schedule_;
    const std::vector<PartTimes>& parts_;
    std::array<std::vector<double>, 3> ended_;  // forward, input gradient, weight gradient
};

void count_live(const Schedule& schedule, PipelineTimes& times) {
    for (const Row& row : schedule.table) {
        int live = 0, kept = 0, most_live = 0, most_kept = 0;
        for (const Slot& piece : row) {
            const bool is_forward = piece.phase == Phase::forward;
            if (is_forward) ++live, ++kept;
            most_live = std::max(most_live, live);
            most_kept = std::max(most_kept, kept);
            if (piece.phase == Phase::backward || piece.phase == Phase::input_gradient) --live;
            if (piece.phase == Phase::backward || piece.phase == Phase::weight_gradient) --kept;
        }
        times.peak_live.push_back(most_live);
        times.peak_kept.push_back(most_kept);
    }
}

}  // namespace

const char* name_of(Phase phase) {
    constexpr const char* kNames[] = {"forward", "backward", "input gradient", "weight gradient"};
    return kNames[static_cast<int>(phase)];
}

const char* name_of(ScheduleKind kind) { return kKinds[static_cast<int>(kind)].names[0].data(); }

std::optional<ScheduleKind> schedule_of(std::string_view name) {
    for (const KindName& row : kKinds)
        if (!name.empty() && std::ranges::count(row.names, name) > 0) return row.kind;
    return std::nullopt;
}

int Schedule::part(int stage, int chunk) const {
    const bool turns = kind == ScheduleKind::zero_bubble_v && chunk == 1;
    return turns ? 2 * stages - 1 - stage : chunk * stages + stage;
}

int Schedule::chunk_of(int part) const { return part / stages; }

int Schedule::stage_of(int part) const {
    const bool turns = kind == ScheduleKind::zero_bubble_v && part >= stages;
    return turns ? 2 * stages - 1 - part : part % stages;
}

Schedule make_schedule(ScheduleKind kind, int stages, int micro_batches, int chunks) {
    if (kind == ScheduleKind::zero_bubble_v && chunks == 1) chunks = 2;
    const char* const where = "schedule";
    if (stages < 1 || micro_batches < 1 || chunks < 1)
        throw value_error(where, str("a pipeline needs at least one stage, micro-batch and chunk, got ", stages, ", ",
                                     micro_batches, " and ", chunks));
    if (kind == ScheduleKind::interleaved && micro_batches % stages != 0)
        throw value_error(where, str("an interleaved schedule needs micro-batches in multiples of its ", stages,
                                     " stages, got ", micro_batches))
            .hint("choose such a number, or the schedule \"1f1b\"");
    if (kind == ScheduleKind::zero_bubble_v && chunks != 2)
        throw value_error(where, str("zero_bubble_v has 2 chunks, got ", chunks));
    if (kind != ScheduleKind::interleaved && kind != ScheduleKind::zero_bubble_v && chunks != 1)
        throw value_error(where, str("the schedule ", name_of(kind), " has 1 chunk for each stage, got ", chunks))
            .hint("\"interleaved\" has several");
    Schedule schedule{kind, stages, micro_batches, chunks, {}};
    if (kind == ScheduleKind::zero_bubble_h2) {
        schedule.table = zero_bubble_h2(stages, micro_batches);
        return schedule;
    }
    for (int s = 0; s < stages; ++s) {
        switch (kind) {
            case ScheduleKind::gpipe:
                schedule.table.push_back(gpipe(micro_batches));
                break;
            case ScheduleKind::interleaved:
                schedule.table.push_back(interleaved(stages, s, micro_batches, chunks));
                break;
            case ScheduleKind::zero_bubble_v:
                schedule.table.push_back(zero_bubble_v(stages, s, micro_batches));
                break;
            default:
                schedule.table.push_back(one_f_one_b(stages, s, micro_batches, has_halves(kind)));
        }
    }
    return schedule;
}

std::string problem_of(const Schedule& schedule) {
    const auto stages = static_cast<size_t>(schedule.stages);
    if (schedule.table.size() != stages)
        return str("there are ", schedule.table.size(), " rows for ", stages, " stages");
    for (size_t s = 0; s < stages; ++s) {
        std::vector<int> counts(static_cast<size_t>(schedule.chunks) * static_cast<size_t>(schedule.micro_batches) * 4);
        const auto at = [&](int chunk, int i, Phase phase) -> int& {
            return counts[(static_cast<size_t>(chunk) * static_cast<size_t>(schedule.micro_batches) +
                           static_cast<size_t>(i)) *
                              4 +
                          static_cast<size_t>(phase)];
        };
        for (const Slot& p : schedule.table[s]) {
            const bool known = p.chunk >= 0 && p.chunk < schedule.chunks && p.micro_batch >= 0 &&
                               p.micro_batch < schedule.micro_batches;
            if (!known) return str("stage ", s, " has no chunk ", p.chunk, " with micro-batch ", p.micro_batch);
            ++at(p.chunk, p.micro_batch, p.phase);
        }
        for (int chunk = 0; chunk < schedule.chunks; ++chunk)
            for (int i = 0; i < schedule.micro_batches; ++i) {
                const int whole = at(chunk, i, Phase::backward), input = at(chunk, i, Phase::input_gradient),
                          weight = at(chunk, i, Phase::weight_gradient);
                const bool is_backward = whole == 1 && input == 0 && weight == 0;
                const bool in_halves = whole == 0 && input == 1 && weight == 1;
                if (at(chunk, i, Phase::forward) != 1 || is_backward == in_halves)
                    return str("stage ", s, " does not do chunk ", chunk, " of micro-batch ", i,
                               " once forward and once backward");
            }
    }
    const std::vector<PartTimes> units{{1, 1, 1, 0}};
    PipelineTimes times;
    Clock clock(schedule, units);
    if (clock.run(times)) return "";
    for (size_t s = 0; s < stages; ++s)
        if (const size_t next = times.timeline[s].size(); next < schedule.table[s].size()) {
            const Slot& p = schedule.table[s][next];
            return str("stage ", s, " waits for ever with the ", name_of(p.phase), " of chunk ", p.chunk,
                       " of micro-batch ", p.micro_batch);
        }
    return "";
}

PipelineTimes simulate(const Schedule& schedule, const std::vector<PartTimes>& parts) {
    if (parts.size() != 1 && parts.size() != static_cast<size_t>(schedule.parts()))
        throw value_error("schedule", str("times of ", parts.size(), " parts were given for ", schedule.parts()));
    PipelineTimes times;
    Clock clock(schedule, parts);
    if (!clock.run(times)) throw value_error("schedule", problem_of(schedule));
    for (const auto& row : times.timeline) {
        if (row.empty()) continue;
        double work = 0;
        for (const TimedSlot& p : row) work += p.stop - p.start;
        const double span = row.back().stop - row.front().start;
        times.seconds = std::max(times.seconds, row.back().stop);
        times.excess = std::max(times.excess, span - work);
        if (span > 0) times.bubble = std::max(times.bubble, (span - work) / span);
    }
    count_live(schedule, times);
    return times;
}

std::string picture(const PipelineTimes& times, double unit) {
    const auto width = static_cast<size_t>(std::ceil(times.seconds / unit - 1e-9));
    std::string text;
    for (size_t s = 0; s < times.timeline.size(); ++s) {
        std::string row(width, '.');
        for (const TimedSlot& p : times.timeline[s]) {
            const auto from = static_cast<size_t>(std::lround(p.start / unit));
            const auto to = static_cast<size_t>(std::lround(p.stop / unit));
            for (size_t i = from; i < std::min(to, width); ++i) row[i] = "FBbw"[static_cast<int>(p.piece.phase)];
        }
        text += str("stage ", s, "  ", row, "\n");
    }
    return text;
}

}  // namespace lunaria::parallel
