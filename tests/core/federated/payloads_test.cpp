// Changes as payloads, and back, by the plan that both sides have.
#include "core/federated/payloads.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lunaria::federated {
namespace {

using messages::Encoding;

std::vector<double> change_with(size_t size) {
    std::vector<double> change(size);
    for (size_t i = 0; i < size; ++i) change[i] = std::sin(static_cast<double>(i * i + 1));
    return change;
}

messages::Plan plan_of(Encoding encoding, double rate) {
    messages::Plan plan;
    plan.upload = encoding;
    plan.sparse_rate = rate;
    plan.seed = 5;
    return plan;
}

TEST(Payloads, sparse_places_are_those_of_the_iteration) {
    const messages::Plan plan = plan_of(Encoding::sparse_quantised, 0.5);
    std::vector<double> change = change_with(40);
    std::string residual;
    const std::string first = payload_of("test", plan, 1, change, residual),
                      second = payload_of("test", plan, 2, change, residual);
    const std::vector<double> one = change_of(plan, 1, 40, first), two = change_of(plan, 2, 40, second);
    size_t sent = 0, both = 0;
    for (size_t i = 0; i < 40; ++i) {
        if (one[i] != 0) {
            EXPECT_NEAR(one[i], change[i], 0.01);
        }
        sent += one[i] != 0;
        both += one[i] != 0 && two[i] != 0;
    }
    EXPECT_GE(sent, 18u);
    EXPECT_LE(sent, 20u);
    EXPECT_LT(both, sent);
    EXPECT_TRUE(residual.empty());
}

TEST(Payloads, what_top_k_leaves_out_comes_later) {
    const messages::Plan plan = plan_of(Encoding::top_k, 0.25);
    const std::vector<double> change = change_with(20);
    std::vector<double> sum(20);
    std::string residual;
    std::vector<double> given = change;
    for (int iteration = 1; iteration <= 30; ++iteration) {
        const std::string payload = payload_of("test", plan, iteration, given, residual);
        const std::vector<double> sent = change_of(plan, iteration, 20, payload);
        for (size_t i = 0; i < 20; ++i) sum[i] += sent[i];
        // Nothing new: only what was left out.
        given.assign(20, 0.0);
    }
    for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(sum[i], change[i], 1e-6) << i;
}

TEST(Payloads, signds_gives_steps_of_its_length) {
    messages::Plan plan = plan_of(Encoding::signds, 0);
    plan.cipher.sign_k = 0.25;
    plan.cipher.sign_eps = 100;
    plan.cipher.sign_thr_ratio = 0.6;
    plan.cipher.sign_global_lr = 0.5;
    plan.cipher.sign_dim_out = 4;
    std::vector<double> change = change_with(100);
    std::string residual;
    const std::vector<double> step = change_of(plan, 1, 100, payload_of("test", plan, 1, change, residual));
    size_t moved = 0;
    for (const double x : step) {
        EXPECT_TRUE(x == 0 || std::abs(x) == 0.5);
        moved += x != 0;
    }
    EXPECT_EQ(moved, 4u);
}

TEST(Payloads, of_another_plan_are_refused) {
    const messages::Plan plan = plan_of(Encoding::top_k, 0.25);
    std::vector<double> change = change_with(20);
    std::string residual;
    const std::string payload = payload_of("test", plan, 1, change, residual);
    EXPECT_THROW(change_of(plan, 1, 10, payload), Error);
    EXPECT_THROW(change_of(plan_of(Encoding::sparse_quantised, 0.5), 1, 20, payload), Error);
    EXPECT_THROW(change_of(plan, 1, 20, payload.substr(0, payload.size() / 2)), Error);
    EXPECT_THROW(change_of(plan_of(Encoding::plain, 0.5), 1, 20, payload), Error);
    EXPECT_THROW(payload_of("test", plan_of(Encoding::masked, 0.5), 1, change, residual), Error);
}

}  // namespace
}  // namespace lunaria::federated
