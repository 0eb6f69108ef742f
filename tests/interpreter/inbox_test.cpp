#include "interpreter/serve/inbox.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace lunaria::serve {
namespace {

Question question(std::string_view name) {
    Question asked;
    asked.method = "POST";
    asked.path = {std::string(name)};
    return asked;
}

std::string body_of(Answer answer) {
    if (!answer.more) return answer.body;
    std::string all;
    while (answer.more(all)) {
    }
    return all;
}

TEST(InboxTest, each_request_gets_its_own_answer) {
    Inbox inbox(64);
    std::vector<std::future<std::string>> asked;
    for (int i = 0; i < 32; ++i)
        asked.push_back(
            std::async(std::launch::async, [&inbox, i] { return inbox.ask(question(std::to_string(i))).body; }));
    for (int i = 0; i < 32; ++i) {
        const auto exchange = inbox.next(10);
        ASSERT_TRUE(exchange);
        Answer answer;
        answer.body = "to " + std::string(exchange->question().part(0));
        exchange->answer(std::move(answer));
        exchange->answer(error_answer(500, "a second answer changes nothing"));
    }
    for (int i = 0; i < 32; ++i) EXPECT_EQ(asked[static_cast<size_t>(i)].get(), "to " + std::to_string(i));
    EXPECT_EQ(inbox.next(0), nullptr);
    const std::string figures = inbox
                                    .ask([] {
                                        Question asks = question("metrics");
                                        asks.method = "GET";
                                        return asks;
                                    }())
                                    .body;
    EXPECT_NE(figures.find("lunaria_requests_total{status=\"200\"} 32\n"), std::string::npos) << figures;
    EXPECT_NE(figures.find("lunaria_requests_open 0\n"), std::string::npos) << figures;
}

TEST(InboxTest, a_stream_gives_its_parts_and_says_when_they_are_not_read) {
    Inbox inbox(4);
    auto asked = std::async(std::launch::async, [&] { return body_of(inbox.ask(question("a"))); });
    auto exchange = inbox.next(10);
    exchange->begin({});
    EXPECT_TRUE(exchange->add("one "));
    EXPECT_TRUE(exchange->add("two"));
    exchange->end();
    EXPECT_EQ(asked.get(), "one two");
    EXPECT_FALSE(exchange->add("three"));

    auto left = std::async(std::launch::async, [&] { return inbox.ask(question("b")).status; });
    exchange = inbox.next(10);
    exchange->begin({});
    EXPECT_EQ(left.get(), 200);  // the answer is gone with its reader
    EXPECT_FALSE(exchange->add("not read"));
}

TEST(InboxTest, what_is_too_much_is_refused) {
    Inbox inbox(1);
    auto first = std::async(std::launch::async, [&] { return inbox.ask(question("first")).status; });
    while (inbox.waiting() == 0) std::this_thread::yield();
    EXPECT_EQ(inbox.ask(question("second")).status, 503);
    inbox.next(10)->answer({});
    EXPECT_EQ(first.get(), 200);
}

TEST(InboxTest, closing_ends_everything) {
    Inbox inbox(4);
    auto streamed = std::async(std::launch::async, [&] { return body_of(inbox.ask(question("stream"))); });
    const auto stream = inbox.next(10);
    stream->begin({});
    EXPECT_TRUE(stream->add("begun"));
    auto held = std::async(std::launch::async, [&] { return inbox.ask(question("held")).status; });
    const auto kept = inbox.next(10);
    auto waiting = std::async(std::launch::async, [&] { return inbox.ask(question("waiting")).status; });
    while (inbox.waiting() == 0) std::this_thread::yield();
    inbox.close();
    EXPECT_EQ(streamed.get(), "begun");
    EXPECT_EQ(held.get(), 503);
    EXPECT_EQ(waiting.get(), 503);
    EXPECT_EQ(inbox.ask(question("late")).status, 503);
}

}  // namespace
}  // namespace lunaria::serve
