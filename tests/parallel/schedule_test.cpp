#include "core/parallel/schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

using enum ScheduleKind;

constexpr ScheduleKind kAll[] = {gpipe, one_f_one_b, interleaved, zero_bubble_h1, zero_bubble_h2, zero_bubble_v};

PipelineTimes times(ScheduleKind kind, int stages, int micro_batches, PartTimes t, int chunks = 1) {
    return simulate(make_schedule(kind, stages, micro_batches, chunks), {t});
}

TEST(Schedule, every_table_passes_the_verifier) {
    for (ScheduleKind kind : kAll)
        for (int stages : {1, 2, 3, 4, 8})
            for (int micro_batches : {1, 2, 3, 5, 8, 24})
                for (int chunks : {1, 2, 3}) {
                    if (kind != interleaved && chunks != (kind == zero_bubble_v ? 2 : 1)) continue;
                    if (kind == interleaved && micro_batches % stages != 0) continue;
                    EXPECT_EQ(problem_of(make_schedule(kind, stages, micro_batches, chunks)), "")
                        << name_of(kind) << " " << stages << " " << micro_batches << " " << chunks;
                }
}

TEST(Schedule, idle_time_of_gpipe_and_1f1b_is_the_published_share) {
    for (ScheduleKind kind : {gpipe, one_f_one_b})
        for (auto [p, m, percent] : {std::tuple{4, 8, 27.3}, {8, 16, 30.4}, {8, 32, 17.9}}) {
            const auto t = times(kind, p, m, {1, 1, 1, 0});
            EXPECT_DOUBLE_EQ(t.bubble, double(p - 1) / (m + p - 1));
            EXPECT_NEAR(100 * t.bubble, percent, 0.05);
        }
}

TEST(Schedule, chunks_divide_the_idle_time) {
    for (int p : {2, 4, 8})
        for (int rounds : {1, 2, 4})
            for (int v : {2, 3, 4}) {
                const int m = rounds * p;
                EXPECT_DOUBLE_EQ(times(interleaved, p, m, {1, 1, 1, 0}, v).bubble, double(p - 1) / (v * m + p - 1));
            }
}

TEST(Schedule, zero_bubble_h1_idles_as_published) {
    for (auto [p, m, percent] : {std::tuple{4, 8, 11.1}, {8, 16, 12.7}, {8, 32, 6.8}}) {
        EXPECT_NEAR(100 * times(zero_bubble_h1, p, m, {1, 1, 1, 0}).bubble, percent, 0.05);
        for (PartTimes t : {PartTimes{1, 1, 1, 0}, {10, 12, 8, 0}, {2, 2, 1.5, 0}})
            EXPECT_NEAR(times(zero_bubble_h1, p, m, t).excess,
                        (p - 1) * (t.forward + t.input_gradient - t.weight_gradient), 1e-9);
    }
}

TEST(Schedule, zero_bubble_h2_and_v_do_not_idle_where_phases_are_equal) {
    for (auto [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
        EXPECT_NEAR(times(zero_bubble_h2, p, m, {1, 1, 1, 0}).excess, 0, 1e-9);
        EXPECT_NEAR(times(zero_bubble_v, p, m, {1, 1, 1, 0}).excess, 0, 1e-9);
        const PartTimes t{10, 12, 8, 0};
        EXPECT_NEAR(times(zero_bubble_h2, p, m, t).excess,
                    (p - 1) * (t.forward + t.input_gradient - 2 * t.weight_gradient), 1e-9);
    }
}

TEST(Schedule, memory_is_what_the_schedules_promise) {
    const int p = 8, m = 32;
    EXPECT_EQ(times(gpipe, p, m, {1, 1, 1, 0}).peak_live[0], m);
    for (int s = 0; s < p; ++s) {
        const auto at = static_cast<size_t>(s);
        EXPECT_EQ(times(one_f_one_b, p, m, {1, 1, 1, 0}).peak_live[at], p - s);
        EXPECT_EQ(times(zero_bubble_h1, p, m, {1, 1, 1, 0}).peak_kept[at], p);
        EXPECT_EQ(times(zero_bubble_h2, p, m, {1, 1, 1, 0}).peak_kept[at], 2 * p - 1);
        EXPECT_EQ(times(zero_bubble_v, p, m, {1, 1, 1, 0}).peak_kept[at], 2 * p);  // halves of a stage
    }
}

TEST(Schedule, sending_takes_its_time) {
    const auto t = times(gpipe, 2, 1, {1, 1, 1, 0.25});
    EXPECT_DOUBLE_EQ(t.seconds, 2 * 1 + 0.25 + 2 * 2 + 0.25);
}

TEST(Schedule, what_is_wrong_with_a_table_is_told) {
    Schedule s = make_schedule(one_f_one_b, 2, 2);
    Schedule twice = s;
    twice.table[0].push_back(twice.table[0][0]);
    EXPECT_EQ(problem_of(twice), "stage 0 does not do chunk 0 of micro-batch 0 once forward and once backward");
    Schedule circle = s;
    std::swap(circle.table[1][0], circle.table[1][1]);
    EXPECT_EQ(problem_of(circle), "stage 0 waits for ever with the backward of chunk 0 of micro-batch 0");
    EXPECT_THROW(simulate(circle, {{1, 1, 1, 0}}), Error);
    EXPECT_THROW(make_schedule(interleaved, 4, 6, 2), Error);
    EXPECT_THROW(make_schedule(gpipe, 4, 6, 2), Error);
}

TEST(Schedule, no_order_beats_the_work_and_the_way_through_the_stages) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> draw(0.1, 1);
    for (int turn = 0; turn < 50; ++turn)
        for (ScheduleKind kind : kAll) {
            const Schedule schedule = make_schedule(kind, 4, 8, kind == interleaved ? 2 : 1);
            std::vector<PartTimes> parts(static_cast<size_t>(schedule.parts()));
            double way = 0;
            std::vector<double> work(4);
            for (int i = 0; i < schedule.parts(); ++i) {
                PartTimes& t = parts[static_cast<size_t>(i)] = {draw(random), draw(random), draw(random), 0};
                way += t.forward + t.input_gradient;
                work[static_cast<size_t>(schedule.stage_of(i))] +=
                    8 * (t.forward + t.input_gradient + t.weight_gradient);
            }
            const double least = std::max(way, *std::max_element(work.begin(), work.end()));
            EXPECT_GE(simulate(schedule, parts).seconds, least - 1e-9);
        }
}

TEST(Schedule, the_picture_of_1f1b) {
    EXPECT_EQ(picture(times(one_f_one_b, 2, 3, {1, 1, 0, 0}), 1),
              "stage 0  FF.BFB.B\n"
              "stage 1  .FBFBFB.\n");
}

}  // namespace
}  // namespace lunaria::parallel
