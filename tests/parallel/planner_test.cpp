#include "core/parallel/planner.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "core/base/error.h"
#include "tests/parallel/einsum_program.h"

namespace lunaria::parallel {
namespace {

TEST(Planner, equal_layers_are_found) {
    auto p = EinsumProgram::gpt_layers(6, 16, 512, 1024, 16);
    const std::vector<ProgramOperator> before = p.program.operators;
    EXPECT_EQ(find_layers(p.program), 6);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(p.program.operators[i].layer, before[i].layer) << i;
}

struct Measured {
    PlanSearch search;
    double seconds;
};
Measured measure(const Program& program, const Cluster& c, const PlanRequest& request) {
    const auto start = std::chrono::steady_clock::now();
    PlanSearch search = plan_cluster(program, c, request);
    return {std::move(search), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

void print(const char* name, const Measured& m) {
    std::printf("%s: %.2f s, first after %.2f s, %zu tried, %zu fit, least %.1f GB\n", name, m.seconds,
                m.search.first_seconds, m.search.tried, m.search.fitting, m.search.least_bytes / 1e9);
    for (size_t i = 0; i < std::min<size_t>(3, m.search.best.size()); ++i) {
        const ClusterPlan& p = m.search.best[i];
        std::printf("  %.3f s, %.1f GB, bubble %.1f %%: %s\n", p.seconds, p.bytes / 1e9, 100 * p.bubble,
                    p.text().c_str());
    }
}

TEST(Planner, a_transformer_on_256_devices) {
    // 24 layers, 19 billion parameters, 256 texts of 2,048 tokens.
    auto p = EinsumProgram::gpt_layers(24, 256, 2048, 8192, 64);
    const Cluster c = small_cluster();
    PlanRequest request;
    request.devices = 256;
    request.batch = 256;
    const Measured m = measure(p.program, c, request);
    print("19 billion parameters", m);
    ASSERT_FALSE(m.search.best.empty());
    const ClusterPlan& best = m.search.best[0];
    EXPECT_LE(best.bytes, c.memory_bytes);
    // Three times the flops of the forward pass are the least there is.
    double flops = 0;
    for (const ProgramOperator& op : p.program.operators) flops += op.flops;
    const double least = 3 * flops / static_cast<double>(request.devices) / c.flops_per_second;
    EXPECT_GT(best.seconds, least);
    EXPECT_LT(best.seconds, 2 * least);
    for (size_t i = 1; i < m.search.best.size(); ++i) EXPECT_GE(m.search.best[i].seconds, best.seconds);
}

TEST(Planner, costs_rank_plans_as_the_simulation_does) {
    auto p = EinsumProgram::gpt_layers(16, 128, 1024, 4096, 32);
    const Cluster c = small_cluster();
    PlanRequest request;
    request.devices = 64;
    request.batch = 128;
    request.keep = 1000;
    request.worth = 100;
    const PlanSearch found = plan_cluster(p.program, c, request);
    ASSERT_GE(found.best.size(), 100u);
    std::vector<ClusterPlan> plans;  // 50 from the fastest to the slowest
    for (size_t i = 0; i < 50; ++i) plans.push_back(found.best[i * (found.best.size() - 1) / 49]);
    double agree = 0, pairs = 0;
    for (size_t i = 0; i < plans.size(); ++i)
        for (size_t j = i + 1; j < plans.size(); ++j) {
            if (plans[i].seconds == plans[j].seconds) continue;
            ++pairs;
            agree += plans[i].cost < plans[j].cost ? 1 : -1;
        }
    std::printf("Kendall's tau of 50 plans: %.3f\n", agree / pairs);
    EXPECT_GE(agree / pairs, 0.9);
}

TEST(Planner, what_is_given_is_not_searched) {
    auto p = EinsumProgram::gpt_layers(8, 64, 512, 1024, 16);
    const Cluster c = small_cluster();
    PlanRequest request;
    request.devices = 32;
    request.batch = 64;
    request.stages = 4, request.micro_batches = 8, request.level = 1, request.remakes = true;
    request.mesh = MeshAxes{{"dp", 4}, {"tp", 2}};
    const PlanSearch found = plan_cluster(p.program, c, request);
    ASSERT_EQ(found.best.size(), 1u);
    EXPECT_EQ(found.best[0].text(),
              "pp 4 (1f1b), dp 4 x tp 2, 8 micro-batches, sharded optimizer of level 1, layers computed twice");
    EXPECT_GE(found.best[0].bubble, 3.0 / 11);  // and what sending takes
    EXPECT_LT(found.best[0].bubble, 0.4);
    // Four stages of two layers each.
    for (size_t i = 0; i < p.program.operators.size(); ++i)
        EXPECT_EQ(found.best[0].part_of[i], p.program.operators[i].layer / 2);
    request.stages = 5;
    EXPECT_THROW(plan_cluster(p.program, c, request), Error);
}

}  // namespace
}  // namespace lunaria::parallel
