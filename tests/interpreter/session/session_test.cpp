#include "interpreter/session/session.h"
#include "interpreter/program/program_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "interpreter/loader/cell.h"

namespace lunaria {
namespace {

class SessionTest : public testing::Test {
  protected:
    Execution run(const std::string& text) { return session.execute(text); }

    std::string result(const std::string& text) {
        const Execution execution = run(text);
        if (execution.error) return "error: " + execution.error->message;
        std::string joined;
        for (const std::string& r : execution.results) joined += (joined.empty() ? "" : " | ") + r;
        return joined;
    }

    std::string output(const std::string& text) {
        std::string captured;
        Session::Hooks hooks;
        hooks.output = [&](bool, std::string_view part) { captured += part; };
        session.set_hooks(hooks);
        const Execution execution = run(text);
        session.set_hooks({});
        return execution.error ? "error: " + execution.error->message : captured;
    }

    std::vector<std::string> completions(const std::string& text) {
        std::vector<std::string> texts;
        for (const CompletionItem& item : session.complete(text, text.size()).items) texts.push_back(item.text);
        return texts;
    }

    bool completes(const std::string& text, const std::string& item) {
        const auto all = completions(text);
        return std::find(all.begin(), all.end(), item) != all.end();
    }

    ProgramState state;
    Session session{state};
};

TEST_F(SessionTest, shows_what_the_last_expression_gives) {
    EXPECT_EQ(result("1 + 1"), "2");
    EXPECT_EQ(result("1, 'two', nil"), "1 | \"two\" | nil");
    EXPECT_EQ(result("1 + 1;"), "");
    EXPECT_EQ(result("x = 5"), "");
    EXPECT_EQ(result("x"), "5");
    EXPECT_EQ(result("local a = 2\na + x"), "7");
    EXPECT_EQ(result("local a = 2; a + x"), "7");
    EXPECT_EQ(result("local a = 2\na + x;"), "");
    EXPECT_EQ(result("local t = {}\nt.x = 1\n(function() return t.x, 2 end)()"), "1 | 2");
    EXPECT_EQ(result("local s = 'a'\ns:rep(3)"), "\"aaa\"");
    EXPECT_EQ(result("local s = 'a'\ns:rep(3);"), "");
    EXPECT_EQ(result("local s = 'a' s:rep(3) -- twice; or three times"), "\"aaa\"");
    EXPECT_EQ(result("return 3"), "3");
    EXPECT_EQ(result("-- nothing"), "");
    EXPECT_EQ(result(""), "");
}

TEST_F(SessionTest, keeps_the_last_result) {
    run("6 * 7");
    EXPECT_EQ(result("_ + 1"), "43");
    EXPECT_EQ(result("_ + 1;"), "");
    EXPECT_EQ(result("_"), "44");
    run("nil");
    EXPECT_EQ(result("_"), "44");
}

TEST_F(SessionTest, state_stays_between_cells_and_after_errors) {
    run("function f(n) return n * 2 end count = 0");
    EXPECT_TRUE(run("count = count + f(1); error('stop')").error);
    EXPECT_EQ(result("count"), "2");
}

TEST_F(SessionTest, prints_tables_with_cycles_depth_and_hostile_metatables) {
    EXPECT_EQ(result("{1, 2, {x = 3}, ['a b'] = true, f = print}"),
              "{1, 2, {x = 3}, [\"a b\"] = true, f = <builtin function>}");
    EXPECT_EQ(result("local t = {} t.t = t; t"), "{t = <cycle>}");
    EXPECT_EQ(result("{{{{{{}}}}}}"), "{{{{{...}}}}}");
    EXPECT_EQ(result("setmetatable({}, {__tostring = function() return 'mine' end})"), "mine");
    EXPECT_EQ(result("setmetatable({}, {__tostring = function() error('no', 0) end})"), "<error in __tostring: no>");
    EXPECT_EQ(result("setmetatable({a = 1}, {__index = function() error('no') end, __pairs = error})"), "{a = 1}");
    EXPECT_EQ(result("'a\\0b\\n\\200\\u{e4}'"), "\"a\\0b\\n\\200\u00e4\"");
    EXPECT_LT(result("local t = {} for i = 1, 1e5 do t[i] = {i} end return t").size(), 5000u);
    EXPECT_LT(result("('x'):rep(1e6)").size(), 5000u);
}

TEST_F(SessionTest, reports_errors_with_place_line_and_caret) {
    const Execution execution = run("local a = 1\nlocal function f(t)\n  return t.x.y\nend\nf({})");
    ASSERT_TRUE(execution.error);
    const std::string text = format_error(*execution.error, false);
    EXPECT_EQ(text,
              "In[1]:3: attempt to index a nil value (field 'x')\n"
              "  hint: x is nil: is it misspelt, or set further down?\n"
              "  In[1]:3 in local 'f'\n"
              "    return t.x.y\n"
              "             ^\n"
              "  In[1]:5 in main chunk\n"
              "    f({})");
}

TEST_F(SessionTest, reports_syntax_errors_in_the_text_as_typed) {
    const Execution execution = run("local x = 3\nx = = 4");
    ASSERT_TRUE(execution.error);
    EXPECT_EQ(execution.error->kind, ErrorReport::Kind::syntax);
    EXPECT_EQ(execution.error->message.substr(0, 8), "In[1]:2:");
    EXPECT_NE(execution.error->message.find("x = = 4"), std::string::npos);
}

TEST_F(SessionTest, knows_when_a_cell_is_complete) {
    EXPECT_EQ(session.is_complete("1 +").kind, InputKind::incomplete);
    EXPECT_EQ(session.is_complete("for i = 1, 3 do").indent, "  ");
    EXPECT_EQ(session.is_complete("f(").kind, InputKind::incomplete);
    EXPECT_EQ(session.is_complete("x").kind, InputKind::complete);
    EXPECT_EQ(session.is_complete("local x = 1; x").kind, InputKind::complete);
    EXPECT_EQ(session.is_complete("x = = 1").kind, InputKind::invalid);
    EXPECT_EQ(session.is_complete("%time").kind, InputKind::complete);
    EXPECT_EQ(session.is_complete("?print").kind, InputKind::complete);
    EXPECT_EQ(session.is_complete("").kind, InputKind::complete);
    EXPECT_EQ(session.is_complete("--- Adds one.").kind, InputKind::incomplete);
    EXPECT_EQ(session.is_complete("--- Adds one.\n").kind, InputKind::complete);
    EXPECT_EQ(session.is_complete("-- nothing").kind, InputKind::complete);
}

TEST_F(SessionTest, completes_names_fields_methods_options_and_files) {
    run("alpha = {beta = {gamma = 1}} object = setmetatable({own = 1}, {__index = {inherited = print, value = 2}})");
    EXPECT_TRUE(completes("alp", "alpha"));
    EXPECT_TRUE(completes("local alpine = 1\nalp", "alpine"));
    EXPECT_TRUE(completes("whi", "while"));
    EXPECT_EQ(completions("alpha.beta.g"), std::vector<std::string>{"gamma"});
    EXPECT_EQ(completions("alpha['be"), std::vector<std::string>{"beta"});
    EXPECT_TRUE(completes("object.", "inherited"));
    EXPECT_TRUE(completes("object.", "own"));
    EXPECT_EQ(completions("object:"), std::vector<std::string>{"inherited"});
    EXPECT_TRUE(completes("s = 'x' s:", "") == false);
    run("text = 'x'");
    EXPECT_TRUE(completes("text:re", "rep"));
    EXPECT_TRUE(completes("ms.ops.mat", "matmul"));
    EXPECT_TRUE(completes("ms.prog", "progress"));
    EXPECT_TRUE(completes("%ti", "%timeit"));
    EXPECT_TRUE(completes("io.open('CMakeL", "CMakeLists.txt"));
    EXPECT_TRUE(completes("%run tests/in", "tests/interpreter/"));
    EXPECT_TRUE(completions("nothing.at.all.").empty());
}

TEST_F(SessionTest, completes_tensors_and_options_of_operators) {
    run("x = ms.tensor{1.5}");
    EXPECT_TRUE(completes("x:mat", "matmul"));
    EXPECT_TRUE(completes("x.sha", "shape"));
    EXPECT_TRUE(completes("ms.ops.softmax(x, {ax", "axis = "));
    EXPECT_FALSE(completes("ms.ops.softmax(x, {axis = 1, ax", "axis = "));
    EXPECT_FALSE(completes("ms.ops.softmax(x, {axis = tr", "axis = "));
}

TEST_F(SessionTest, completes_options_of_layers_and_functions) {
    run("nn = ms.nn");
    EXPECT_TRUE(completes("nn.Dense(3, 4, {", "has_bias = "));
    EXPECT_TRUE(completes("nn.Dense(3, 4, {act", "activation = "));
    EXPECT_FALSE(completes("nn.Dense(3, 4, {has_bias = false, has", "has_bias = "));
    EXPECT_TRUE(completes("ms.set_context{mo", "mode = "));
    EXPECT_TRUE(completes("ms.jit(f, {full", "fullgraph = "));
}

TEST_F(SessionTest, measured_code_is_shown_as_it_was_typed) {
    const Execution failed = session.execute("%timeit no_such_function(1)");
    ASSERT_TRUE(failed.error.has_value());
    EXPECT_EQ(failed.error->frames.at(0).text, "no_such_function(1)");
}

TEST_F(SessionTest, completion_runs_no_code_of_the_user) {
    run("calls = 0 t = setmetatable({}, {__index = function() calls = calls + 1 return {} end})");
    completions("t.a.b");
    completions("t.a:b");
    EXPECT_EQ(result("calls"), "0");
}

TEST_F(SessionTest, survives_odd_cursors) {
    for (const std::string text : {"", "ms", "ms.", "f(((((", "'", "--", "x[\"", "\xff\xfe", "{{{{{{"})
        for (size_t cursor = 0; cursor < text.size() + 3; ++cursor) {
            session.complete(text, cursor);
            session.inspect(text, cursor);
        }
}

TEST_F(SessionTest, inspects_operators_functions_and_values) {
    run("--- Doubles a number.\n--- Slowly.\nfunction double(n, ...) return 2 * n end");
    const Inspection found = session.inspect("double", 3);
    ASSERT_TRUE(found.found);
    EXPECT_NE(found.text.find("double(n, ...)"), std::string::npos) << found.text;
    EXPECT_NE(found.text.find("Doubles a number."), std::string::npos) << found.text;
    EXPECT_EQ(found.text.find("return 2"), std::string::npos);
    EXPECT_NE(session.inspect("double", 3, 1).text.find("return 2 * n"), std::string::npos);
    EXPECT_NE(session.inspect("ms.ops.matmul", 10).text.find("matmul("), std::string::npos);
    EXPECT_NE(session.inspect("ms.ops.matmul(x, ", 17).text.find("matmul("), std::string::npos);
    EXPECT_NE(session.inspect("matmul", 6).text.find("Example"), std::string::npos);
    EXPECT_FALSE(session.inspect("no_such_name", 4).found);
}

TEST_F(SessionTest, captures_output) {
    EXPECT_EQ(output("print(1, nil, 'x') io.write('a', 2) io.stdout:write('b')"), "1\tnil\tx\na2b");
    EXPECT_EQ(output("io.stderr:write('e')"), "e");
    EXPECT_EQ(output("help('matmul')").substr(0, 7), "matmul(");
    EXPECT_EQ(output("io.write({})").substr(0, 6), "error:");
    // Other files are written as ever.
    EXPECT_EQ(
        output("local n = os.tmpname() local f = io.open(n, 'w') f:write('x') f:close() print(io.open(n):read('a'))"),
        "x\n");
}

TEST_F(SessionTest, what_workers_of_a_pipeline_print_is_output_of_the_cell) {
    // The one that asks for rows makes some beside the worker: what they print comes whole, in any order.
    const std::string printed = output(
        "local ds = ms.dataset.NumpySlicesDataset(ms.arange(2), {'x'}, {shuffle = false}):map(function(x) "
        "print('row', x:item()) io.stdout:write('b\\n') return x end, {python_multiprocessing = true, "
        "num_parallel_workers = 1}) for x in ds:create_tuple_iterator() do end");
    std::multiset<std::string> lines;
    std::istringstream in(printed);
    for (std::string line; std::getline(in, line);) lines.insert(line);
    EXPECT_EQ(lines, (std::multiset<std::string>{"b", "b", "row\t0", "row\t1"})) << printed;
}

TEST_F(SessionTest, runs_commands) {
    EXPECT_NE(output("%lsmagic").find("%timeit"), std::string::npos);
    EXPECT_EQ(output("mine = 1\n"), "");
    EXPECT_EQ(output("%who"), "mine\n");
    EXPECT_NE(output("%whos").find("integer"), std::string::npos);
    EXPECT_EQ(output("%reset"), "");
    EXPECT_EQ(output("%who"), "no global variables yet\n");
    EXPECT_NE(output("%time ms.tensor{1}").find("time: "), std::string::npos);
    EXPECT_NE(output("%timeit -n 10 -r 2 math.sin(1)").find("(2 repeats of 10 runs)"), std::string::npos);
    EXPECT_EQ(output("!echo hello"), "hello\n");
    EXPECT_NE(output("!echo hello\n!echo again").find("again"), std::string::npos);
    EXPECT_NE(output("%mode").find("pynative"), std::string::npos);
    EXPECT_EQ(output("%mode graph"), "mode: graph\n");
    EXPECT_NE(output("%mode pynative").find("pynative"), std::string::npos);
    EXPECT_NE(output("%nothing").find("no command"), std::string::npos);
    EXPECT_NE(output("?matmul").find("matmul("), std::string::npos);
    EXPECT_NE(output("matmul?").find("matmul("), std::string::npos);
    EXPECT_NE(output("%history").find("!echo hello"), std::string::npos);
    EXPECT_EQ(output("%env LUNARIA_TEST 5\n%env LUNARIA_TEST"), "5\n");
    EXPECT_NE(output("%prof for i = 1, 1e5 do end").find("samples"), std::string::npos);
    EXPECT_NE(output("%timeit error('no', 0)").find("no"), std::string::npos);
    EXPECT_NE(output("%run no/such/file.lua").find("no/such/file.lua"), std::string::npos);
}

TEST_F(SessionTest, a_command_shows_results_of_the_code_it_runs) {
    EXPECT_EQ(run("%time 6 * 7").results, std::vector<std::string>{"42"});
    EXPECT_EQ(run("%time\n6 * 8").results, std::vector<std::string>{"48"});
}

TEST_F(SessionTest, runs_a_notebook_with_outputs_of_every_cell_in_its_order) {
    const std::string path = testing::TempDir() + "session_test.ipynb";
    std::ofstream(path) << R"json({"cells": [{"cell_type": "code", "source": ["print(1)\n", "ms.tensor{2}"]},
        {"cell_type": "markdown", "source": "three"},
        {"cell_type": "code", "source": "error('meant')", "metadata": {"tags": ["raises-exception"]}},
        {"cell_type": "code", "source": "print(arg[1]) last = 4"}, {"cell_type": "code", "source": "last.x.y"}]})json";
    std::string seen;
    Session::Hooks hooks;
    hooks.output = [&](bool is_error, std::string_view text) {
        seen += (is_error ? "!" : "") + std::string(text.substr(0, text.find('\n'))) + ";";
    };
    hooks.display = [&](const Display& shown) { seen += *shown.bundle.find("text/plain") + ";"; };
    session.set_hooks(hooks);
    const Execution execution = session.execute("%run " + path + " word", {.name = "", .rich = true});
    session.set_hooks({});
    std::filesystem::remove(path);
    std::erase(seen, '\n');
    EXPECT_EQ(seen.substr(0, seen.find("!")), "1;Tensor(shape=[1], dtype=Int64, value=[2]);") << seen;
    EXPECT_NE(seen.find("!" + path + "[2]:1: meant"), std::string::npos) << seen;
    EXPECT_NE(seen.find("word"), std::string::npos) << seen;
    ASSERT_TRUE(execution.error);
    EXPECT_TRUE(execution.error->message.starts_with(path + "[4]:1: attempt to index")) << execution.error->message;
    EXPECT_EQ(std::ranges::count_if(execution.error->frames, [](const ErrorFrame& f) { return f.line > 0; }), 1);
    EXPECT_EQ(run("last").results, std::vector<std::string>{"4"});
}

