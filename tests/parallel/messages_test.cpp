#include "core/parallel/messages.h"

#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "core/parallel/simulated.h"
#include "tests/parallel/engine_checks.h"

namespace lunaria::parallel {
namespace {

// Ranks that are threads: messages are copied into queues.
class Post {
  public:
    explicit Post(int ranks, int of_a_host = 0) : of_a_host(of_a_host), losses_(static_cast<size_t>(ranks)) {}
    int ranks() const { return static_cast<int>(losses_.size()); }
    const int of_a_host;                // 0: all are on one
    std::atomic<int64_t> far_bytes{0};  // between hosts

    using Box = std::tuple<int, int, Lane, int>;  // from, to, lane, tag
    void send(const Box& box, const void* bytes, size_t count) {
        std::lock_guard lock(mutex_);
        boxes_[box].emplace_back(static_cast<const char*>(bytes), count);
    }
    // Messages go to receivers in the order in which these asked.
    int64_t ask(const Box& box) {
        std::lock_guard lock(mutex_);
        return asked_[box]++;
    }
    bool receive(const Box& box, int64_t turn, void* to, size_t count) {
        std::lock_guard lock(mutex_);
        auto& queue = boxes_[box];
        if (queue.empty() || taken_[box] != turn) return false;
        ++taken_[box];
        EXPECT_EQ(queue.front().size(), count);
        std::memcpy(to, queue.front().data(), std::min(count, queue.front().size()));
        queue.pop_front();
        return true;
    }
    std::string loss_of(int rank) {
        std::lock_guard lock(mutex_);
        return losses_[static_cast<size_t>(rank)];
    }
    void leave(int rank, std::string_view why) {
        std::lock_guard lock(mutex_);
        losses_[static_cast<size_t>(rank)] = why.empty() ? "has left" : "failed: " + std::string(why);
    }

  private:
    std::mutex mutex_;
    std::map<Box, std::deque<std::string>> boxes_;
    std::map<Box, int64_t> asked_, taken_;
    std::vector<std::string> losses_;
};

class PostTransport : public Transport {
  public:
    PostTransport(Post& post, int rank) : post_(post), rank_(rank) {}
    int rank() const override { return rank_; }
    int ranks() const override { return post_.ranks(); }
    std::string_view name() const override { return "post"; }
    std::string host() const override { return "host " + std::to_string(host_of(rank_)); }
    int host_of(int rank) const { return post_.of_a_host ? rank / post_.of_a_host : 0; }
    std::unique_ptr<Ticket> send(int to, Lane lane, int tag, const void* bytes, size_t count) override {
        if (host_of(to) != host_of(rank_)) post_.far_bytes += static_cast<int64_t>(count);
        post_.send({rank_, to, lane, tag}, bytes, count);
        return std::make_unique<Sent>();
    }
    std::unique_ptr<Ticket> receive(int from, Lane lane, int tag, void* bytes, size_t count) override {
        return std::make_unique<Awaited>(post_, Post::Box{from, rank_, lane, tag}, bytes, count);
    }
    std::string loss_of(int rank) override { return post_.loss_of(rank); }
    void leave(std::string_view failure) override { post_.leave(rank_, failure); }
    void wait(int) override { std::this_thread::yield(); }

