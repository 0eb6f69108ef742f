#include "interpreter/session/display.h"
#include "interpreter/program/program_state.h"

#include <gtest/gtest.h>

#include "interpreter/session/session.h"

namespace lunaria {
namespace {

class DisplayTest : public ::testing::Test {
  protected:
    DisplayTest() {
        Session::Hooks hooks;
        hooks.output = [this](bool, std::string_view text) { printed_ += text; };
        hooks.display = [this](const Display& display) { shown_.push_back(display); };
        hooks.clear_output = [this](bool wait) { cleared_ += wait ? "wait " : "now "; };
        hooks.comm = [this](const CommMessage& message) { comms_.push_back(message); };
        session_.set_hooks(std::move(hooks));
        options_.rich = true;
    }

    Execution run(const std::string& text) { return session_.execute(text, options_); }

    ProgramState state_;
    Session session_{state_};
    ExecuteOptions options_;
    std::string printed_, cleared_;
    std::vector<Display> shown_;
    std::vector<CommMessage> comms_;
};

TEST_F(DisplayTest, shows_values_and_bundles) {
    EXPECT_TRUE(run("display({1, 2})").ok);
    EXPECT_TRUE(run("display({['text/html'] = '<b>x</b>', ['application/json'] = {a = 1}}, {raw = true})").ok);
    ASSERT_EQ(shown_.size(), 2u);
    EXPECT_EQ(*shown_[0].bundle.find("text/plain"), "{1, 2}");
    EXPECT_EQ(*shown_[1].bundle.find("text/html"), "<b>x</b>");
    EXPECT_EQ(*shown_[1].bundle.find("application/json"), "{\"a\":1}");
    EXPECT_EQ(shown_[1].bundle.find("text/plain"), nullptr);
    EXPECT_EQ(printed_, "");
}

TEST_F(DisplayTest, updates_what_has_an_id) {
    EXPECT_TRUE(
        run("h = display('a', {id = true}); h:update('b'); update_display('c', h); update_display('d', 'x')").ok);
    ASSERT_EQ(shown_.size(), 4u);
    EXPECT_EQ(shown_[0].id.size(), 32u);
    EXPECT_FALSE(shown_[0].update);
    EXPECT_EQ(shown_[1].id, shown_[0].id);
    EXPECT_TRUE(shown_[1].update);
    EXPECT_EQ(*shown_[2].bundle.find("text/plain"), "\"c\"");
    EXPECT_EQ(shown_[3].id, "x");
}

TEST_F(DisplayTest, objects_say_how_they_look) {
    run("T = setmetatable({}, {__mime = function() return {['text/html'] = '<i>'}, {isolated = true} end})");
    const Execution shown = run("T");
    EXPECT_EQ(*shown.rich.find("text/html"), "<i>");
    EXPECT_NE(shown.rich.find("text/plain"), nullptr);
    EXPECT_EQ(shown.rich.metadata, "{\"isolated\":true}");
    // One that fails is shown as text, with the reason.
    const Execution failed = run("setmetatable({}, {__mime = function() error('stop', 0) end})");
    EXPECT_TRUE(failed.ok);
    EXPECT_NE(failed.rich.find("text/plain")->find("stop"), std::string::npos);
}

TEST_F(DisplayTest, results_have_formats_only_when_asked) {
    EXPECT_TRUE(session_.execute("1 + 1").rich.parts.empty());
    EXPECT_EQ(*run("1 + 1").rich.find("text/plain"), "2");
    EXPECT_EQ(*run("1, nil, 'a'").rich.find("text/plain"), "1\tnil\t\"a\"");
    EXPECT_TRUE(run("nil").rich.parts.empty());
    EXPECT_TRUE(run("1 + 1;").rich.parts.empty());
}

TEST_F(DisplayTest, clears_output) {
    run("clear_output() clear_output(true) clear_output{wait = true}");
    EXPECT_EQ(cleared_, "now wait wait ");
}

TEST_F(DisplayTest, comms_carry_tables_both_ways) {
    EXPECT_TRUE(run("c = ms.notebook.comm.open('target', {n = 1}); c:send({n = 2}, {buffers = {'\\0bytes'}})").ok);
    ASSERT_EQ(comms_.size(), 2u);
    EXPECT_EQ(comms_[0].kind, CommMessage::Kind::open);
    EXPECT_EQ(comms_[0].target, "target");
    EXPECT_EQ(comms_[1].data, "{\"n\":2}");
    EXPECT_EQ(comms_[1].buffers.at(0), std::string("\0bytes", 6));
    run("c:on_message(function(data, buffers) print(data.x, #buffers) end) c:on_close(function() print('closed') end)");
    using Kind = CommMessage::Kind;
    EXPECT_TRUE(session_.receive({Kind::message, comms_[0].id, "", "{\"x\": 7}", "{}", {"b"}}).ok);
    EXPECT_TRUE(session_.receive({Kind::close, comms_[0].id, "", "{}", "{}", {}}).ok);
    EXPECT_EQ(printed_, "7\t1\nclosed\n");
    EXPECT_FALSE(run("c:send{}").ok);
}

TEST_F(DisplayTest, comms_of_unknown_targets_are_closed) {
    const Execution refused = session_.receive({CommMessage::Kind::open, "id", "nobody", "{}", "{}", {}});
    ASSERT_TRUE(refused.error);
    EXPECT_NE(refused.error->message.find("nobody"), std::string::npos);
    ASSERT_EQ(comms_.size(), 1u);
    EXPECT_EQ(comms_[0].kind, CommMessage::Kind::close);
    EXPECT_EQ(comms_[0].id, "id");
}

TEST_F(DisplayTest, wrong_arguments_are_errors) {
    for (const char* text :
         {"display()", "display(1, 2)", "display(1, {idd = true})", "display(1, {raw = true})", "update_display(1)",
          "update_display(1, {})", "display({[1] = 'x'}, {raw = true})", "display({['text/html'] = {}}, {raw = true})",
          "ms.notebook.comm.open(1)", "ms.input(1)"}) {
        const Execution execution = run(text);
        EXPECT_TRUE(execution.error.has_value()) << text;
    }
    EXPECT_TRUE(shown_.empty());
}

TEST(AskedInput, reads_answers_in_every_format) {
    ProgramState state;
    Session session(state);
    std::string printed;
    std::vector<std::string> answers = {"one", "2 3", "rest", "four", "5"};
    size_t next = 0;
    Session::Hooks hooks;
    hooks.output = [&](bool, std::string_view text) { printed += text; };
    hooks.input = [&](const std::string&) -> std::optional<std::string> {
        if (next == answers.size()) return std::nullopt;
        return answers[next++];
    };
    session.set_hooks(hooks);
    EXPECT_TRUE(session
                    .execute("print(io.read(), io.read('n', 'n'), io.read('L')) print(io.stdin:read(2, 'l')) "
                             "print(io.read('a'), io.read()) for line in io.lines() do print(line) end")
                    .ok);
    EXPECT_EQ(printed, "one\t2\trest\n\nfo\tur\n5\n\tnil\n");
    EXPECT_TRUE(session.execute("io.read('x')").error);
    // Files are read as ever.
    printed.clear();
    session.execute("local f <close> = io.tmpfile() f:write('text') f:seek('set') print(f:read('a'))");
    EXPECT_EQ(printed, "text\n");
    session.set_hooks({});
}

TEST(DisplayWithoutHooks, prints_the_text) {
    ProgramState state;
    Session session(state);
    std::string printed;
    Session::Hooks hooks;
    hooks.output = [&](bool, std::string_view text) { printed += text; };
    session.set_hooks(hooks);
    session.execute("display({1}) display({['text/html'] = 'x'}, {raw = true}) clear_output()");
    EXPECT_EQ(printed, "{1}\n<text/html>\n");
}

}  // namespace
}  // namespace lunaria