TEST_F(SessionTest, debugs_after_the_fact) {
    std::vector<std::string> answers = {"w", "a", "p a + b", "u", "a", "q"};
    size_t at = 0;
    std::string captured;
    run("local function inner(a) local b = a + 1 error('stop') end\nfunction outer(c) inner(c * 2) return 1 "
        "end\nouter(4)");
    run("1 + 1");
    Session::Hooks hooks;
    hooks.output = [&](bool, std::string_view part) { captured += part; };
    hooks.input = [&](const std::string&) -> std::optional<std::string> {
        captured += "? " + answers.at(at) + "\n";
        return answers[at++];
    };
    session.set_hooks(hooks);
    EXPECT_FALSE(run("%debug").error);
    EXPECT_NE(captured.find("a = 8"), std::string::npos) << captured;
    EXPECT_NE(captured.find("b = 9"), std::string::npos) << captured;
    EXPECT_NE(captured.find("? p a + b\n17\n"), std::string::npos) << captured;
    EXPECT_NE(captured.find("c = 4"), std::string::npos) << captured;
}

TEST_F(SessionTest, leaves_on_request) {
    EXPECT_TRUE(run("exit").leave);
    EXPECT_TRUE(run(" quit() ").leave);
    EXPECT_FALSE(run("exit_code = 1").leave);
}

