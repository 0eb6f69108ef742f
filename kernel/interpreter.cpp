#include "kernel/interpreter.h"

#include <signal.h>
#include <unistd.h>

#include <sstream>
#include <xeus/xhelper.hpp>

#include "interpreter/session/startup.h"
#include "kernel/dap_session.h"
#include "kernel/text.h"

namespace lunaria::jupyter {

namespace {

// The names that JupyterLab has icons for.
std::string icon_of(const std::string& kind) {
    if (kind == "operator") return "function";
    if (kind == "tensor" || kind == "userdata") return "instance";
    if (kind == "file") return "path";
    if (kind == "command") return "magic";
    if (kind == "option") return "param";
    return kind;
}

std::vector<std::string> lines_of_cell(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

struct Failure {
    std::string name, message;
    std::vector<std::string> traceback;
};

Failure failure_of(const ErrorReport& report) {
    return {std::string(kind_name(report.kind)), report.message, lines_of_cell(format_error(report, true))};
}

nl::json object_of(const std::string& text) {
    nl::json value = nl::json::parse(text, nullptr, false);
    return value.is_object() ? value : nl::json::object();
}

}  // namespace

nl::json data_of(const MimeBundle& bundle) {
    nl::json data = nl::json::object();
    for (const MimePart& part : bundle.parts) {
        if (is_binary_type(part.type)) {
            data[part.type] = base64(part.data);
            continue;
        }
        nl::json value = is_json_type(part.type) ? nl::json::parse(part.data, nullptr, false) : nl::json();
        data[part.type] = value.is_null() || value.is_discarded() ? nl::json(part.data) : std::move(value);
    }
    return data;
}

Interpreter::Interpreter(Session& session) : session_(session) { session_.set_hooks(hooks()); }

void Interpreter::connect(Server& server) {
    server_ = &server;
    session_.state().set_visitor([this] { server_->visit(); });
}

Session::Hooks Interpreter::hooks() {
    Session::Hooks hooks;
    hooks.output = [this](bool is_error, std::string_view text) { server_->write(is_error, text); };
    hooks.input = [this](const std::string& prompt) { return server_->ask(prompt, false); };
    hooks.password = [this](const std::string& prompt) { return server_->ask(prompt, true); };
    hooks.page = [this](const Inspection& found) {
        nl::json data = {{"text/plain", found.text}};
        if (!found.markdown.empty()) data["text/markdown"] = found.markdown;
        payload_.push_back({{"source", "page"}, {"data", std::move(data)}, {"start", 0}});
    };
    hooks.set_next_input = [this](const std::string& text) {
        payload_.push_back({{"source", "set_next_input"}, {"text", text}, {"replace", false}});
    };
    hooks.display = [this](const Display& shown) { show(shown); };
    hooks.clear_output = [this](bool wait) { clear_output(wait); };
    hooks.comm = [this](const CommMessage& message) { server_->send_comm(message); };
    return hooks;
}

void Interpreter::show(const Display& shown) {
    nl::json transient = nl::json::object();
    if (!shown.id.empty()) transient["display_id"] = shown.id;
    const nl::json metadata = object_of(shown.bundle.metadata);
    if (shown.update)
        update_display_data(data_of(shown.bundle), metadata, std::move(transient));
    else
        display_data(data_of(shown.bundle), metadata, std::move(transient));
}

void Interpreter::interrupt() {
    // The signal's handler does the rest, on the thread that runs Lua. Children of the cell get the signal too, as when
    // the front end sends it.
    if (getpgrp() == getpid())
        kill(0, SIGINT);
    else
        pthread_kill(thread_, SIGINT);
}

int Interpreter::next_count(const std::string& code, bool store_history) const {
    const bool counts = store_history && code.find_first_not_of(" \t\r\n") != std::string::npos;
    return session_.count() + (counts ? 1 : 0);
}

void Interpreter::receive_comm(const CommMessage& message) {
    const Execution execution = session_.receive(message);
    if (execution.error) server_->streams().write(true, format_error(*execution.error, false) + "\n");
}

void Interpreter::on_wake() {
    if (debugger_) debugger_->serve();
}

nl::json Interpreter::execute_request_impl(int, const std::string& code, bool silent, bool store_history,
                                           nl::json user_expressions, bool) {
    // A cell of another shell may run in the middle of one.
    struct Payload {
        nl::json& now;
        nl::json outer;
        ~Payload() { now = std::move(outer); }
    } const payload{payload_, std::exchange(payload_, nl::json::array())};
    ExecuteOptions options;
    options.store_history = store_history && !silent;
    // With the first cell, in whose output errors of the file are seen.
    if (!std::exchange(started_, true))
        if (const Execution first = run_startup_file(session_); first.error)
            server_->streams().write(true, format_error(*first.error, false) + "\n");
    options.show = !silent;
    options.rich = !silent;
    if (!options.store_history) options.name = "=(cell)";
    const Execution execution = session_.execute(code, options);
    if (execution.error) {
        const Failure failure = failure_of(*execution.error);
        if (!silent) publish_execution_error(failure.name, failure.message, failure.traceback);
        return {{"status", "error"},
                {"ename", failure.name},
                {"evalue", failure.message},
                {"traceback", failure.traceback},
                {"execution_count", 0},
                {"payload", payload_},
                {"user_expressions", nl::json::object()}};
    }
    if (execution.exit_status) {
        exit_status_ = *execution.exit_status;
        server_->stop();
    }
    if (execution.leave || execution.exit_status) payload_.push_back({{"source", "ask_exit"}, {"keepkernel", false}});
    if (!execution.rich.parts.empty())
        publish_execution_result(execution.number, data_of(execution.rich), object_of(execution.rich.metadata));
    return {{"status", "ok"},
            {"execution_count", 0},
            {"payload", payload_},
            {"user_expressions", evaluate(user_expressions)}};
}

nl::json Interpreter::evaluate(const nl::json& expressions) {
    nl::json results = nl::json::object();
    ExecuteOptions options;
    options.name = "=(expression)";
    options.store_history = false;
    options.rich = true;
    for (const auto& [name, text] : expressions.items()) {
        const Execution execution = session_.execute(text, options);
        if (execution.error) {
            const Failure failure = failure_of(*execution.error);
            results[name] = {{"status", "error"},
                             {"ename", failure.name},
                             {"evalue", failure.message},
                             {"traceback", failure.traceback}};
            continue;
        }
        nl::json data = data_of(execution.rich);
        // Front ends expect a text, even of nil.
        if (data.empty()) data["text/plain"] = execution.results.empty() ? "" : execution.results.front();
        results[name] = {{"status", "ok"}, {"data", std::move(data)}, {"metadata", object_of(execution.rich.metadata)}};
    }
    return results;
}

nl::json Interpreter::complete_request_impl(const std::string& code, int cursor) {
    const Completions found = session_.complete(code, byte_position(code, cursor));
    const int begin = code_point_position(code, found.begin), end = code_point_position(code, found.end);
    nl::json matches = nl::json::array(), types = nl::json::array();
    for (const CompletionItem& item : found.items) {
        matches.push_back(item.text);
        types.push_back({{"start", begin},
                         {"end", end},
                         {"text", item.text},
                         {"type", icon_of(item.kind)},
                         {"signature", item.signature}});
    }
    return xeus::create_complete_reply(matches, begin, end, {{"_jupyter_types_experimental", std::move(types)}});
}

nl::json Interpreter::inspect_request_impl(const std::string& code, int cursor, int level) {
    const Inspection found = session_.inspect(code, byte_position(code, cursor), level);
    if (!found.found) return xeus::create_inspect_reply(false);
    nl::json data = {{"text/plain", found.text}};
    if (!found.markdown.empty()) data["text/markdown"] = found.markdown;
    return xeus::create_inspect_reply(true, data);
}

nl::json Interpreter::is_complete_request_impl(const std::string& code) {
    const InputCheck check = session_.is_complete(code);
    nl::json reply = {{"status", check.kind == InputKind::complete     ? "complete"
                                 : check.kind == InputKind::incomplete ? "incomplete"
                                                                       : "invalid"}};
    if (check.kind == InputKind::incomplete) reply["indent"] = check.indent;
    return reply;
}

// Called on the control thread as well: nothing of Lua is touched.
nl::json Interpreter::kernel_info_request_impl() {
    const nl::json language = {{"name", "lua"},
                               {"version", LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE},
                               {"mimetype", "text/x-lua"},
                               {"file_extension", ".lua"},
                               {"pygments_lexer", "lua"},
                               {"codemirror_mode", "lua"},
                               {"nbconvert_exporter", "script"}};
    const auto link = [](const char* text, const char* url) { return nl::json{{"text", text}, {"url", url}}; };
    return {{"status", "ok"},
            {"implementation", "lunaria"},
            {"implementation_version", LUNARIA_VERSION},
            {"language_info", language},
            {"banner", "Lunaria " LUNARIA_VERSION " (" LUA_RELEASE "). ?name explains, %lsmagic lists commands."},
            {"debugger", server_->has_debugger()},
            {"help_links", nl::json::array({link("Lua 5.4", "https://www.lua.org/manual/5.4/")})}};
}

}  // namespace lunaria::jupyter
