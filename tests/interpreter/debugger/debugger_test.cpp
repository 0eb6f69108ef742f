#include "interpreter/debugger/debugger.h"
#include "interpreter/program/program_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "interpreter/display/pretty.h"
#include "interpreter/session/session.h"

namespace lunaria {
namespace {

// Runs cells; at each stop the next of the given answers says how to go on, after its expressions were evaluated.
class DebuggerTest : public testing::Test {
  protected:
    struct Answer {
        Resume how = Resume::go;
        std::vector<std::string> look = {};
    };
    DebuggerTest() {
        debugger().set_front([this](const Stop& stop) {
            const StackFrame& top = debugger().stack().frames().at(0);
            std::string line = str(top.source, ":", top.line);
            if (!stop.text.empty()) line += " " + stop.text;
            const Answer answer = at_ < answers.size() ? answers[at_] : Answer();
            ++at_;
            for (const std::string& code : answer.look) line += " " + value(code);
            stops.push_back(line);
            for (const StackFrame& f : debugger().stack().frames()) stack.push_back(str(f.function, ":", f.line));
            return answer.how;
        });
    }

    Debugger& debugger() { return state.debugger(); }

    std::string value(const std::string& code, size_t frame = 0) {
        std::string text, problem;
        const bool ok = debugger().guarded(
            [&](lua_State* T) {
                const int count = debugger().evaluate(T, frame, code);
                for (int i = 1; i <= count; ++i) text += (i > 1 ? "," : "") + pretty(T, i);
            },
            problem);
        return ok ? text : "error: " + problem;
    }

    std::string run(const std::string& text) {
        const Execution execution = session.execute(text);
        if (execution.error) return "error: " + execution.error->message;
        return execution.results.empty() ? "" : execution.results[0];
    }

    int set(const std::string& source, int line, Breakpoint b = {}) {
        b.source = source;
        b.line = line;
        return debugger().add_breakpoint(b);
    }

    using Lines = std::vector<std::string>;
    ProgramState state;
    Session session{state};
    std::vector<Answer> answers;
    std::vector<std::string> stops, stack;