// The time from the request to the end of the cell; the cell must end with the error "interrupted!".
class InterruptTest : public SessionTest {
  protected:
    double seconds_to_stop(const std::string& text) {
        using Clock = std::chrono::steady_clock;
        Clock::time_point asked;
        const pthread_t session_thread = pthread_self();
        active = &session;
        // Of a signal from another thread ThreadSanitizer runs the handler at once only if it is one of those that tell
        // of a broken program; all others wait for the next library call, which an endless loop of Lua never makes.
        signal(SIGSYS, [](int) { active->interrupt(); });
        std::atomic<bool> done = false;
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            asked = Clock::now();
            // Where others compute as well, the cell may not have begun yet: then it is nothing.
            for (; !done; std::this_thread::sleep_for(std::chrono::milliseconds(100)))
                pthread_kill(session_thread, SIGSYS);
        });
        const Execution execution = session.execute(text);
        const auto stopped = Clock::now();
        done = true;
        other.join();
        EXPECT_TRUE(execution.error && execution.error->kind == ErrorReport::Kind::interrupt) << text;
        EXPECT_NE(execution.error ? execution.error->message.find("interrupted!") : std::string::npos,
                  std::string::npos);
        return std::chrono::duration<double>(stopped - asked).count();
    }
    static inline Session* active = nullptr;
};

