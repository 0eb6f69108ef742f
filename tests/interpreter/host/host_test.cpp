// The Lua host as C++ sees it: handles, errors, sources, interrupts, the pace of the collector.
#include <gtest/gtest.h>
#include <omp.h>

#include <csignal>
#include <functional>
#include <thread>

#include "core/base/interrupt.h"
#include "core/memory/memory.h"
#include "core/tensor/tensor_text.h"
#include "core/threads/threads.h"
#include "interpreter/errors/script.h"
#include "interpreter/loader/loader.h"
#include "interpreter/program/program_state.h"
#include "interpreter/session/command_line.h"
#include "interpreter/values/values.h"
#include "jit/frontend/ast.h"

namespace lunaria {
namespace {

Outcome run(State& state, const std::string& text) {
    return run_protected(state, [&](lua_State* L) {
        state.loader().compile(L, text, "@test.lua");
        lua_call(L, 0, 0);
    });
}

TEST(State, RunsLuaWithTensors) {
    ProgramState state;
    const Outcome outcome = run(state, "local ms = require 'lunaria' assert(ms.tensor{1, 2}.size == 2)");
    EXPECT_TRUE(outcome.ok) << outcome.message;
    EXPECT_EQ(lua_gettop(state.lua()), 0);
}

TEST(State, TwoStatesLiveSideBySide) {
    ProgramState first, second;
    EXPECT_TRUE(run(first, "x = require('lunaria').tensor{1}").ok);
    EXPECT_TRUE(run(second, "assert(x == nil) x = require('lunaria').tensor{2}").ok);
    EXPECT_TRUE(run(first, "assert(x:item() == 1)").ok);
}

TEST(State, ClosingFreesAllTensors) {
    const int64_t before = memory_stats().live_bytes;
    {
        ProgramState state;
        EXPECT_TRUE(run(state, "t = {} for i = 1, 100 do t[i] = require('lunaria').tensor{i}:new_zeros(1000) end").ok);
        EXPECT_GT(memory_stats().live_bytes, before + 100000);
    }
    EXPECT_EQ(memory_stats().live_bytes, before);
}

TEST(State, GarbageTensorsAreCollectedByTheirBytes) {
    ProgramState state;
    reset_peak_memory();
    const int64_t before = memory_stats().live_bytes;
    ASSERT_TRUE(run(state,
                    "local ms = require 'lunaria'\n"
                    "local x = ms.tensor{1.0}:new_zeros(262144)\n"
                    "for i = 1, 2000 do local y = x:copy() end")
                    .ok);
    EXPECT_LT(memory_stats().peak_bytes - before, 64 << 20);
}

TEST(State, OldGarbageIsCollectedToo) {
    ProgramState state;
    reset_peak_memory();
    const int64_t before = memory_stats().live_bytes;
    ASSERT_TRUE(run(state,
                    "local ms = require 'lunaria'\n"
                    "local x, ring = ms.tensor{1.0}:new_zeros(262144), {}\n"
                    "for i = 1, 3000 do ring[i % 20] = x:copy() end")
                    .ok);
    EXPECT_LT(memory_stats().peak_bytes - before, 200 << 20);
}

TEST(State, AStoppedOrIncrementalCollectorIsRespected) {
    ProgramState state;
    reset_peak_memory();
    const int64_t before = memory_stats().live_bytes;
    ASSERT_TRUE(run(state,
                    "local ms = require 'lunaria'\n"
                    "assert(collectgarbage('incremental') == 'generational')\n"
                    "local x = ms.tensor{1.0}:new_zeros(262144)\n"
                    "for i = 1, 1000 do local y = x:copy() end\n"
                    "collectgarbage('stop')\n"
                    "local weak = setmetatable({}, {__mode = 'v'})\n"
                    "weak[1] = x:copy()\n"
                    "for i = 1, 20 do local y = x:copy() end\n"
                    "assert(weak[1])")
                    .ok);
    EXPECT_LT(memory_stats().peak_bytes - before, 200 << 20);
}

TEST(State, AnImpossibleRequestIsAnErrorAndTheSessionGoesOn) {
    ProgramState state;
    const Outcome outcome = run(state, "local x = require('lunaria').tensor{1.0}:new_zeros(1 << 40)");
    EXPECT_FALSE(outcome.ok);
    EXPECT_NE(outcome.message.find("memory"), std::string::npos) << outcome.message;
    EXPECT_TRUE(run(state, "assert(require('lunaria').tensor{1.0}:item() == 1)").ok);
}

TEST(State, SetsTheNumberOfThreadsOfOurKernelsAsWellAsOfTheLibraries) {
    ProgramState state;
    const int before = num_threads();
    EXPECT_TRUE(run(state, "local ms = require 'lunaria' ms.set_num_threads(3) assert(ms.get_num_threads() == 3)").ok);
    EXPECT_EQ(num_threads(), 3);
    EXPECT_EQ(omp_get_max_threads(), 3);
    set_num_threads(before);
}

// SIGSYS, because ThreadSanitizer holds back ordinary signals until the next library call, which Lua may never make.
class Interrupt : public testing::Test {
  protected:
    void SetUp() override {
        target = &state;
        signal(SIGSYS, [](int number) {
            if (!target->pass_on(number)) target->interrupt();
        });
    }
    void TearDown() override { signal(SIGSYS, SIG_DFL); }

