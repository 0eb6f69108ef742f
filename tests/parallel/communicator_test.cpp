#include "core/parallel/communicator.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/parallel/combine.h"
#include "core/parallel/simulated.h"

namespace lunaria::parallel {
namespace {

// Sizes of one step, of several, and of none.
const std::vector<int64_t> kSizes = {0, 1, 3, 4, 5, 511, 513, 9001, 200'003};

float value(int rank, int64_t i) { return static_cast<float>(rank + 1) + static_cast<float>(i % 1000) * 0.125f; }

std::vector<float> filled(int rank, int64_t count) {
    std::vector<float> x(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) x[i] = value(rank, i);
    return x;
}

Request request(Collective operation, int64_t count, const void* in, void* out) {
    Request r;
    r.operation = operation;
    r.count = count;
    r.in = in;
    r.out = out;
    return r;
}

TEST(Communicator, reduces_to_all_ranks) {
    for (const int n : {1, 2, 3, 5}) {
        run_simulated(n, [&](Communicator& c) {
            for (const int64_t size : kSizes) {
                const std::vector<float> x = filled(c.rank(), size);
                std::vector<float> y(x.size());
                c.run(request(Collective::all_reduce, size, x.data(), y.data()));
                std::vector<float> in_place = x;
                c.run(request(Collective::all_reduce, size, in_place.data(), in_place.data()));
                for (int64_t i = 0; i < size; ++i) {
                    float sum = 0;  // exact: multiples of 1/8
                    for (int rank = 0; rank < n; ++rank) sum += value(rank, i);
                    ASSERT_EQ(y[i], sum) << n << " ranks, element " << i << " of " << size;
                    ASSERT_EQ(in_place[i], sum);
                }
                Request to_one = request(Collective::reduce, size, x.data(), y.data());
                to_one.root = n - 1;
                to_one.combine = Combine::max;
                std::fill(y.begin(), y.end(), -1.0f);
                c.run(to_one);
                for (int64_t i = 0; i < size; ++i) ASSERT_EQ(y[i], c.rank() == n - 1 ? value(n - 1, i) : -1.0f);
            }
        });
    }
}

TEST(Communicator, moves_pieces) {
    for (const int n : {1, 2, 3, 5}) {
        run_simulated(n, [&](Communicator& c) {
            for (const int64_t size : kSizes) {
                const auto piece = static_cast<size_t>(size), all = piece * static_cast<size_t>(n);
                const std::vector<float> own = filled(c.rank(), size);
                std::vector<float> whole(all, -1), part(piece, -1);
                c.run(request(Collective::all_gather, size, own.data(), whole.data()));
                for (size_t i = 0; i < all; ++i)
                    ASSERT_EQ(whole[i], value(static_cast<int>(i / piece), static_cast<int64_t>(i % piece)));

                c.run(request(Collective::reduce_scatter, size, whole.data(), part.data()));
                for (size_t i = 0; i < piece; ++i)
                    ASSERT_EQ(part[i], static_cast<float>(n) * value(c.rank(), static_cast<int64_t>(i)));

                Request scatter = request(Collective::scatter, size, whole.data(), part.data());
                scatter.root = n / 2;
                c.run(scatter);
                ASSERT_EQ(part, own);

                std::vector<float> gathered(all, -1);
                Request gather = request(Collective::gather, size, part.data(), gathered.data());
                gather.root = n / 2;
                c.run(gather);
                if (c.rank() == n / 2) {
                    ASSERT_EQ(gathered, whole);
                }

                // Piece j of rank i becomes piece i of rank j.
                std::vector<float> mine(all), theirs(all);
                for (size_t i = 0; i < all; ++i)
                    mine[i] = static_cast<float>(c.rank() * 100 + static_cast<int>(i / piece));
                c.run(request(Collective::all_to_all, size, mine.data(), theirs.data()));
                for (size_t i = 0; i < all; ++i)
                    ASSERT_EQ(theirs[i], static_cast<float>(static_cast<int>(i / piece) * 100 + c.rank()));

                Request broadcast = request(Collective::broadcast, size, part.data(), part.data());
                broadcast.root = n - 1;
                c.run(broadcast);
                ASSERT_EQ(part, filled(n - 1, size));
                c.run(request(Collective::barrier, 0, nullptr, nullptr));
            }
        });
    }
}

TEST(Communicator, moves_pieces_of_different_sizes) {
    for (const int64_t scale : {1, 1000, 70'000}) {
        run_simulated(3, [&](Communicator& c) {
            const std::vector<int64_t> counts = {2 * scale, 0, 3 * scale};
            const auto own = static_cast<size_t>(counts[c.rank()]);
            const std::vector<float> x = filled(c.rank(), counts[c.rank()]);
            std::vector<float> whole(5 * scale);
            Request gather = request(Collective::all_gather, 0, x.data(), whole.data());
            gather.counts = counts;
            c.run(gather);
            std::vector<float> expected = filled(0, 2 * scale);
            const std::vector<float> last = filled(2, 3 * scale);
            expected.insert(expected.end(), last.begin(), last.end());
            ASSERT_EQ(whole, expected);

            std::vector<float> piece(own);
            Request sums = request(Collective::reduce_scatter, 0, whole.data(), piece.data());
            sums.counts = counts;
            c.run(sums);
            for (size_t i = 0; i < own; ++i) ASSERT_EQ(piece[i], 3 * x[i]);

            // Rank i sends i + j + 1 times scale elements to rank j.
            std::vector<int64_t> sends, receives;
            for (int j = 0; j < 3; ++j) sends.push_back((c.rank() + j + 1) * scale);
            receives = sends;
            std::vector<float> out,
                in(static_cast<size_t>(std::accumulate(receives.begin(), receives.end(), int64_t{0})));
            for (int j = 0; j < 3; ++j)
                out.insert(out.end(), static_cast<size_t>(sends[j]), static_cast<float>(c.rank() * 10 + j));
            Request exchange = request(Collective::all_to_all_v, 0, out.data(), in.data());
            exchange.counts = sends;
            exchange.receive_counts = receives;
            c.run(exchange);
            size_t at = 0;
            for (int j = 0; j < 3; ++j)
                for (int64_t i = 0; i < receives[j]; ++i) ASSERT_EQ(in[at++], static_cast<float>(j * 10 + c.rank()));
        });
    }
}

TEST(Communicator, combines_every_dtype) {
    run_simulated(3, [](Communicator& c) {
        const auto reduce = [&]<class T>(T own, Combine how) {
            std::array<T, 3> x = {own, own, own};
            Request r = request(Collective::all_reduce, 3, x.data(), x.data());
            r.dtype = dtype_of<T>();
            r.combine = how;
            c.run(r);
            return x[2];
        };
        const int r = c.rank();
        EXPECT_EQ(reduce(static_cast<int8_t>(100), Combine::sum), static_cast<int8_t>(300));  // wraps
        EXPECT_EQ(reduce(static_cast<uint16_t>(40'000 + r), Combine::max), 40'002);
        EXPECT_EQ(reduce(int64_t{1} << (20 + r), Combine::product), int64_t{1} << 63);
        EXPECT_EQ(reduce(static_cast<int32_t>(r - 1), Combine::min), -1);
        EXPECT_EQ(reduce(0.5 + r, Combine::mean), 1.5);
        EXPECT_EQ(reduce(std::complex<float>(1, static_cast<float>(r)), Combine::sum), std::complex<float>(3, 3));
        EXPECT_TRUE(reduce(r == 1, Combine::max));
        EXPECT_FALSE(reduce(r == 1, Combine::min));
        EXPECT_TRUE(std::isnan(reduce(r == 1 ? NAN : 1.0f, Combine::max)));
        // 1 + 2^-8 + 2^-8 in one rounding: added one after the other, both would be lost in bfloat16.
        EXPECT_EQ(static_cast<float>(reduce(BFloat16(r == 0 ? 1.0f : 0.00390625f), Combine::sum)), 1.0078125f);
    });
}

TEST(Communicator, sums_in_the_order_of_a_tree) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> parts(8, std::vector<float>(1000));
    std::vector<const void*> all;
    for (auto& part : parts) {
        for (float& x : part) x = normal(generator);
        all.push_back(part.data());
    }
    std::vector<float> whole(1000);
    combine(Combine::sum, DType::f32, all, whole.data(), 1000);
    // Fewer ranks with several parts each, in a program's own steps.
    for (const int n : {1, 2, 4, 8})
        run_simulated(n, [&](Communicator& c) {
            const auto share = static_cast<size_t>(8 / n);
            std::vector<float> own(1000);
            combine(Combine::sum, DType::f32, std::span(all).subspan(static_cast<size_t>(c.rank()) * share, share),
                    own.data(), 1000);
            c.run(request(Collective::all_reduce, 1000, own.data(), own.data()));
            ASSERT_EQ(own, whole) << n << " ranks";
        });
}

TEST(Communicator, has_groups) {
    run_simulated(5, [](Communicator& c) {
        const std::vector<int> even = {4, 0, 2}, odd = {1, 3};
        const Group& group = c.group(c.rank() % 2 == 0 ? even : odd);
        EXPECT_EQ(&group, &c.group(group.members()));
        const auto own = static_cast<int64_t>(c.rank());
        std::vector<int64_t> members(static_cast<size_t>(group.size()));
        for (int round = 0; round < 50; ++round) {
            Request gather = request(Collective::all_gather, 1, &own, members.data());
            gather.group = &group;
            gather.dtype = DType::i64;
            c.run(gather);
            for (int i = 0; i < group.size(); ++i) ASSERT_EQ(members[i], group.world_rank(i));
            int64_t sum = 0;
            Request all = request(Collective::all_reduce, 1, &own, &sum);
            all.dtype = DType::i64;
            c.run(all);
            ASSERT_EQ(sum, 10);
        }
        EXPECT_THROW(c.group(std::vector<int>{0, 7}), Error);
        EXPECT_THROW(c.group(std::vector<int>{1, 1}), Error);
        Request of_others = request(Collective::barrier, 0, nullptr, nullptr);
        of_others.group = &c.group(c.rank() % 2 == 0 ? odd : even);
        EXPECT_THROW(c.run(of_others), Error);
    });
}

TEST(Communicator, sends_and_receives) {
    run_simulated(3, [](Communicator& c) {
        for (const int64_t size : kSizes) {
            // Round the ring, all at once: no send comes first.
            const std::vector<float> x = filled(c.rank(), size);
            std::vector<float> y(x.size());
            Request send = request(Collective::send, size, x.data(), nullptr);
            Request receive = request(Collective::recv, size, nullptr, y.data());
            send.root = (c.rank() + 1) % 3;
            receive.root = (c.rank() + 2) % 3;
            const std::vector<Request> both = {send, receive};
            c.run_together(both);
            ASSERT_EQ(y, filled(receive.root, size));
        }
        // A message with another tag is passed over.
        if (c.rank() == 0) {
            const std::vector<float> a = filled(1, 100'000), b = filled(2, 10);
            Request first = request(Collective::send, 100'000, a.data(), nullptr),
                    second = request(Collective::send, 10, b.data(), nullptr);
            first.root = second.root = 1;
            first.tag = 5;
            second.tag = 6;
            c.run(first);
            c.run(second);
        } else if (c.rank() == 1) {
            std::vector<float> a(100'000), b(10);
            Request first = request(Collective::recv, 100'000, nullptr, a.data()),
                    second = request(Collective::recv, 10, nullptr, b.data());
            first.tag = 5;
            second.tag = 6;
            c.run(second);
            c.run(first);
            EXPECT_EQ(a, filled(1, 100'000));
            EXPECT_EQ(b, filled(2, 10));
        }
    });
}

TEST(Communicator, carries_out_requests_meanwhile) {
    run_simulated(3, [](Communicator& c) {
        std::vector<std::vector<float>> x;
        for (int i = 0; i < 20; ++i) x.push_back(filled(c.rank() + i, 10'000));
        std::vector<Pending> pending;
        std::vector<float> to_left = filled(c.rank(), 300'000), from_right(300'000);
        Request receive = request(Collective::recv, 300'000, nullptr, from_right.data());
        Request send = request(Collective::send, 300'000, to_left.data(), nullptr);
        receive.root = (c.rank() + 1) % 3;
        send.root = (c.rank() + 2) % 3;
        pending.push_back(c.start(send));
        for (auto& part : x)
            pending.push_back(c.start(request(Collective::all_reduce, 10'000, part.data(), part.data())));
        pending.push_back(c.start(receive));
        // Comes after the others.
        c.run(request(Collective::all_reduce, 10'000, x[0].data(), x[0].data()));
        for (const Pending& p : pending) p.wait();
        EXPECT_TRUE(pending[3].is_done());
        for (int64_t i = 0; i < 10'000; ++i) {
            ASSERT_EQ(x[0][i], 3 * (value(0, i) + value(1, i) + value(2, i)));
            ASSERT_EQ(x[7][i], value(7, i) + value(8, i) + value(9, i));
        }
        EXPECT_EQ(from_right, filled((c.rank() + 1) % 3, 300'000));
        EXPECT_TRUE(Pending().is_done());
    });
}

TEST(Communicator, counts_what_it_moves) {
    run_simulated(4, [](Communicator& c) {
        std::vector<float> x(40), whole(160);
        c.run(request(Collective::all_reduce, 40, x.data(), x.data()));
        c.run(request(Collective::all_gather, 40, x.data(), whole.data()));
        c.run(request(Collective::all_gather, 10, x.data(), whole.data()));
        EXPECT_EQ(c.traffic(Collective::all_reduce).bytes, 240u);  // 2 * 3/4 * 160
        EXPECT_EQ(c.traffic(Collective::all_gather).bytes, 600u);
        EXPECT_EQ(c.traffic(Collective::all_gather).calls, 2u);
        c.reset_traffic();
        EXPECT_EQ(c.traffic(Collective::all_gather).calls, 0u);
    });
}

// The message of what `f` throws on each of two ranks.
std::vector<std::string> messages(const std::function<void(Communicator&)>& f) {
    std::vector<std::string> texts(2);
    run_simulated(2, [&](Communicator& c) {
        try {
            f(c);
        } catch (const Error& e) {
            texts[static_cast<size_t>(c.rank())] = e.what();
        }
    });
    return texts;
}

TEST(Communicator, tells_both_sides_where_they_disagree) {
    std::vector<float> x(8);
    std::vector<float> y(8);
    const auto ask = [](Request r, const char* place) {
        r.label = {place, "fc1.weight"};
        return r;
    };
    const auto texts = messages([&](Communicator& c) {
        if (c.rank() == 0)
            c.run(ask(request(Collective::all_reduce, 4, x.data(), x.data()), "train.lua:57"));
        else
            c.run(ask(request(Collective::broadcast, 4, y.data(), y.data()), "train.lua:90"));
    });
    EXPECT_NE(
        texts[0].find("all_reduce: rank 0 asks for all_reduce #1 (float32, 4 elements) of fc1.weight, train.lua:57; "
                      "but rank 1 asks for broadcast #1 (float32, 4 elements, root 0) of fc1.weight, train.lua:90"),
        std::string::npos)
        << texts[0];
    EXPECT_NE(texts[1].find("broadcast: rank 1 asks for"), std::string::npos) << texts[1];

    const std::vector<std::function<void(Request&)>> changes = {[](Request& r) { r.count = 5; },
                                                                [](Request& r) { r.dtype = DType::i32; },
                                                                [](Request& r) { r.combine = Combine::max; }};
    for (const auto& change : changes) {
        const auto told = messages([&](Communicator& c) {
            Request r =
                request(Collective::all_reduce, 4, c.rank() ? y.data() : x.data(), c.rank() ? y.data() : x.data());
            if (c.rank() == 1) change(r);
            c.run(r);
        });
        for (const std::string& text : told) EXPECT_NE(text.find("; but rank "), std::string::npos) << text;
    }

    const auto sent = messages([&](Communicator& c) {
        Request r = request(c.rank() ? Collective::recv : Collective::send, c.rank() ? 3 : 4, x.data(), y.data());
        r.root = 1 - c.rank();
        c.run(ask(r, c.rank() ? "b.lua:2" : "a.lua:1"));
        c.run(request(Collective::barrier, 0, nullptr, nullptr));
    });
    EXPECT_NE(sent[1].find("but rank 0 sent send #1 to place 1 with tag 0 (float32, 4 elements)"), std::string::npos)
        << sent[1];
    EXPECT_NE(sent[0].find("but rank 1 failed: recv: rank 1 asks for"), std::string::npos) << sent[0];

    const auto uneven = messages([&](Communicator& c) {
        const std::vector<int64_t> sends = {1, 2}, receives = {1, 1};
        Request r = request(Collective::all_to_all_v, 0, x.data(), y.data());
        r.counts = sends;
        r.receive_counts = receives;
        c.run(r);
    });
    EXPECT_NE(
        uneven[0].find("rank 1 sends 1") == std::string::npos ? uneven[1].find("expects 1 elements from rank 0") : 0,
        std::string::npos);
}

TEST(Communicator, tells_of_a_rank_that_ended_or_failed) {
    const auto begin = std::chrono::steady_clock::now();
    float x = 1;
    const auto ended = messages([&](Communicator& c) {
        float y = 0;
        if (c.rank() == 0) c.run(request(Collective::all_reduce, 1, &x, &y));
    });
    EXPECT_NE(ended[0].find("rank 0 waits for rank 1 in all_reduce #1 (float32, 1 element); but rank 1 has ended"),
              std::string::npos)
        << ended[0];
    const auto received = messages([&](Communicator& c) {
        float y = 0;
        Request r = request(Collective::recv, 1, nullptr, &y);
        r.root = 1;
        if (c.rank() == 0) c.run(r);
    });
    EXPECT_NE(received[0].find("but rank 1 has ended"), std::string::npos) << received[0];
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(20));  // not the ten minutes of its patience
}

TEST(Communicator, refuses_what_makes_no_sense) {
    run_simulated(2, [](Communicator& c) {
        float x = 0;
        Request r = request(Collective::broadcast, 1, &x, &x);
        r.root = 2;
        EXPECT_THROW(c.run(r), Error);
        Request own = request(Collective::send, 1, &x, nullptr);
        own.root = c.rank();
        EXPECT_THROW(c.run(own), Error);
        Request flags = request(Collective::all_reduce, 1, &x, &x);
        flags.dtype = DType::boolean;
        EXPECT_THROW(c.run(flags), Error);
        flags.dtype = DType::i32;
        flags.combine = Combine::mean;
        EXPECT_THROW(c.run(flags), Error);
        c.run(request(Collective::barrier, 0, nullptr, nullptr));  // such errors leave the ranks in step
    });
    EXPECT_THROW(run_simulated(0, [](Communicator&) {}), Error);
    EXPECT_THROW(run_simulated(2,
                               [](Communicator& c) {
                                   if (c.rank() == 1) throw value_error("test", "rank 1 fails");
                                   c.run(request(Collective::barrier, 0, nullptr, nullptr));
                               }),
                 Error);
}

}  // namespace
}  // namespace lunaria::parallel