TEST_F(InterruptTest, stops_lua_code_of_every_kind_and_keeps_the_state) {
    run("kept = 7");
    for (const char* text :
         {"while true do end", "repeat until false", "while true do pcall(error) end",
          "while true do pcall(function() while true do end end) end",
          "local f = coroutine.wrap(function() while true do end end) f()",
          "local co = coroutine.create(function() while true do coroutine.yield() end end) "
          "while true do coroutine.resume(co) end",
          "while true do local ok = coroutine.resume(coroutine.create(function() while true do end end)) end",
          "local t = {} for i = 1, 1e6 do t[i] = i end while true do table.sort(t, function(a, b) return a < b "
          "end) end",
          "local function f() return f() end f()", "%time while true do end",
          "while true do xpcall(error, debug.traceback) end"}) {
        EXPECT_LT(seconds_to_stop(text), 5.0) << text;
        EXPECT_EQ(result("kept"), "7");
    }
}

TEST_F(InterruptTest, stops_loops_of_operators) {
    EXPECT_LT(seconds_to_stop("local x = ms.tensor{1.5, 2.5} while true do x = x + 1 end"), 5.0);
    EXPECT_EQ(result("1 + 1"), "2");
}

TEST_F(InterruptTest, is_nothing_when_no_cell_runs) {
    session.interrupt();
    EXPECT_EQ(result("1 + 1"), "2");
}

TEST(prepare_cell, leaves_lines_where_they_are) {
    const Cell cell = prepare_cell("local a = 1\n\na + 1", "cell");
    EXPECT_EQ(cell.chunk, std::string("local a = 1\n\n") + kShowPrefix + "a + 1");
    EXPECT_FALSE(cell.silent);
    EXPECT_TRUE(prepare_cell("f() --[==[ ; ]==] ;", "cell").silent);
    EXPECT_FALSE(prepare_cell("f() --[==[ ; ]==]", "cell").silent);
    EXPECT_FALSE(prepare_cell("f() -- ;", "cell").silent);
}

}  // namespace
}  // namespace lunaria