    // Runs the text while another thread does something 30 ms later, which must stop it.
    void expect_stop(const std::string& text, const std::function<void()>& send) {
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            send();
        });
        const Outcome outcome = run(state, text);
        other.join();
        state.clear_interrupt();
        EXPECT_FALSE(outcome.ok) << text;
        EXPECT_TRUE(outcome.interrupted) << text;
        EXPECT_NE(outcome.message.find("interrupted!"), std::string::npos) << outcome.message;
        EXPECT_TRUE(run(state, "local n = 0 for i = 1, 1000 do n = n + i end assert(n == 500500)").ok);
    }

    ProgramState state;
    static inline State* target = nullptr;
};

TEST_F(Interrupt, StopsLuaCodeWhereverItRuns) {
    for (const char* text : {"while true do end", "coroutine.wrap(function() while true do end end)()",
                             "while true do pcall(function() while true do end end) end",
                             "local ms = require 'lunaria' local x = ms.tensor{1.0} while true do x = x:copy() end",
                             "while true do coroutine.wrap(function() pcall(error) end)() end"})
        expect_stop(text, [self = pthread_self()] { pthread_kill(self, SIGSYS); });
}

TEST_F(Interrupt, FindsItsThreadWhicheverOneGetsTheSignal) {
    expect_stop("while true do end", [] { raise(SIGSYS); });
}

TEST(Errors, NameThePlaceAndShowTheSource) {
    ProgramState state;
    const Outcome outcome =
        run(state, "local ms = require 'lunaria'\nlocal function f(x)\n  return x[7] + 1\nend\nf(ms.tensor{1})\n");
    ASSERT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.message.rfind("test.lua:3: tensor: index 7 is out of range", 0), 0u) << outcome.message;
    EXPECT_NE(outcome.traceback.find("test.lua:3: in local 'f'\n\t\treturn x[7] + 1"), std::string::npos)
        << outcome.traceback;
    EXPECT_NE(outcome.traceback.find("test.lua:5: in main chunk\n\t\tf(ms.tensor{1})"), std::string::npos)
        << outcome.traceback;
}

