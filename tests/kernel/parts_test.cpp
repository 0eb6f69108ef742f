// The parts of the kernel that need no socket.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "kernel/history.h"
#include "kernel/requests.h"
#include "kernel/streams.h"
#include "kernel/text.h"

namespace lunaria::jupyter {
namespace {

TEST(Requests, fill_in_defaults_and_name_what_is_wrong) {
    nl::json content = {{"code", "x"}, {"stop_on_error", nullptr}};
    EXPECT_FALSE(complete_content("execute_request", content));
    EXPECT_EQ(content["stop_on_error"], true);
    EXPECT_EQ(content["user_expressions"], nl::json::object());
    content = {{"code", "x"}, {"cursor_pos", 1e300}};
    EXPECT_FALSE(complete_content("complete_request", content));
    EXPECT_EQ(content["cursor_pos"], 2147483647);
    content = {{"code", "x"}, {"cursor_pos", 0.5}};
    EXPECT_EQ(*complete_content("complete_request", content),
              "cursor_pos of complete_request must be an integer, got number");
    content = nl::json::object();
    EXPECT_EQ(*complete_content("execute_request", content), "execute_request has no code");
    EXPECT_TRUE(complete_content("nonsense", content));
    EXPECT_EQ(reply_type("execute_request"), "execute_reply");
    EXPECT_EQ(reply_type("comm_msg"), "");
}

TEST(Text, counts_code_points) {
    const std::string text = "a\u00e4\U0001f319z";
    EXPECT_EQ(byte_position(text, 0), 0u);
    EXPECT_EQ(byte_position(text, 2), 3u);
    EXPECT_EQ(byte_position(text, 3), 7u);
    EXPECT_EQ(byte_position(text, 99), text.size());
    EXPECT_EQ(byte_position(text, -1), text.size());
    EXPECT_EQ(code_point_position(text, 7), 3);
    EXPECT_EQ(code_point_position(text, text.size()), 4);
}

TEST(Text, writes_base64) {
    EXPECT_EQ(base64(""), "");
    EXPECT_EQ(base64("M"), "TQ==");
    EXPECT_EQ(base64("Ma"), "TWE=");
    EXPECT_EQ(base64("Man"), "TWFu");
    EXPECT_EQ(base64("\xff\xfe\xfd\xfc"), "//79/A==");
}

TEST(Streams, keep_characters_whole_and_the_order) {
    std::string seen;
    Streams streams([&](const char* name, std::string text) { seen += std::string(name) + ":" + text + "|"; }, [] {});
    streams.write(false, "a\xe2");
    streams.flush();
    EXPECT_EQ(seen, "stdout:a|");
    streams.write(false, "\x82\xac");
    streams.write(true, "e");
    streams.write(false, "b\xf0\x9f");
    streams.finish_cell();
    EXPECT_EQ(seen, "stdout:a|stdout:\u20ac|stderr:e|stdout:b|stdout:\xf0\x9f|");
}

TEST(Streams, know_a_half_character) {
    EXPECT_EQ(incomplete_tail(""), 0u);
    EXPECT_EQ(incomplete_tail("abc"), 0u);
    EXPECT_EQ(incomplete_tail("\xe2\x82\xac"), 0u);
    EXPECT_EQ(incomplete_tail("x\xe2\x82"), 2u);
    EXPECT_EQ(incomplete_tail("\xf0\x9f\x8c"), 3u);
    // Bytes that begin nothing are not waited for.
    EXPECT_EQ(incomplete_tail("\x80\x80\x80\x80"), 0u);
}

TEST(Streams, are_due_soon_after_the_first_text) {
    int wakes = 0;
    std::string seen;
    Streams streams([&](const char*, std::string text) { seen += text; }, [&] { ++wakes; });
    EXPECT_FALSE(streams.due());
    streams.write(false, "a");
    streams.write(false, "b");
    EXPECT_EQ(wakes, 1);
    ASSERT_TRUE(streams.due());
    while (Streams::Clock::now() < *streams.due()) usleep(1000);
    streams.flush_due();
    EXPECT_EQ(seen, "ab");
    EXPECT_FALSE(streams.due());
}

class HistoryTest : public ::testing::Test {
  protected:
    HistoryTest() { std::filesystem::remove(path_); }
    ~HistoryTest() override { std::filesystem::remove(path_); }

