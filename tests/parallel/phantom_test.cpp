#include "core/parallel/phantom.h"

#include <gtest/gtest.h>

#include <vector>

namespace lunaria::parallel {
namespace {

Request request(Collective operation, int64_t count, const std::vector<float>& in, std::vector<float>& out) {
    Request r;
    r.operation = operation;
    r.count = count;
    r.in = in.data();
    r.out = out.data();
    return r;
}

TEST(Phantom, answers_as_if_all_ranks_had_the_same) {
    PhantomCommunicator c(1, 4);
    EXPECT_EQ(c.engine(), "phantom");
    const std::vector<float> x = {1, 2, 3, 4};
    std::vector<float> y(4), all(16), one(1);
    c.run(request(Collective::all_reduce, 4, x, y));
    EXPECT_EQ(y, (std::vector<float>{4, 8, 12, 16}));
    c.run(request(Collective::all_gather, 4, x, all));
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(all[i], x[i % 4]);
    c.run(request(Collective::reduce_scatter, 1, x, one));
    EXPECT_EQ(one[0], 8);
    c.run(request(Collective::all_to_all, 1, x, y));
    EXPECT_EQ(y, x);
    c.run(request(Collective::recv, 1, x, one));
    EXPECT_EQ(one[0], 0);
    std::vector<float> uneven(10);
    Request gather = request(Collective::all_gather, 0, x, uneven);
    const std::vector<int64_t> counts = {3, 2, 1, 4};
    gather.counts = counts;
    c.run(gather);
    EXPECT_EQ(uneven, (std::vector<float>{1, 2, 1, 1, 2, 1, 1, 2, 1, 2}));
    EXPECT_EQ(c.traffic(Collective::all_gather).bytes, 12u * 4 + 8 * 4);
    const Pending pending = c.start(request(Collective::all_reduce, 4, x, y));
    pending.wait();
    EXPECT_EQ(y, (std::vector<float>{4, 8, 12, 16}));
}

TEST(Phantom, is_true_for_one_rank) {
    PhantomCommunicator c(0, 1);
    EXPECT_EQ(c.engine(), "one rank");
    const std::vector<float> x = {1, 2, 3};
    for (const Collective operation :
         {Collective::all_reduce, Collective::reduce, Collective::all_gather, Collective::gather,
          Collective::reduce_scatter, Collective::scatter, Collective::broadcast, Collective::all_to_all}) {
        std::vector<float> y(3);
        c.run(request(operation, 3, x, y));
        EXPECT_EQ(y, x) << name_of(operation);
    }
    c.name_group("mine", std::vector<int>{0});
    EXPECT_EQ(c.named_group("test", "mine").size(), 1);
    c.forget_group("test", "mine");
}

}  // namespace
}  // namespace lunaria::parallel