  private:
    struct Sent : Ticket {
        bool is_done() override { return true; }
    };
    struct Awaited : Ticket {
        Awaited(Post& post, const Post::Box& box, void* to, size_t count)
            : post(post), box(box), turn(post.ask(box)), to(to), count(count) {}
        bool is_done() override {
            if (!done) done = post.receive(box, turn, to, count);
            return done;
        }
        Post& post;
        Post::Box box;
        int64_t turn;
        void* to;
        size_t count;
        bool done = false;
    };
    Post& post_;
    const int rank_;
};

// What each rank failed with.
std::vector<std::string> run(int ranks, const std::function<void(Communicator&)>& f, int of_a_host = 0,
                             int64_t* far_bytes = nullptr) {
    Post post(ranks, of_a_host);
    std::vector<std::string> failures(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            MessageCommunicator c(std::make_unique<PostTransport>(post, rank));
            try {
                f(c);
            } catch (const std::exception& e) {
                failures[static_cast<size_t>(rank)] = e.what();
            }
        });
    for (std::thread& thread : threads) thread.join();
    if (far_bytes) *far_bytes = post.far_bytes;
    return failures;
}

TEST(Messages, HostsAddUpBeforeTheNetworkDoes) {
    // The same bits for every kind of request; large sums cross the network once for each host, not for each rank.
    for (const auto& [ranks, of_a_host] : {std::pair{4, 2}, {6, 2}, {8, 4}, {6, 3}, {5, 2}})
        for (const std::string& failure : run(
                 ranks, [](Communicator& c) { EngineChecks(c, 5).run(40); }, of_a_host))
            EXPECT_EQ(failure, "");
    constexpr int64_t kCount = 100'000;
    int64_t far_bytes = 0;
    run(
        8,
        [](Communicator& c) {
            std::vector<float> x(kCount, 1.0F);
            Request r;
            r.operation = Collective::all_reduce;
            r.count = kCount;
            r.in = r.out = x.data();
            c.run(r);
            EXPECT_EQ(x, std::vector<float>(kCount, 8.0F));
        },
        4, &far_bytes);
    // Each of two hosts sends half of the tensor's sums, and then half of the results.
    EXPECT_LT(far_bytes, 2 * kCount * 4 + 20'000);
}

TEST(Messages, EveryRequestMeansTheSame) {
    for (const int ranks : {1, 2, 3, 5})
        for (const std::string& failure : run(ranks, [](Communicator& c) { EngineChecks(c, 1).run(60); }))
            EXPECT_EQ(failure, "");
}

TEST(Messages, KeysOfGroupsDiffer) {
    // All lists of up to 4 of 5 ranks.
    std::map<uint64_t, std::vector<int>> lists;
    const std::function<void(std::vector<int>)> extend = [&](std::vector<int> list) {
        if (!list.empty()) {
            EXPECT_TRUE(lists.emplace(Group(list, 0).key(), list).second);
        }
        for (int rank = 0; rank < 5 && list.size() < 4; ++rank)
            if (std::find(list.begin(), list.end(), rank) == list.end()) {
                std::vector<int> longer = list;
                longer.push_back(rank);
                extend(longer);
            }
    };
    extend({});
    EXPECT_EQ(lists.size(), 5 + 20 + 60 + 120);
}

TEST(Messages, ChecksHoldForSharedMemoryToo) {
    run_simulated(3, [](Communicator& c) { EngineChecks(c, 2).run(60); });
}

Request all_reduce(int64_t count, const void* in, void* out, std::string_view place) {
    Request r;
    r.operation = Collective::all_reduce;
    r.count = count;
    r.in = in;
    r.out = out;
    r.label.place = place;
    return r;
}

TEST(Messages, DisagreementTellsBothSides) {
    for (const int ranks : {2, 3, 6}) {
        const auto failures = run(ranks, [&](Communicator& c) {
            std::vector<float> x(10);
            c.run(all_reduce(4, x.data(), x.data(), "train.lua:7"));
            if (c.rank() == ranks - 1)
                c.run(all_reduce(9, x.data(), x.data(), "train.lua:9"));
            else
                c.run(all_reduce(10, x.data(), x.data(), "train.lua:8"));
        });
        for (int rank = 0; rank < ranks; ++rank) {
            const std::string& text = failures[static_cast<size_t>(rank)];
            EXPECT_NE(text.find("(float32, 10 elements), train.lua:8"), std::string::npos) << text;
            EXPECT_NE(text.find("(float32, 9 elements), train.lua:9"), std::string::npos) << text;
        }
    }
}

TEST(Messages, GroupsThatDifferAreFound) {
    const auto failures = run(3, [](Communicator& c) {
        float x = 1;
        Request r = all_reduce(1, &x, &x, "a.lua:1");
        const std::vector<int> pair = {0, 1};
        if (c.rank() < 1) r.group = &c.group(pair);
        c.run(r);
    });
    EXPECT_NE(failures[0].find("rank 1 asks for"), std::string::npos) << failures[0];
}

TEST(Messages, RankThatHasLeftOrFailedIsTold) {
    const auto failures = run(3, [](Communicator& c) {
        float x = 1;
        if (c.rank() == 2) return;
        c.run(all_reduce(1, &x, &x, "a.lua:1"));
    });
    EXPECT_NE((failures[0] + failures[1])
                  .find("waits for rank 2 in all_reduce #1 (float32, 1 element), a.lua:1; but rank 2 has left"),
              std::string::npos)
        << failures[0] << failures[1];
    EXPECT_EQ(failures[2], "");
}

TEST(Messages, TransfersAreCompared) {
    const auto failures = run(2, [](Communicator& c) {
        std::vector<float> x(8);
        Request r;
        r.operation = c.rank() == 0 ? Collective::send : Collective::recv;
        r.count = 8;
        r.dtype = c.rank() == 0 ? DType::f32 : DType::i32;
        r.root = 1 - c.rank();
        r.in = r.out = x.data();
        r.label.place = "b.lua:3";
        c.run(r);
    });
    EXPECT_NE(failures[1].find("int32"), std::string::npos) << failures[1];
    EXPECT_NE(failures[1].find("rank 0 asks for send"), std::string::npos) << failures[1];
}

}  // namespace
}  // namespace lunaria::parallel