TEST(Errors, AnyValueMayBeThrown) {
    ProgramState state;
    EXPECT_EQ(run(state, "error({})").message, "test.lua:1: error object {}");
    EXPECT_EQ(run(state, "local function f()\n  error{code = 42, list = {1, 'a'}}\nend\nf()").message,
              "test.lua:2: error object {code = 42, list = {1, \"a\"}}");
    const Outcome large = run(state, "local t = {} for i = 1, 1e6 do t[i] = 'text' end error(t)");
    EXPECT_EQ(large.message.rfind("test.lua:1: the error object is a table:\n{", 0), 0u) << large.message;
    EXPECT_LT(large.message.size(), 1000u);
    EXPECT_EQ(run(state, "error(setmetatable({}, {__tostring = function() error('broken') end}))").message,
              "<error in __tostring: test.lua:1: broken>");
    EXPECT_EQ(run(state, "error(setmetatable({}, {__tostring = function() return 'mine' end}))").message, "mine");
    EXPECT_EQ(run(state, "error()").message, "(error object is a nil value)");
    EXPECT_NE(run(state, "local function f() return f() + 1 end f()").message.find("stack overflow"),
              std::string::npos);
    EXPECT_NE(run(state, "string.rep('x', 1 << 60)").message.find("too large"), std::string::npos);
}

TEST(Loader, KeepsSourcesByName) {
    ProgramState state;
    ASSERT_TRUE(run(state, "f = load('return 1', '=first') g = load('return 2', '=first') h = load('return 3')").ok);
    const auto texts = state.loader().sources("=first");
    ASSERT_EQ(texts.size(), 2u);
    EXPECT_EQ(texts[0], "return 2");
    EXPECT_EQ(state.loader().sources("return 3").front(), "return 3");
    EXPECT_TRUE(state.loader().sources("=unknown").empty());
}

TEST(Loader, FindsTheTreeOfAFunction) {
    ProgramState state;
    ASSERT_TRUE(
        run(state, "local k = 2\nfunction f(a, b) return a + b * k end function g(a) return a end\nh = print").ok);
    lua_State* L = state.lua();
    lua_getglobal(L, "f");
    const FunctionSource f = state.loader().source_of(L, -1);
    ASSERT_NE(f.function, nullptr);
    EXPECT_EQ(f.function->name, "f");
    EXPECT_EQ(f.function->parameters.size(), 2u);
    EXPECT_EQ(f.chunk->text(f.function->span), "function f(a, b) return a + b * k end");
    lua_getglobal(L, "g");
    EXPECT_EQ(state.loader().source_of(L, -1).function->name, "g");
    lua_getglobal(L, "h");
    EXPECT_EQ(state.loader().source_of(L, -1).function, nullptr);
    lua_settop(L, 0);
}

TEST(CommandLine, ReadsOptionsAsTheLuaCommandDoes) {
    const char* words[] = {"lunaria", "-e", "x=1", "-lmath", "-i", "-E", "-W", "file.lua", "-e", "b"};
    const CommandLine c = parse_command_line(10, words);
    ASSERT_EQ(c.steps.size(), 3u);
    EXPECT_EQ(c.steps[0].text, "x=1");
    EXPECT_EQ(c.steps[1].text, "math");
    EXPECT_TRUE(c.interactive && c.ignore_environment);
    EXPECT_EQ(c.script, "file.lua");
    EXPECT_EQ(c.script_position, 7);
    const char* unknown[] = {"lunaria", "--nope"};
    EXPECT_THROW(parse_command_line(2, unknown), Error);
    const char* incomplete[] = {"lunaria", "-e"};
    EXPECT_THROW(parse_command_line(2, incomplete), Error);
    const char* standard_input[] = {"lunaria", "-"};
    EXPECT_EQ(parse_command_line(2, standard_input).script, "-");
    const char* dashes[] = {"lunaria", "--", "-e"};
    EXPECT_EQ(parse_command_line(3, dashes).script, "-e");
}

TEST(TensorText, BreaksRowsAndSummarises) {
    Tensor t = Tensor::zeros(DType::i32, {40});
    EXPECT_EQ(elements_text(t, {.line_width = 20}).substr(0, 21), "[0, 0, 0, 0, 0, 0,\n 0");
    EXPECT_EQ(elements_text(t, {.threshold = 10, .edge_items = 2}), "[0, 0, ..., 0, 0]");
}

}  // namespace
}  // namespace lunaria
