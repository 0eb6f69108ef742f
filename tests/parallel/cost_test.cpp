#include "core/parallel/cost.h"

#include <gtest/gtest.h>

#include "core/parallel/memory_plan.h"

namespace lunaria::parallel {
namespace {

TEST(MemoryPlan, sharded_states_are_the_published_ones) {
    // ZeRO, 7.5 billion parameters, Adam in mixed precision: GB of a rank.
    const double n = 7.5e9;
    for (auto [level, gigabytes] : {std::pair{0, 120.0}, {1, 31.4}, {2, 16.6}, {3, 1.9}})
        EXPECT_NEAR(sharded_state_bytes(n, 64, level) / 1e9, gigabytes, 0.05) << level;
    for (auto [level, gigabytes] : {std::pair{1, 30.1}, {2, 15.1}, {3, 0.12}})
        EXPECT_NEAR(sharded_state_bytes(n, 1024, level) / 1e9, gigabytes, 0.05) << level;
}

TEST(MemoryPlan, activations_of_gpt3_are_the_published_ones) {
    const TransformerLayer gpt3{2048, 1, 12288, 96};
    EXPECT_NEAR(activation_bytes(gpt3) / 1e9, 2.87, 0.005);
    EXPECT_NEAR(activation_bytes(gpt3, 1, false, true) / 1e9, 0.86, 0.005);
    EXPECT_NEAR(activation_bytes(gpt3) / activation_bytes(gpt3, 1, false, true), 3.35, 0.01);
    // Sequence parallelism and recomputed attention together: about five times less for 530 billion parameters.
    const TransformerLayer large{2048, 1, 20480, 128};
    const double ratio = activation_bytes(large, 8) / activation_bytes(large, 8, true, true);
    EXPECT_GT(ratio, 4.5);
    EXPECT_LT(ratio, 5.5);
}

Cluster two_levels() { return {"test", {{8, 1e-6, 100e9}, {1 << 20, 10e-6, 10e9}}, 0, 1, 1, 0, 0, 0}; }

TEST(Cost, a_ring_moves_each_part_once) {
    const Cluster c = two_levels();
    EXPECT_DOUBLE_EQ(all_gather_seconds(c, {1, 8}, 8e9), 7e-6 + 7e9 / 100e9);
    EXPECT_DOUBLE_EQ(all_reduce_seconds(c, {1, 8}, 8e9), 2 * (7e-6 + 7e9 / 100e9));
    EXPECT_DOUBLE_EQ(all_to_all_seconds(c, {1, 8}, 8e9), 7e-6 + 7e9 / 100e9);
    EXPECT_DOUBLE_EQ(all_gather_seconds(c, {8, 4}, 8e9), 3 * 10e-6 + 6e9 / 10e9);
    EXPECT_EQ(all_reduce_seconds(c, {1, 1}, 8e9), 0);
}

TEST(Cost, far_levels_move_only_each_ranks_part) {
    const Cluster c = two_levels();
    EXPECT_DOUBLE_EQ(all_gather_seconds(c, {1, 32}, 32e9), 7e-6 + 7.0 / 8 * 32e9 / 100e9 + 3 * 10e-6 + 3e9 / 10e9);
    EXPECT_LT(all_reduce_seconds(c, {1, 32}, 1e9), all_reduce_seconds(c, {8, 32}, 1e9));
    EXPECT_DOUBLE_EQ(send_seconds(c, 1, 1e9), 1e-6 + 0.01);
    EXPECT_DOUBLE_EQ(send_seconds(c, 8, 1e9), 10e-6 + 0.1);
}

}  // namespace
}  // namespace lunaria::parallel