  private:
    size_t at_ = 0;
};

TEST_F(DebuggerTest, stops_at_breakpoints_and_only_there) {
    set("In[1]", 2);
    EXPECT_EQ(run("local x = 1\nx = x + 1\nreturn x"), "2");
    EXPECT_EQ(stops, (Lines{"In[1]:2"}));
    debugger().remove_breakpoints();
    EXPECT_EQ(run("return 3"), "3");
    EXPECT_EQ(lua_gethook(state.lua()), nullptr);
}

TEST_F(DebuggerTest, no_hook_is_there_while_nothing_is_debugged) {
    EXPECT_EQ(lua_gethook(state.lua()), nullptr);
    set("elsewhere", 1);
    EXPECT_NE(lua_gethook(state.lua()), nullptr);
    run("co = coroutine.wrap(function() while true do coroutine.yield(debug.gethook() ~= nil) end end)");
    EXPECT_EQ(run("co()"), "true");
    debugger().remove_breakpoints();
    EXPECT_EQ(run("co()"), "false");
    EXPECT_EQ(lua_gethook(state.lua()), nullptr);
}

TEST_F(DebuggerTest, a_hook_of_the_program_stays) {
    run("debug.sethook(function() count = (count or 0) + 1 end, '', 10)");
    set("elsewhere", 1);
    debugger().remove_breakpoints();
    run("for i = 1, 100 do end");
    EXPECT_NE(run("count"), "nil");
    run("debug.sethook()");
}

TEST_F(DebuggerTest, steps_over_into_and_out_of_functions) {
    run("function f(a)\n  local b = a + 1\n  return b\nend");
    answers = {{Resume::over}, {Resume::into}, {Resume::out}, {Resume::over}};
    set("In[2]", 1);
    run("local x = f(1)\nlocal y = f(x)\nlocal z = y");
    EXPECT_EQ(stops, (Lines{"In[2]:1", "In[2]:2", "In[1]:2", "In[2]:3"}));
}

TEST_F(DebuggerTest, a_step_over_the_end_does_not_stop_in_the_next_call_of_the_caller) {
    run("function f(a)\n  return a\nend\nfunction g(a)\n  return a\nend");
    answers = {{Resume::over}, {Resume::go}};
    set("In[1]", 2);
    run("local x = f(1) + g(2)\nlocal y = x");
    EXPECT_EQ(stops, (Lines{"In[1]:2", "In[2]:2"}));
}

TEST_F(DebuggerTest, steps_leave_coroutines_with_them) {
    run("co = coroutine.wrap(function()\n  local a = 1\n  coroutine.yield(a)\n  return 2\nend)");
    answers = {{Resume::over}, {Resume::over}, {Resume::over}};
    set("In[1]", 2);
    run("local x = co()\nlocal y = co()");
    EXPECT_EQ(stops, (Lines{"In[1]:2", "In[1]:3", "In[2]:2"}));
    EXPECT_EQ(stack[1], "main chunk:1");
}

TEST_F(DebuggerTest, conditions_counts_and_logs) {
    std::string log;
    debugger().set_log([&](const std::string& text) { log += text + "\n"; });
    Breakpoint b;
    b.condition = "i % 2 == 0";
    b.from_hit = 2;
    const int id = set("In[1]", 2, b);
    Breakpoint logs;
    logs.log = "i is {i}, {nothing.x}";
    set("In[1]", 3, logs);
    answers = {{Resume::go, {"i"}}, {Resume::go, {"i"}}};
    run("for i = 1, 6 do\n  local a = i\n  a = a + 1\nend");
    EXPECT_EQ(stops, (Lines{"In[1]:2 4", "In[1]:2 6"}));
    EXPECT_EQ(log.substr(0, 9), "i is 1, <") << log;
    EXPECT_EQ(debugger().breakpoints()[0].hits, 3);
    EXPECT_TRUE(debugger().remove_breakpoint(id));
    EXPECT_FALSE(debugger().remove_breakpoint(id));
}

TEST_F(DebuggerTest, a_condition_that_fails_stops_and_says_so) {
    Breakpoint b;
    b.condition = "nothing.x";
    set("In[1]", 1, b);
    run("local a = 1");
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_NE(stops[0].find("failed: attempt to index a nil value"), std::string::npos) << stops[0];
}

TEST_F(DebuggerTest, a_temporary_breakpoint_stops_once) {
    Breakpoint b;
    b.temporary = true;
    set("In[1]", 2, b);
    run("for i = 1, 3 do\n  local a = i\nend");
    EXPECT_EQ(stops.size(), 1u);
    EXPECT_TRUE(debugger().breakpoints().empty());
}

TEST_F(DebuggerTest, assignments_reach_locals_upvalues_and_globals) {
    run("local up = 1\nfunction f(a, ...)\n  local b = a\n  up = up + b\n  return a + b, up, select('#', ...)\nend");
    set("In[1]", 4);
    answers = {{Resume::go, {"a, b, up", "b = 10", "up = 100", "made = a", "...", "a"}}};
    EXPECT_EQ(run("f(1, 7, 8)"), "11");
    EXPECT_EQ(stops, (Lines{"In[1]:4 1,1,1    7,8 1"}));
    EXPECT_EQ(run("made"), "1");
    debugger().remove_breakpoints();
    EXPECT_EQ(run("select(2, f(0))"), "110");
}

TEST_F(DebuggerTest, the_innermost_variable_of_a_name_is_meant) {
    set("In[1]", 4);
    answers = {{Resume::go, {"x", "x = 5"}}};
    EXPECT_EQ(run("local x = 1\ndo\n  local x = 2\n  y = x\nend\nreturn x"), "1");
    EXPECT_EQ(run("y"), "5");
    EXPECT_EQ(stops, (Lines{"In[1]:4 2 "}));
}

TEST_F(DebuggerTest, what_outlives_a_stop_sees_globals) {
    set("In[1]", 2);
    answers = {{Resume::go, {"late = function() return secret end"}}};
    run("local secret = 1\nlocal a = secret");
    EXPECT_EQ(run("late()"), "nil");
    run("secret = 9");
    EXPECT_EQ(run("late()"), "9");
}

TEST_F(DebuggerTest, evaluation_neither_stops_nor_breaks_the_program) {
    run("function f()\n  return 1\nend");
    set("In[1]", 2);
    set("In[2]", 2);
    answers = {{Resume::go, {"f()", "error('in the evaluation')", "local t = nil; return t.x"}}};
    EXPECT_EQ(run("local a = 1\na = a + 1\nreturn a"), "2");
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_NE(stops[0].find("1 error: in the evaluation error: attempt to index"), std::string::npos) << stops[0];
}

TEST_F(DebuggerTest, leaving_passes_every_pcall) {
    set("In[1]", 1);
    answers = {{Resume::leave}};
    EXPECT_EQ(run("while true do pcall(function() local a = 1 end) end"), "error: the debugger ended the program");
    EXPECT_EQ(stops.size(), 1u);
    debugger().remove_breakpoints();
    EXPECT_EQ(run("1 + 1"), "2");
}

TEST_F(DebuggerTest, watches_stop_where_a_value_changes) {
    set("In[1]", 1);
    debugger().set_front([&](const Stop& stop) {
        stops.push_back(str(debugger().stack().frames()[0].line, " ", stop.text));
        if (!debugger().watches().empty()) return Resume::go;
        Watch w;
        w.expression = "a";
        w.chunk = "In[1]";
        std::string problem;
        EXPECT_TRUE(debugger().look(w, 0, problem).value_or(false)) << problem;
        EXPECT_EQ(w.value, "nil");
        debugger().add_watch(std::move(w));
        return Resume::go;
    });
    run("local a = 1\nlocal b = 2\na = b\nb = 3\nreturn a");
    EXPECT_EQ(stops, (Lines{"1 ", "2 a: nil -> 1", "4 a: 1 -> 2"}));
    debugger().watches().clear();
}

TEST_F(DebuggerTest, stops_at_errors_with_all_frames) {
    debugger().stop_at_errors(false, true);
    answers = {{Resume::go, {"n"}}};
    run("function f(n)\n  error('no ' .. n, 0)\nend");
    EXPECT_EQ(run("pcall(f, 1)"), "false");
    EXPECT_TRUE(stops.empty());
    EXPECT_EQ(run("f(2)"), "error: no 2");
    EXPECT_EQ(stops, (Lines{"In[1]:2 no 2 2"}));
    stops.clear();
    debugger().stop_at_errors(true, true);
    EXPECT_EQ(run("pcall(f, 3)"), "false");
    EXPECT_EQ(run("xpcall(f, function(e) return e end, 4)"), "false");
    EXPECT_EQ(run("coroutine.resume(coroutine.create(f), 5)"), "false");
    EXPECT_EQ(stops, (Lines{"In[1]:2 no 3", "In[1]:2 no 4", "In[1]:2 no 5"}));
}

TEST_F(DebuggerTest, pcall_is_as_in_lua) {
    for (bool handled : {false, true}) {
        debugger().stop_at_errors(false, handled);
        EXPECT_EQ(run("select('#', pcall(function(...) return ... end, 1, nil, nil))"), "4");
        EXPECT_EQ(run("table.concat({select(2, pcall(error, 'e', 0))})"), "\"e\"");
        EXPECT_EQ(run("select(2, xpcall(error, function(e) return e .. '!' end, 'e', 0))"), "\"e!\"");
        EXPECT_EQ(run("select(2, pcall(pcall))"), "\"bad argument #1 to 'pcall' (value expected)\"");
        EXPECT_EQ(run("local co = coroutine.wrap(function() return pcall(function() return coroutine.yield(1) + 1 end) "
                      "end)\nco()\nreturn select(2, co(4))"),
                  "5");
    }
}

TEST_F(DebuggerTest, functions_under_grad_stop_at_their_lines) {
    run("function h(t, k)\n  local z = t * k\n  return z:sum()\nend\n"
        "function f(x, n)\n  local s = 0\n  for i = 1, n do\n    s = s + h(x, i)\n  end\n  return s\nend");
    answers = {{Resume::over, {"n, s, i"}}, {Resume::into, {"i"}}, {Resume::into}, {Resume::out, {"k"}}, {Resume::go}};
    Breakpoint b;
    b.temporary = true;
    set("In[1]", 8, b);
    run("g = ms.grad(f)(ms.tensor{1.0, 2.0}, 2)");
    EXPECT_EQ(stops, (Lines{"In[1]:8 2,0,1", "In[1]:7 1", "In[1]:8", "In[1]:2 2", "In[1]:7"}));
    EXPECT_EQ(run("g[0]:item()"), "3.0");
    EXPECT_EQ(run("ms.grad(f)(ms.tensor{1.0, 2.0}, 1)[0]:item()"), "1.0");
}

TEST_F(DebuggerTest, every_variable_of_a_differentiated_function_is_seen) {
    run("local outer = 5\nfunction f(x, ...)\n  local a, b = x * 2, 7\n  local c\n  local function inc() c = (c or 0) "
        "+ 1 "
        "end\n  if b > 3 and a:sum():item() > 0 then\n    inc()\n    local d = outer\n    return (a * c):sum()\n  "
        "end\n  "
        "return a:sum()\nend");
    set("In[1]", 9);
    answers = {{Resume::go, {"b, c, d, outer, ...", "a[0]:item(), x[1]:item()", "c = 10", "c"}}};
    EXPECT_EQ(run("ms.grad(f)(ms.tensor{1.0, 2.0}, 11, 12)[0]:item()"), "20.0");
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_EQ(stops[0], "In[1]:9 7,1,5,5,11,12 2.0,2.0  10");
}

TEST_F(DebuggerTest, errors_under_grad_keep_their_frames) {
    run("function f(x)\n  local y = x * 2\n  return ms.ops.matmul(y, ms.tensor{1.0, 2.0, 3.0})\nend");
    const Execution failed = session.execute("ms.grad(f)(ms.tensor{1.0, 2.0})");
    ASSERT_TRUE(failed.error);
    ASSERT_FALSE(failed.error->frames.empty());
    EXPECT_EQ(failed.error->frames[0].line, 3);
    EXPECT_EQ(failed.error->frames[0].function, "function 'f'");
    debugger().stop_at_errors(false, true);
    answers = {{Resume::go, {"y:sum():item()"}}};
    run("ms.grad(f)(ms.tensor{1.0, 2.0})");
    ASSERT_EQ(stops.size(), 1u);
    EXPECT_TRUE(stops[0].ends_with(" 6.0")) << stops[0];
}

TEST_F(DebuggerTest, breakpoint_stops_where_it_is_called) {
    answers = {{Resume::over, {"x"}}, {Resume::go, {"x"}}};
    EXPECT_EQ(run("local x = 3\nbreakpoint()\nx = x + 1\nreturn x"), "4");
    EXPECT_EQ(stops, (Lines{"In[1]:2 3", "In[1]:3 3"}));
}

TEST_F(DebuggerTest, compiled_functions_run_as_written_while_they_are_debugged) {
    run("f = ms.jit(function(x)\n  local y = x * 2\n  breakpoint()\n  return y\nend)");
    answers = {{Resume::go, {"y[0]:item()"}}, {Resume::go}};
    run("for i = 1, 2 do r = f(ms.tensor{i + 0.0}) end");
    EXPECT_EQ(stops, (Lines{"In[1]:3 2.0", "In[1]:3"}));
    EXPECT_EQ(run("r[0]:item()"), "4.0");
}

TEST_F(DebuggerTest, pause_and_breakpoints_come_from_other_threads) {
    state.listen();
    std::atomic<bool> set_it{false};
    debugger().set_front([&](const Stop& stop) {
        stops.push_back(stop.reason == StopReason::pause ? "pause" : "breakpoint");
        if (stop.reason == StopReason::pause) {
            set_it = true;
            return Resume::go;
        }
        return Resume::leave;
    });
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        debugger().request_pause();
        while (!set_it) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        Breakpoint b;
        b.line = 2;
        debugger().set_breakpoints("In[1]", {b});
    });
    EXPECT_EQ(run("while true do\n  local t = {}\nend"), "error: the debugger ended the program");
    other.join();
    EXPECT_EQ(stops, (Lines{"pause", "breakpoint"}));
    debugger().remove_breakpoints();
}

}  // namespace
}  // namespace lunaria
