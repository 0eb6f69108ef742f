// Output of the Lua library through a session's hooks: values in their formats, bars and curves that are replaced in
// place, widgets.
#include <gtest/gtest.h>

#include "interpreter/program/program_state.h"
#include "interpreter/session/session.h"

namespace lunaria {
namespace {

class RichOutput : public ::testing::Test {
  protected:
    RichOutput() {
        Session::Hooks hooks;
        hooks.output = [this](bool, std::string_view text) { printed_ += text; };
        hooks.display = [this](const Display& display) { shown_.push_back(display); };
        hooks.comm = [this](const CommMessage& message) { comms_.push_back(message); };
        session_.set_hooks(std::move(hooks));
    }

    Execution run(const std::string& text) {
        ExecuteOptions options;
        options.rich = true;
        Execution execution = session_.execute(text, options);
        EXPECT_TRUE(execution.ok) << (execution.error ? execution.error->message : "");
        return execution;
    }
    static bool has(const MimeBundle& bundle, std::string_view type, std::string_view text) {
        const std::string* data = bundle.find(type);
        return data && data->find(text) != std::string::npos;
    }

    ProgramState state_;
    Session session_{state_};
    std::string printed_;
    std::vector<Display> shown_;
    std::vector<CommMessage> comms_;
};

TEST_F(RichOutput, tensors_and_records_are_tables) {
    EXPECT_TRUE(has(run("ms.tensor{{1, 2}, {3, 4}}").rich, "text/html", "shape (2, 2)"));
    EXPECT_TRUE(has(run("ms.tensor{1}").rich, "text/plain", "Tensor(shape=[1]"));
    EXPECT_TRUE(has(run("{{a = 1}, {a = 2}}").rich, "text/html", "<th>a</th>"));
    EXPECT_EQ(run("{1, 2}").rich.find("text/html"), nullptr);
    EXPECT_EQ(run("'text'").rich.parts.size(), 1u);
}

TEST_F(RichOutput, plots_come_in_every_format) {
    const MimeBundle plot = run("ms.plot.line({1, 4, 9}, {title = 'squares'})").rich;
    EXPECT_TRUE(has(plot, "application/vnd.vegalite.v5+json", "\"mark\""));
    EXPECT_TRUE(has(plot, "image/svg+xml", "squares"));
    EXPECT_TRUE(has(plot, "text/plain", "squares"));
    EXPECT_TRUE(has(run("ms.image(ms.ops.ones({2, 2}))").rich, "image/png", "PNG"));
    EXPECT_TRUE(has(run("ms.ir(function(x) return x * x end)").rich, "image/svg+xml", ">mul<"));
    EXPECT_TRUE(has(run("ms.summary(ms.nn.Dense(2, 3))").rich, "text/html", "9 parameters"));
    EXPECT_TRUE(has(run("display.latex('x^2')").rich, "text/latex", "x^2"));
}

TEST_F(RichOutput, a_progress_bar_is_one_output) {
    run("for i in ms.progress(50, {desc = 'train'}) do end");
    ASSERT_GE(shown_.size(), 2u);
    EXPECT_FALSE(shown_.front().update);
    EXPECT_TRUE(has(shown_.front().bundle, "text/html", "value=\"0\" max=\"50\""));
    for (const Display& later : std::vector<Display>(shown_.begin() + 1, shown_.end())) {
        EXPECT_TRUE(later.update);
        EXPECT_EQ(later.id, shown_.front().id);
    }
    EXPECT_TRUE(has(shown_.back().bundle, "text/plain", "train: 100%"));
    EXPECT_TRUE(has(shown_.back().bundle, "text/html", "value=\"50\""));
    EXPECT_EQ(printed_, "");
}

TEST_F(RichOutput, a_live_curve_is_complete_when_the_cell_ends) {
    run("c = ms.plot.live{title = 'loss'} for i = 1, 20 do c:add(i, {train = 1 / i}) end");
    ASSERT_GE(shown_.size(), 2u);
    EXPECT_FALSE(shown_.front().update);
    EXPECT_EQ(shown_.front().bundle.find("application/vnd.vegalite.v5+json"), nullptr);
    EXPECT_TRUE(shown_.back().update);
    EXPECT_EQ(shown_.back().id, shown_.front().id);
    EXPECT_TRUE(has(shown_.back().bundle, "application/vnd.vegalite.v5+json", "\"x\":20"));
    // It is finished then.
    EXPECT_FALSE(session_.execute("c:add(21, 0)").ok);
}

TEST_F(RichOutput, a_live_curve_is_drawn_after_an_error_too) {
    const Execution failed = session_.execute("c = ms.plot.live{} c:add(1, 2) c:add(2, 3) error('stop')");
    ASSERT_TRUE(failed.error);
    EXPECT_NE(failed.error->message.find("stop"), std::string::npos);
    EXPECT_TRUE(has(shown_.back().bundle, "application/vnd.vegalite.v5+json", "\"y\":3"));
}

TEST_F(RichOutput, a_slider_speaks_to_the_page) {
    const MimeBundle view =
        run("s = ms.widgets.slider{max = 10, label = 'n'} s:on_change(function(v) print('now', v) end) return s").rich;
    ASSERT_EQ(comms_.size(), 3u);  // layout, style and the slider itself
    const CommMessage& open = comms_.back();
    EXPECT_EQ(open.target, "jupyter.widget");
    EXPECT_NE(open.data.find("\"_model_name\":\"IntSliderModel\""), std::string::npos);
    EXPECT_NE(open.metadata.find("2.1.0"), std::string::npos);
    EXPECT_TRUE(has(view, "application/vnd.jupyter.widget-view+json", open.id));
    using Kind = CommMessage::Kind;
    const std::string id = open.id;
    EXPECT_TRUE(session_.receive({Kind::message, id, "", R"({"method":"update","state":{"value":7}})", "{}", {}}).ok);
    EXPECT_EQ(printed_, "now\t7\n");
    EXPECT_TRUE(has(run("s").rich, "text/plain", "slider n: 7"));
    run("s.value = 99");
    EXPECT_NE(comms_.back().data.find("\"value\":10"), std::string::npos);
    EXPECT_TRUE(session_.receive({Kind::message, id, "", R"({"method":"request_state"})", "{}", {}}).ok);
    EXPECT_NE(comms_.back().data.find("\"max\":10"), std::string::npos);
    for (const char* nonsense : {"{}", R"({"method":"update"})", R"({"method":"update","state":{"value":"x"}})",
                                 R"({"method":"custom","content":3})", R"({"method":7})"})
        EXPECT_TRUE(session_.receive({Kind::message, id, "", nonsense, "{}", {}}).ok) << nonsense;
    EXPECT_TRUE(session_.receive({Kind::open, "page", "jupyter.widget.control", "{}", "{}", {}}).ok);
    EXPECT_TRUE(session_.receive({Kind::message, "page", "", R"({"method":"request_states"})", "{}", {}}).ok);
    EXPECT_NE(comms_.back().data.find("\"model_name\":\"IntSliderModel\""), std::string::npos);
}

TEST_F(RichOutput, a_button_is_pressed) {
    run("n = 0 b = ms.widgets.button{label = 'go'}:on_click(function() n = n + 1 end)");
    const std::string id = comms_.back().id;
    const std::string click = R"({"method":"custom","content":{"event":"click"}})";
    session_.receive({CommMessage::Kind::message, id, "", click, "{}", {}});
    EXPECT_TRUE(has(run("n").rich, "text/plain", "1"));
    run("b:close()");
    EXPECT_EQ(comms_.back().kind, CommMessage::Kind::close);
    EXPECT_FALSE(session_.execute("ms.widgets.slider{maximum = 3}").ok);
    EXPECT_FALSE(session_.execute("ms.widgets.slider{min = 3, max = 3}").ok);
}

TEST_F(RichOutput, commands_of_a_whole_cell) {
    const std::string path = ::testing::TempDir() + "/lunaria_writefile.txt";
    run("%%writefile " + path + "\none\n  two");
    run("%%writefile -a " + path + "\nthree");
    EXPECT_EQ(printed_, "Writing " + path + "\nAppending to " + path + "\n");
    EXPECT_TRUE(has(run("io.open('" + path + "'):read('a')").rich, "text/plain", "\"one\\n  two\\nthree\\n\""));
    std::remove(path.c_str());
    run("%%html\n<b>bold</b>");
    EXPECT_TRUE(has(shown_.back().bundle, "text/html", "<b>bold</b>"));
    printed_.clear();
    run("%%sh\necho one\necho two");
    EXPECT_EQ(printed_, "one\ntwo\n");
    EXPECT_FALSE(session_.execute("%%writefile").ok);
}

}  // namespace
}  // namespace lunaria