    std::string codes(const nl::json& reply) {
        std::string text;
        for (const auto& row : reply["history"])
            text += std::to_string(row[0].get<int>()) + "/" + std::to_string(row[1].get<int>()) + ":" +
                    row[2].get<std::string>() + " ";
        return text;
    }

    std::string path_ = ::testing::TempDir() + "lunaria-history-" + std::to_string(getpid());
    int line_ = 0;
    History history() {
        return History(path_, [this] { return ++line_; });
    }
};

TEST_F(HistoryTest, is_kept_between_sessions) {
    {
        History first = history();
        first.store_inputs(0, 0, "a");
        first.store_inputs(0, 0, "b");
    }
    line_ = 0;
    History second = history();
    EXPECT_EQ(codes(second.get_tail(5, true, false)), "1/1:a 1/2:b ");
    second.store_inputs(0, 0, "c");
    EXPECT_EQ(codes(second.get_tail(2, true, false)), "1/2:b 2/1:c ");
    EXPECT_EQ(codes(second.get_range(0, 1, 9, true, false)), "2/1:c ");
    EXPECT_EQ(codes(second.get_range(-1, 1, 2, true, false)), "1/1:a ");
    EXPECT_EQ(codes(second.get_range(-7, 1, 2, true, false)), "");
    EXPECT_EQ(codes(second.get_range(1, 2, 3, true, false)), "1/2:b ");
}

TEST_F(HistoryTest, two_sessions_at_a_time_do_not_mix) {
    History one = history(), two = history();
    one.store_inputs(0, 0, "one");
    two.store_inputs(0, 0, "two");
    one.store_inputs(0, 0, "one");
    EXPECT_EQ(codes(two.get_range(1, 0, 99, true, false)), "1/1:one 1/3:one ");
    EXPECT_EQ(codes(two.get_range(0, 0, 99, true, false)), "2/2:two ");
}

TEST_F(HistoryTest, lines_that_are_broken_are_left_out) {
    {
        std::ofstream file(path_);
        file << "nonsense\n{\"s\": 1}\n{\"s\": \"x\", \"n\": 1, \"c\": 2}\n{\"s\": 4, \"n\": 2, \"c\": "
                "\"good\"}\n{\"s\": 4, \"n\"";
    }
    History h = history();
    h.store_inputs(0, 0, "mine");
    EXPECT_EQ(codes(h.get_tail(9, true, false)), "4/2:good 5/1:mine ");
    EXPECT_EQ(codes(history().get_tail(9, true, false)), "4/2:good 5/1:mine ");
}

TEST_F(HistoryTest, is_searched_by_patterns) {
    History h = history();
    for (const char* code : {"alpha", "beta", "alpha", "gamma"}) h.store_inputs(0, 0, code);
    EXPECT_EQ(codes(h.search("a*", true, false, 9, false)), "1/1:alpha 1/3:alpha ");
    EXPECT_EQ(codes(h.search("a*", true, false, 9, true)), "1/3:alpha ");
    EXPECT_EQ(codes(h.search("*a*", true, false, 2, false)), "1/3:alpha 1/4:gamma ");
    EXPECT_EQ(codes(h.search("?eta", true, false, 9, false)), "1/2:beta ");
    EXPECT_FALSE(glob_matches(std::string(1000, '*') + "x", std::string(2000, 'a')));
    EXPECT_TRUE(glob_matches("", ""));
    EXPECT_TRUE(glob_matches("**", ""));
}

TEST_F(HistoryTest, lives_without_a_file) {
    History h("/proc/nonexistent/folder/file", [this] { return ++line_; });
    h.store_inputs(0, 0, "x");
    EXPECT_EQ(codes(h.get_tail(3, true, false)), "1/1:x ");
}

}  // namespace
}  // namespace lunaria::jupyter
