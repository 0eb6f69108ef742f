// Populations at the level of messages.
#include "core/federated/population.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"

namespace lunaria::federated {

namespace {

JobSettings job(int64_t threshold, int64_t iterations) {
    JobSettings settings;
    settings.name = "population";
    settings.iterations = iterations;
    settings.start_threshold = threshold;
    settings.update_ratio = 0.8;
    settings.update_window = 60'000;
    return settings;
}

PopulationSettings devices(int64_t count, uint64_t seed) {
    PopulationSettings settings;
    settings.devices = count;
    settings.seed = seed;
    return settings;
}

std::vector<IterationReport> run(const PopulationSettings& settings, const JobSettings& job) {
    Population population(settings, job);
    std::vector<IterationReport> reports;
    while (!population.finished()) reports.push_back(population.iteration());
    return reports;
}

std::vector<uint64_t> digests(const std::vector<IterationReport>& reports) {
    std::vector<uint64_t> list;
    for (const IterationReport& report : reports) list.push_back(report.digest);
    return list;
}

TEST(CalendarTest, gives_devices_by_their_times) {
    Calendar calendar(10);
    EXPECT_EQ(calendar.next(), -1);
    calendar.add(700, 3);
    calendar.add(5, 1);
    calendar.add(5, 2);
    calendar.add(900'000, 4);
    EXPECT_EQ(calendar.size(), 4);
    EXPECT_TRUE(calendar.has(3));
    uint32_t device = 0;
    std::vector<uint32_t> got;
    for (Time time; (time = calendar.next()) >= 0;) {
        calendar.go_to(time);
        while (calendar.take(time, device)) got.push_back(device);
    }
    EXPECT_EQ(got, (std::vector<uint32_t>{2, 1, 3, 4}));
    EXPECT_FALSE(calendar.has(3));
}

TEST(CalendarTest, goes_around_and_agrees_with_a_sorted_list) {
    Calendar calendar(64);
    std::multiset<Time> times;
    std::set<uint32_t> free;
    for (uint32_t i = 0; i < 64; ++i) free.insert(i);
    Time now = 1'000'000;
    calendar.go_to(now);
    uint64_t state = 1;
    const auto random = [&](uint64_t below) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (state >> 33) % below;
    };
    for (int step = 0; step < 20'000; ++step) {
        if (!free.empty() && random(2)) {
            const uint32_t device = *free.begin();
            const Time time = now + static_cast<Time>(random(3) ? random(200) : random(1'000'000));
            free.erase(device);
            calendar.add(time, device);
            times.insert(time);
        } else if (!times.empty()) {
            now = *times.begin();
            ASSERT_EQ(calendar.next(), now);
            calendar.go_to(now);
            uint32_t device = 0;
            while (calendar.take(now, device)) {
                free.insert(device);
                times.erase(times.begin());
            }
            ASSERT_TRUE(times.empty() || *times.begin() > now);
        }
        ASSERT_EQ(calendar.size(), static_cast<int64_t>(times.size()));
    }
}

TEST(PopulationTest, an_iteration_takes_as_many_as_it_needs) {
    Population population(devices(10'000, 1), job(500, 3));
    for (int64_t i = 1; i <= 3; ++i) {
        const IterationReport report = population.iteration();
        EXPECT_EQ(report.iteration, i);
        EXPECT_TRUE(report.valid) << report.reason;
        EXPECT_EQ(report.started, 500);
        EXPECT_EQ(report.updates, 400);
        EXPECT_GE(report.ended, report.began);
    }
    EXPECT_TRUE(population.finished());
    EXPECT_THROW(population.iteration(), Error);
}

TEST(PopulationTest, a_seed_repeats_a_run_and_another_one_does_not) {
    PopulationSettings settings = devices(2000, 7);
    settings.availability = 0.5;
    settings.dropout = 0.1;
    settings.lost = 0.05;
    settings.duplicated = 0.05;
    const auto first = digests(run(settings, job(100, 5))), second = digests(run(settings, job(100, 5)));
    EXPECT_EQ(first, second);
    settings.seed = 8;
    EXPECT_NE(first, digests(run(settings, job(100, 5))));
}

TEST(PopulationTest, devices_that_ask_are_taken_alike) {
    // 800 of 2000 in each of 50 iterations: the lower half of the numbers has half of them, deviation 100 of 40,000.
    PopulationSettings settings = devices(2000, 3);
    settings.lists = true;
    settings.training_spread = 0;
    int64_t lower = 0, all = 0;
    for (const IterationReport& report : run(settings, job(1000, 50)))
        for (const Taken& taken : report.taken) lower += taken.device < 1000, ++all;
    EXPECT_EQ(all, 50 * 800);
    EXPECT_NEAR(static_cast<double>(lower), 20'000.0, 500.0);
}

TEST(PopulationTest, repeated_and_old_messages_and_restarts_change_nothing) {
    const auto plain = run(devices(3000, 5), job(200, 6));
    PopulationSettings settings = devices(3000, 5);
    settings.duplicated = 0.3;
    settings.replayed = 0.3;
    settings.restart = 0.2;
    const auto faults = run(settings, job(200, 6));
    EXPECT_EQ(digests(plain), digests(faults));
    int64_t repeated = 0, old = 0, restarts = 0;
    for (const IterationReport& report : faults) {
        EXPECT_EQ(report.updates, 160);
        repeated += report.repeated, old += report.replays_refused, restarts += report.restarts;
    }
    EXPECT_GT(repeated, 0);
    EXPECT_GT(old, 0);
    EXPECT_GT(restarts, 100);
}

TEST(PopulationTest, a_copy_of_the_update_that_ends_an_iteration_changes_nothing) {
    // Each copy comes after the iteration has ended, where the update before it was the last one.
    for (uint64_t seed = 1; seed <= 40; ++seed) {
        PopulationSettings settings = devices(300, seed);
        settings.availability = 0.5;
        const auto plain = run(settings, job(20, 4));
        settings.duplicated = 1.0;
        const auto faults = run(settings, job(20, 4));
        EXPECT_EQ(digests(plain), digests(faults)) << seed;
        for (const IterationReport& report : faults) EXPECT_GE(report.repeated, 20 + 15) << seed;
    }
}

TEST(PopulationTest, too_few_devices_fail_an_iteration_within_its_window) {
    Population population(devices(50, 1), job(100, 2));
    const IterationReport report = population.iteration();
    EXPECT_FALSE(report.valid);
    EXPECT_FALSE(report.reason.empty());
    EXPECT_EQ(report.started, 50);
    EXPECT_LE(report.ended - report.began, 1000 + 3000);
}

TEST(PopulationTest, stragglers_come_too_late) {
    PopulationSettings settings = devices(1000, 2);
    settings.stragglers = 0.3;
    settings.straggler_factor = 1000;
    settings.training_spread = 0;
    JobSettings with = job(500, 2);
    with.update_ratio = 0.9;
    Population population(settings, with);
    EXPECT_FALSE(population.iteration().valid);
    with.update_ratio = 0.5;
    Population patient(settings, with);
    EXPECT_TRUE(patient.iteration().valid);
}

TEST(PopulationTest, updates_of_an_iteration_that_has_ended_are_refused) {
    PopulationSettings settings = devices(1000, 2);
    JobSettings with = job(500, 3);
    with.update_ratio = 0.5;
    Population population(settings, with);
    population.iteration();
    // The slower half is on its way when the second iteration begins.
    EXPECT_GT(population.iteration().late, 100);
}

TEST(PopulationTest, lost_messages_are_sent_again) {
    PopulationSettings settings = devices(1000, 2);
    settings.lost = 0.5;
    JobSettings with = job(300, 3);
    with.update_ratio = 1;
    for (const IterationReport& report : run(settings, with)) {
        EXPECT_TRUE(report.valid) << report.reason;
        EXPECT_EQ(report.updates, 300);
        EXPECT_GT(report.lost, 100);
    }
}

TEST(PopulationTest, an_asynchronous_job_aggregates_a_buffer_at_a_time) {
    PopulationSettings settings = devices(500, 4);
    JobSettings with = job(1, 20);
    with.asynchronous = true;
    with.buffer = 10;
    int64_t count = 0;
    settings.lists = true;
    for (const IterationReport& report : run(settings, with)) {
        EXPECT_TRUE(report.valid) << report.reason;
        EXPECT_EQ(report.updates, 10);
        for (const Taken& taken : report.taken) EXPECT_LE(report.iteration - taken.started, with.max_staleness);
        ++count;
    }
    EXPECT_EQ(count, 20);
}

TEST(PopulationTest, times_and_absence_can_be_given) {
    PopulationSettings settings = devices(20, 4);
    settings.lists = true;
    JobSettings with = job(10, 1);
    with.update_ratio = 1;
    Population population(settings, with);
    std::vector<uint8_t> away(20, 0);
    for (size_t i = 0; i < 10; ++i) away[i] = 1;
    population.set_away(away);
    population.set_times(std::vector<Time>(20, 30'000));
    const IterationReport report = population.iteration();
    EXPECT_EQ(report.taken.size(), 10u);
    for (const Taken& taken : report.taken) EXPECT_GE(taken.device, 10u);
    EXPECT_GE(report.ended, 30'000);
    EXPECT_LE(report.ended, 32'000);
    EXPECT_THROW(population.set_times({1}), Error);
    EXPECT_THROW(population.set_away({1}), Error);
}

TEST(PopulationTest, settings_out_of_range_are_named) {
    PopulationSettings settings = devices(0, 1);
    try {
        Population(settings, job(1, 1));
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("devices must be"), std::string::npos);
    }
    settings.devices = 10;
    settings.lost = 1;
    EXPECT_THROW(Population(settings, job(1, 1)), Error);
}

}  // namespace

}  // namespace lunaria::federated
