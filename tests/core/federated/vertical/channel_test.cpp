#include "core/federated/vertical/channel.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.h"
#include "core/io/socket.h"

namespace lunaria::federated {
namespace {

constexpr const char* kKey = "0123456789abcdef";

ChannelOptions options_of(const std::string& own, const std::string& key = kKey, double seconds = 5) {
    ChannelOptions o;
    o.own_name = own;
    o.seconds = seconds;
    o.key_of = [key](const std::string& peer) { return peer == "stranger" ? "" : key; };
    return o;
}

std::string problem_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

// Two sides that meet; what each failed with.
struct Meeting {
    std::unique_ptr<Channel> caller, callee;
    std::string caller_problem, callee_problem;
};

Meeting meet(const ChannelOptions& caller, const ChannelOptions& callee, const std::string& wanted = "b") {
    const Descriptor listener(listen_at("127.0.0.1", 0).release());
    Meeting m;
    std::thread other([&] { m.callee_problem = problem_of([&] { m.callee = accept_party(listener, callee); }); });
    m.caller_problem = problem_of([&] { m.caller = call_party("127.0.0.1", port_of(listener), wanted, caller); });
    other.join();
    return m;
}

TEST(Channel, MessagesArriveAsTheyWereSent) {
    Meeting m = meet(options_of("a"), options_of("b"));
    ASSERT_TRUE(m.caller && m.callee) << m.caller_problem << m.callee_problem;
    EXPECT_EQ(m.caller->peer(), "b");
    EXPECT_EQ(m.callee->peer(), "a");
    const std::string large(3'000'000, 'x');
    std::thread sender([&] {
        m.caller->send("one");
        m.caller->send("");
        m.caller->send(large);
    });
    EXPECT_EQ(m.callee->receive(), "one");
    EXPECT_EQ(m.callee->receive(), "");
    EXPECT_EQ(m.callee->receive(), large);
    sender.join();
    m.callee->send("back");
    EXPECT_EQ(m.caller->receive(), "back");
}

TEST(Channel, ASideWithoutTheKeyIsTold) {
    const Meeting m = meet(options_of("a", "another key of it"), options_of("b", kKey, 1));
    EXPECT_NE(m.caller_problem.find("'b' does not have the same key"), std::string::npos) << m.caller_problem;
    EXPECT_NE(m.callee_problem.find("no party has come within 1 seconds"), std::string::npos) << m.callee_problem;
    EXPECT_NE(m.callee_problem.find("'a' has called and not shown that it has the key"), std::string::npos)
        << m.callee_problem;
    EXPECT_EQ(m.callee_problem.find(kKey), std::string::npos);
}

TEST(Channel, StrangersAndOtherNamesAreRefused) {
    const Meeting stranger = meet(options_of("stranger"), options_of("b", kKey, 1));
    EXPECT_NE(stranger.caller_problem.find("'b' has no key for a party 'stranger'"), std::string::npos)
        << stranger.caller_problem;
    EXPECT_NE(stranger.callee_problem.find("for which there is no key"), std::string::npos) << stranger.callee_problem;
    const Meeting other = meet(options_of("a"), options_of("c", kKey, 1));
    EXPECT_NE(other.caller_problem.find("is 'c', not 'b'"), std::string::npos) << other.caller_problem;
}

TEST(Channel, WhatConnectsAndSaysOtherThingsIsDropped) {
    const Descriptor listener(listen_at("127.0.0.1", 0).release());
    std::unique_ptr<Channel> callee;
    std::thread other([&] { callee = accept_party(listener, options_of("b")); });
    for (const std::string& text :
         {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x05\x00\x00\x00hello", 9), std::string()}) {
        Descriptor socket(connect_to("127.0.0.1", port_of(listener)).release());
        ASSERT_TRUE(socket);
        if (!text.empty()) send_all(socket, text, 1);
    }
    // The party itself still comes in.
    const auto caller = call_party("127.0.0.1", port_of(listener), "b", options_of("a"));
    other.join();
    ASSERT_TRUE(callee);
    caller->send("x");
    EXPECT_EQ(callee->receive(), "x");
}

// A machine between two parties, which passes on what it gets and changes the bytes at some place of the stream from
// the caller.
std::string with_change_at(size_t place) {
    const Descriptor outer(listen_at("127.0.0.1", 0).release()), inner(listen_at("127.0.0.1", 0).release());
    std::string problem;
    std::thread callee([&] {
        problem = problem_of([&] {
            const auto channel = accept_party(inner, options_of("b", kKey, 1));
            channel->receive();
        });
    });
    std::thread between([&] {
        const Descriptor from(accept_from(outer, 3000).release()),
            to(connect_to("127.0.0.1", port_of(inner)).release());
        const auto pass = [](const Descriptor& source, const Descriptor& target, size_t change) {
            problem_of([&] {
                for (size_t at = 0;; ++at) {
                    char byte = 0;
                    receive_all(source, &byte, 1, 0.7);
                    send_all(target, {&(byte ^= static_cast<char>(at == change)), 1}, 1);
                }
            });
        };
        std::thread back([&] { pass(to, from, size_t{1} << 40); });
        pass(from, to, place);
        back.join();
    });
    problem_of([&] {
        auto channel = call_party("127.0.0.1", port_of(outer), "b", options_of("a", kKey, 1));
        channel->send("a message of some length");
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    });
    between.join();
    callee.join();
    return problem;
}

TEST(Channel, AChangedByteIsNoticedWhereverItIs) {
    EXPECT_EQ(with_change_at(size_t{1} << 40), "");
    // In the own key of the greeting, in the proof, in the sealed message, in its tag.
    for (const size_t place : {30, 60, 75, 105, 130}) EXPECT_NE(with_change_at(place), "") << place;
}

TEST(Channel, LimitsAndPatience) {
    ChannelOptions small = options_of("b", kKey, 0.3);
    small.most = 100;
    Meeting m = meet(options_of("a"), small);
    ASSERT_TRUE(m.caller && m.callee) << m.caller_problem << m.callee_problem;
    EXPECT_NE(problem_of([&] { m.callee->receive(); }).find("nothing has come for 0.3 seconds"), std::string::npos);
    EXPECT_NE(problem_of([&] { m.callee->send(std::string(101, 'x')); }).find("beyond the limit of 100 bytes"),
              std::string::npos);
    m.caller->send(std::string(200, 'x'));
    EXPECT_NE(problem_of([&] { m.callee->receive(); }).find("no whole message has come"), std::string::npos);
    m.callee.reset();
    EXPECT_NE(problem_of([&] { m.caller->receive(); }).find("a connection has ended"), std::string::npos);
    EXPECT_NE(
        problem_of([] { call_party("127.0.0.1", 1, "b", options_of("a", kKey, 0.1)); }).find("nothing listens at"),
        std::string::npos);
}

}  // namespace
}  // namespace lunaria::federated
