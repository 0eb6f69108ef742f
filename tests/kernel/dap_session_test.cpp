#include "kernel/dap_session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <xtl/xhash.hpp>

#include "interpreter/program/program_state.h"

namespace lunaria::jupyter {
namespace {

using Json = nlohmann::json;

// Cells run on the test's own thread, which is Lua's; requests come from another, as in the kernel.
class DapSessionTest : public testing::Test {
  protected:
    DapSessionTest() : dap(session, {[this](Json event) { note(std::move(event)); }, {}}) {}

    void note(Json event) {
        const std::lock_guard lock(mutex);
        events.push_back(std::move(event));
        changed.notify_all();
    }

    // The body of the next event of that name.
    Json wait_for(const std::string& name) {
        std::unique_lock lock(mutex);
        Json body;
        const bool came = changed.wait_for(lock, std::chrono::seconds(20), [&] {
            for (size_t i = 0; i < events.size(); ++i)
                if (events[i]["event"] == name) {
                    body = events[i]["body"];
                    events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
                    return true;
                }
            return false;
        });
        EXPECT_TRUE(came) << name;
        return body;
    }

    Json ask(const std::string& command, Json arguments = Json::object()) {
        Json response = dap.answer({{"type", "request"}, {"seq", 7}, {"command", command}, {"arguments", arguments}});
        EXPECT_EQ(response["request_seq"], 7);
        EXPECT_TRUE(response["success"].get<bool>()) << command << ": " << response.dump();
        return response["body"];
    }

    std::string failure(const Json& request) {
        const Json response = dap.answer(request);
        EXPECT_FALSE(response["success"].get<bool>()) << response.dump();
        return response.value("message", "");
    }

    // Runs the cell while `talk` speaks to the debugger from another thread.
    std::string run(const std::string& code, const std::function<void()>& talk) {
        std::thread other(talk);
        const Execution execution = session.execute(code);
        other.join();
        dap.serve();
        if (execution.error) return "error: " + execution.error->message;
        return execution.results.empty() ? "" : execution.results[0];
    }

    Json break_at(const std::string& code, int line) {
        const std::string path = ask("dumpCell", {{"code", code}})["sourcePath"];
        return ask("setBreakpoints", {{"source", {{"path", path}}}, {"breakpoints", {{{"line", line}}}}});
    }

    ProgramState state;
    Session session{state};
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Json> events;
    DapSession dap;
};

TEST_F(DapSessionTest, the_file_of_a_cell_is_named_by_its_hash) {
    const Json info = ask("debugInfo");
    EXPECT_EQ(info["hashMethod"], "Murmur2");
    EXPECT_EQ(info["isStarted"], false);
    const std::string path = ask("dumpCell", {{"code", "x = 1"}})["sourcePath"];
    EXPECT_TRUE(path.starts_with(info["tmpFilePrefix"].get<std::string>())) << path;
    std::ifstream file(path);
    std::string text;
    std::getline(file, text);
    EXPECT_EQ(text, "x = 1");
    EXPECT_EQ(ask("source", {{"source", {{"path", path}}}})["content"], "x = 1");
    // As JupyterLab computes it, for every length of what is left over after blocks of four bytes.
    for (const std::string code :
         {"", "a", "ab", "abc", "abcd", "local x = ms.tensor{1, 2}\nx:sum()", "\xc3\xa4\xff"}) {
        const uint32_t hash = xtl::murmur2_x86(code.data(), code.size(), info["hashSeed"].get<uint32_t>());
        EXPECT_EQ(dap.cell_path(code), str(info["tmpFilePrefix"].get<std::string>(), hash, ".lua")) << code;
    }
}

TEST_F(DapSessionTest, stops_shows_and_steps) {
    ask("initialize");
    ask("attach");
    wait_for("initialized");
    const std::string code = "local t = ms.tensor{1.0, 2.0}\nlocal n = 1\nn = n + 1\nreturn n";
    EXPECT_EQ(break_at(code, 2)["breakpoints"][0]["verified"], true);
    const std::string result = run(code, [&] {
        EXPECT_EQ(wait_for("stopped")["reason"], "breakpoint");
        EXPECT_EQ(ask("stackTrace")["stackFrames"][0]["line"], 2);
        const Json scopes = ask("scopes", {{"frameId", 1}})["scopes"];
        EXPECT_EQ(scopes[0]["name"], "Locals");
        const Json locals = ask("variables", {{"variablesReference", scopes[0]["variablesReference"]}})["variables"];
        EXPECT_EQ(locals[0]["name"], "t");
        EXPECT_NE(locals[0]["value"].get<std::string>().find("shape=[2], dtype=Float32"), std::string::npos);
        ask("next");
        EXPECT_EQ(wait_for("stopped")["reason"], "step");
        EXPECT_EQ(ask("evaluate", {{"expression", "n"}, {"frameId", 1}})["result"], "1");
        EXPECT_EQ(ask("setExpression", {{"expression", "n"}, {"value", "9"}, {"frameId", 1}})["value"], "9");
        EXPECT_NE(failure({{"command", "exceptionInfo"}, {"seq", 1}}), "");
        ask("continue");
    });
    EXPECT_EQ(result, "10");
}

TEST_F(DapSessionTest, breakpoints_move_to_lines_with_code) {
    const Json set = break_at("-- a comment\n\nlocal a = 1\n-- another", 1)["breakpoints"][0];
    EXPECT_EQ(set["line"], 3);
    EXPECT_EQ(set["verified"], true);
    EXPECT_EQ(break_at("local a = 1\n\n-- after all code", 3)["breakpoints"][0]["verified"], false);
}

TEST_F(DapSessionTest, a_program_that_runs_answers_nothing_but_can_be_paused) {
    ask("attach");
    dap.set_patience(std::chrono::milliseconds(50));
    run("while not done do local t = {} end", [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        EXPECT_NE(failure({{"command", "inspectVariables"}, {"seq", 1}}).find("running"), std::string::npos);
        ask("pause");
        wait_for("stopped");
        dap.set_patience(std::chrono::milliseconds(5000));
        ask("evaluate", {{"expression", "done = true"}, {"frameId", 1}});
        ask("disconnect");
        wait_for("terminated");
    });
}

TEST_F(DapSessionTest, malformed_requests_fail) {
    for (const char* text :
         {"null", "3", "[]", "{}", R"({"command": 3})", R"({"command": "evaluate", "arguments": []})",
          R"({"command": "setBreakpoints", "arguments": {"source": 3, "breakpoints": {}}})",
          R"({"command": "setBreakpoints", "arguments": {"source": {"path": "p"}, "breakpoints": 1}})",
          R"({"command": "dumpCell", "arguments": {"code": null}})",
          R"({"command": "stepIn", "arguments": {"threadId": "x"}})"})
        EXPECT_NE(failure(Json::parse(text)), "") << text;
    EXPECT_TRUE(
        dap.answer(Json::parse(R"({"command": "setExceptionBreakpoints", "arguments": {"filters": 5}})")).is_object());
}

}  // namespace
}  // namespace lunaria::jupyter
