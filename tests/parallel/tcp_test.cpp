#include "core/parallel/tcp.h"

#include <chrono>
#include <thread>

#include "core/io/socket.h"
#include "core/parallel/partner.h"
#include "core/parallel/rendezvous.h"
#include "tests/parallel/engine_checks.h"

namespace lunaria::parallel {
namespace {

std::string free_address() { return "127.0.0.1:" + std::to_string(port_of(listen_at("127.0.0.1", 0))); }

Environment place(int rank, int ranks, const std::string& address) {
    Environment e;
    e.rank = rank;
    e.ranks = ranks;
    e.job = "test";
    e.secret = "not told";
    e.address = address;
    return e;
}

// What each rank failed with.
std::vector<std::string> run(int ranks, const std::function<void(Communicator&)>& f) {
    const std::string address = free_address();
    std::vector<std::string> failures(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            try {
                const auto c = make_tcp(place(rank, ranks, address), 20);
                f(*c);
            } catch (const std::exception& e) {
                failures[static_cast<size_t>(rank)] = e.what();
            }
        });
    for (std::thread& thread : threads) thread.join();
    return failures;
}

TEST(Tcp, EveryRequestMeansTheSame) {
    for (const int ranks : {1, 2, 4})
        for (const std::string& failure : run(ranks, [](Communicator& c) { EngineChecks(c, 4).run(60); }))
            EXPECT_EQ(failure, "");
}

TEST(Tcp, LargeMessagesPassOneAnother) {
    const auto failures = run(2, [](Communicator& c) {
        constexpr int64_t kCount = 3'000'000;
        std::vector<int32_t> large(kCount, c.rank() + 1), got(kCount, 0);
        Request send, recv;
        send.operation = Collective::send;
        recv.operation = Collective::recv;
        send.dtype = recv.dtype = DType::i32;
        send.count = recv.count = kCount;
        send.root = recv.root = 1 - c.rank();
        send.in = large.data();
        recv.out = got.data();
        // Sends first: none of them can be done before the other side reads.
        const Pending sent = c.start(send);
        float x = 1, sum = 0;
        Request r;
        r.operation = Collective::all_reduce;
        r.count = 1;
        r.in = &x;
        r.out = &sum;
        c.run(r);
        EXPECT_EQ(sum, 2);
        c.run(recv);
        sent.wait();
        EXPECT_EQ(got, std::vector<int32_t>(kCount, 2 - c.rank()));
    });
    for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(Tcp, RankThatHasGoneIsTold) {
    const auto begin = std::chrono::steady_clock::now();
    const auto failures = run(3, [](Communicator& c) {
        if (c.rank() == 1) return;
        float x = 1;
        Request r;
        r.operation = Collective::all_reduce;
        r.count = 1;
        r.in = r.out = &x;
        r.label = {"a.lua:4", "fc1.weight"};
        c.run(r);
    });
    EXPECT_NE(
        (failures[0] + failures[2])
            .find("waits for rank 1 in all_reduce #1 (float32, 1 element) of fc1.weight, a.lua:4; but rank 1 has left"),
        std::string::npos)
        << failures[0] << failures[2];
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(20));  // not the ten minutes of its patience
}

TEST(Tcp, RankThatDoesNotComeIsToldAfterAWhile) {
    const double before = patience();
    set_patience(0.3);
    const auto failures = run(2, [](Communicator& c) {
        std::vector<float> x(4);
        Request r;
        r.operation = Collective::broadcast;
        r.count = 4;
        r.in = r.out = x.data();
        r.label.place = "a.lua:3";
        c.run(r);
        if (c.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
        if (c.rank() == 1) return;
        r.label.place = "a.lua:4";
        c.run(r);
    });
    set_patience(before);
    EXPECT_NE(
        failures[0].find("rank 0 waits for rank 1 in broadcast #2 (float32, 4 elements, root 0), a.lua:4 for more "
                         "than 0.3 s"),
        std::string::npos)
        << failures[0];
}

TEST(Rendezvous, AllLearnTheTextsOfAll) {
    const std::string address = free_address();
    std::vector<std::thread> threads;
    for (int rank = 2; rank >= 0; --rank)
        threads.emplace_back([&, rank] {
            const auto texts = meet({address, "job", "secret", rank, 3, 20},
                                    [&](const std::string& host) { return str(host, "/", rank); });
            EXPECT_EQ(texts, (std::vector<std::string>{"127.0.0.1/0", "127.0.0.1/1", "127.0.0.1/2"}));
        });
    for (std::thread& thread : threads) thread.join();
}

std::string problem_of(const Meeting& meeting) {
    try {
        meet(meeting, [](const std::string&) { return "x"; });
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Rendezvous, StrangersAndNonsenseAreNoRanks) {
    const std::string address = free_address();
    const auto [host, port] = split_address(address);
    std::string of_host;
    std::thread rank_0([&] { of_host = problem_of({address, "job", "secret", 0, 2, 1.0}); });
    // Neither the wrong secret nor the wrong job comes in, nor a program that talks something else.
    std::thread others[] = {
        std::thread([&] {
            EXPECT_NE(problem_of({address, "job", "guess", 1, 2, 0.3}).find("has not found rank 0"), std::string::npos);
        }),
        std::thread([&] {
            EXPECT_NE(problem_of({address, "other", "secret", 1, 2, 0.3}).find("has not found"), std::string::npos);
        })};
    for (std::thread& other : others) other.join();
    Descriptor socket(connect_to(host, port).release());
    send_all(socket, "GET / HTTP/1.1\r\n\r\n", 1);
    EXPECT_NE(problem_of({address, "job", "secret", 1, 3, 5}).find("rank 0 counts 2 ranks and rank 1 counts 3"),
              std::string::npos);
    rank_0.join();
    EXPECT_NE(of_host.find("rank 1 of 2 did not come to"), std::string::npos) << of_host;
}

TEST(Rendezvous, NobodyMeetsItself) {
    // The system gives connections every second port of a range in turn, those that it does not give to listeners
    // first.
    const int port = split_address(free_address()).second + 1;
    for (int i = 0; i < 30'000; ++i) {
        const Descriptor socket(connect_to("127.0.0.1", port).release());
        if (socket) {
            ASSERT_NE(port_of(socket), port) << "after " << i;
        }
    }
}

TEST(Rendezvous, NextPortIsTriedWhereOneIsTaken) {
    const Descriptor taken(listen_at("127.0.0.1", 0).release());
    const std::string address = str("127.0.0.1:", port_of(taken));
    std::thread rank_0([&] { EXPECT_EQ(problem_of({address, "job", "", 0, 2, 20}), ""); });
    EXPECT_EQ(problem_of({address, "job", "", 1, 2, 20}), "");
    rank_0.join();
}

TEST(Rendezvous, Addresses) {
    EXPECT_EQ(split_address("[::1]:80"), (std::pair<std::string, int>("::1", 80)));
    for (const char* text : {"host", "host:", ":80", "host:99999", "host:8x"})
        EXPECT_THROW(split_address(text), Error) << text;
    EXPECT_NE(problem_of({"", "job", "", 0, 2, 1}).find("no address is known"), std::string::npos);
}

}  // namespace
}  // namespace lunaria::parallel
