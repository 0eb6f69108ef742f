#include "kernel/dap_session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>

#include "core/base/signals.h"
#include "core/io/file.h"
#include "interpreter/loader/loader.h"
#include "kernel/interpreter.h"

namespace lunaria::jupyter {

namespace {

using Json = nlohmann::json;

constexpr int kThread = 1;  // Lua has one
constexpr uint32_t kSeed = 0xc70f6907u;
constexpr const char* kSuffix = ".lua";

// MurmurHash2 by Austin Appleby (public domain): with it JupyterLab computes the name of a cell's file by itself.
uint32_t murmur2(std::string_view text, uint32_t seed) {
    constexpr uint32_t m = 0x5bd1e995u;
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
    uint32_t h = seed ^ static_cast<uint32_t>(text.size());
    size_t i = 0;
    for (; i + 4 <= text.size(); i += 4) {
        uint32_t k = byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24;
        k *= m;
        k ^= k >> 24;
        h = (h * m) ^ (k * m);
    }
    const size_t rest = text.size() - i;
    if (rest == 3) h ^= byte(i + 2) << 16;
    if (rest >= 2) h ^= byte(i + 1) << 8;
    if (rest >= 1) h = (h ^ byte(i)) * m;
    h ^= h >> 13;
    h *= m;
    return h ^ (h >> 15);
}

std::string text_of_member(const Json& object, const char* key, const std::string& otherwise = {}) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

int64_t number_of(const Json& object, const char* key, int64_t otherwise = 0) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

const Json& part_of(const Json& object, const char* key) {
    static const Json kNothing = Json::object();
    const auto found = object.find(key);
    return found != object.end() ? *found : kNothing;
}

std::string path_in(const Json& arguments) { return text_of_member(part_of(arguments, "source"), "path"); }

// JupyterLab shows the type in place of the value unless it knows the type, by Python's name.
std::string type_name(const std::string& type) {
    if (type == "integer") return "int";
    if (type == "boolean") return "bool";
    return type == "string" ? "str" : type;
}

Json variable_json(const ShownValue& v) {
    return {{"name", v.name},
            {"value", v.value},
            {"type", type_name(v.type)},
            {"evaluateName", v.evaluate},
            {"variablesReference", v.reference},
            {"namedVariables", v.named},
            {"indexedVariables", v.indexed}};
}

Json variables_json(const std::vector<ShownValue>& list) {
    Json all = Json::array();
    for (const ShownValue& v : list) all.push_back(variable_json(v));
    return {{"variables", std::move(all)}};
}

const char* reason_text(StopReason reason) {
    switch (reason) {
        case StopReason::breakpoint:
        case StopReason::call:
            return "breakpoint";
        case StopReason::entry:
            return "entry";
        case StopReason::pause:
            return "pause";
        case StopReason::error:
            return "exception";
        case StopReason::watch:
            return "data breakpoint";
        default:
            return "step";
    }
}

// "5", ">= 5": stops from that hit on.
int first_hit(const std::string& condition) {
    const size_t digit = condition.find_first_of("0123456789");
    int hit = 1;
    if (digit != std::string::npos) std::from_chars(condition.data() + digit, condition.data() + condition.size(), hit);
    const bool after = condition.find('>') != std::string::npos && condition.find('=') == std::string::npos;
    return std::max(1, hit + (after ? 1 : 0));
}

std::optional<std::string> file_text(const std::string& path) {
    try {
        return read_file(path);
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

DapSession::DapSession(Session& session, Hooks hooks)
    : session_(session),
      debugger_(session.state().debugger()),
      hooks_(std::move(hooks)),
      prefix_((std::filesystem::temp_directory_path() / str("lunaria_", new_display_id())).string() + "/"),
      variables_(session.state()) {
    session_.state().listen();
    debugger_.rename_sources([this](const std::string& source) { return path_of(source); });
}

DapSession::~DapSession() {
    stop();
    debugger_.rename_sources({});
    std::error_code ignored;
    std::filesystem::remove_all(prefix_, ignored);
}

std::string DapSession::cell_path(std::string_view code) const { return str(prefix_, murmur2(code, kSeed), kSuffix); }

// Cells are identified by their text: the same text run again is the same cell.
std::string DapSession::path_of(const std::string& source) const {
    size_t number = 0;
    if (source.starts_with("In[") && source.ends_with("]"))
        std::from_chars(source.data() + 3, source.data() + source.size(), number);
    const auto& cells = session_.history();
    return number > 0 && number <= cells.size() ? cell_path(cells[number - 1]) : std::string();
}

const std::map<std::string, DapSession::Handler, std::less<>>& DapSession::handlers() {
    using D = DapSession;
    static const std::map<std::string, Handler, std::less<>> all = {
        {"initialize", &D::initialize},
        {"attach", &D::attach},
        {"launch", &D::attach},
        {"disconnect", &D::disconnect},
        {"terminate", &D::terminate},
        {"configurationDone", &D::configuration_done},
        {"debugInfo", &D::debug_info},
        {"dumpCell", &D::dump_cell},
        {"setBreakpoints", &D::set_breakpoints},
        {"setExceptionBreakpoints", &D::set_exception_breakpoints},
        {"exceptionInfo", &D::exception_info},
        {"source", &D::source},
        {"threads", &D::threads},
        {"stackTrace", &D::stack_trace},
        {"scopes", &D::scopes},
        {"variables", &D::variables},
        {"inspectVariables", &D::inspect_variables},
        {"richInspectVariables", &D::rich_inspect_variables},
        {"copyToGlobals", &D::copy_to_globals},
        {"modules", &D::modules},
        {"evaluate", &D::evaluate},
        {"setVariable", &D::set_variable},
        {"setExpression", &D::set_expression},
        {"continue", &D::go},
        {"next", &D::next},
        {"stepIn", &D::step_in},
        {"stepOut", &D::step_out},
        {"pause", &D::pause},
    };
    return all;
}

Json DapSession::answer(const Json& request) {
    Json response = {{"type", "response"}, {"seq", sequence_++}, {"request_seq", 0}, {"success", false}};
    response["command"] = text_of_member(request, "command");
    response["body"] = Json::object();
    try {
        if (!request.is_object()) throw argument_error("debugger", "a request is a JSON object");
        response["request_seq"] = number_of(request, "seq");
        const auto handler = handlers().find(text_of_member(request, "command"));
        if (handler == handlers().end())
            throw argument_error("debugger", str("there is no request '", text_of_member(request, "command"), "'"));
        const Json& arguments = part_of(request, "arguments");
        if (!arguments.is_object()) throw argument_error("debugger", "the arguments are no JSON object");
        Json body = (this->*handler->second)(arguments);
        if (!body.is_null()) response["body"] = std::move(body);
        response["success"] = true;
    } catch (const std::exception& e) {
        response["message"] = e.what();
    }
    return response;
}

void DapSession::event(const std::string& name, Json body) {
    hooks_.event({{"type", "event"}, {"seq", sequence_++}, {"event", name}, {"body", std::move(body)}});
}

// Lua's thread.

Resume DapSession::on_stop(const Stop& stop) {
    Json body = {{"reason", reason_text(stop.reason)}, {"threadId", kThread}, {"allThreadsStopped", true}};
    if (!stop.text.empty()) {
        body["text"] = stop.text;
        body["description"] = stop.text;
    }
    if (!stop.breakpoints.empty()) body["hitBreakpointIds"] = stop.breakpoints;
    variables_.clear();
    std::unique_lock lock(mutex_);
    stop_ = stop;
    how_.reset();
    stopped_ = true;
    lock.unlock();
    event("stopped", std::move(body));
    lock.lock();
    while (!how_) {
        if (!tasks_.empty()) {
            run_task(lock);
            continue;
        }
        changed_.wait_for(lock, std::chrono::milliseconds(50));
        if (program_visit_requested()) {
            lock.unlock();
            visit();
            lock.lock();
        }
        // An interrupt of the cell ends it, wherever it is.
        if (program_interrupt_requested()) how_ = Resume::leave;
    }
    const Resume how = *how_;
    stopped_ = false;
    lock.unlock();
    variables_.clear();
    event("continued", {{"threadId", kThread}, {"allThreadsContinued", true}});
    return how;
}

void DapSession::run_task(std::unique_lock<std::mutex>& lock) {
    const std::shared_ptr<Task> task = std::move(tasks_.front());
    tasks_.pop_front();
    task->taken = true;
    lock.unlock();
    task->run();
    lock.lock();
    task->done = true;
    changed_.notify_all();
}

void DapSession::serve() {
    std::unique_lock lock(mutex_);
    while (!tasks_.empty()) run_task(lock);
}

void DapSession::on_lua(const std::function<void()>& body) {
    std::exception_ptr failure;
    const auto task = std::make_shared<Task>();
    task->run = [&] {
        try {
            body();
        } catch (const std::exception&) {
            failure = std::current_exception();
        }
    };
    std::unique_lock lock(mutex_);
    tasks_.push_back(task);
    changed_.notify_all();
    lock.unlock();
    if (hooks_.wake) hooks_.wake();
    lock.lock();
    const bool in_time = changed_.wait_for(lock, patience_, [&] { return task->taken || task->done; });
    if (!in_time) {
        std::erase(tasks_, task);
        throw state_error("debugger", "the program is running");
    }
    changed_.wait(lock, [&] { return task->done; });
    if (failure) std::rethrow_exception(failure);
}

// Requests.

void DapSession::start() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(started_, true)) return;
    prompt_ = debugger_.front();
    debugger_.set_front([this](const Stop& stop) { return on_stop(stop); });
    debugger_.set_log([this](const std::string& text) {
        event("output", {{"category", "console"}, {"output", text + "\n"}});
    });
    debugger_.set_attached(true);
}

void DapSession::stop() {
    {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(started_, false)) return;
        breakpoints_.clear();
        debugger_.set_front(std::move(prompt_));
        debugger_.set_log({});
        debugger_.set_attached(false);
        if (stopped_) how_ = Resume::go;
    }
    changed_.notify_all();
    debugger_.stop_at_errors(false, false);
    debugger_.remove_breakpoints();
}

Json DapSession::initialize(const Json&) {
    start();
    Json filters = Json::array();
    filters.push_back({{"filter", "raised"}, {"label", "Raised errors"}, {"default", false}});
    filters.push_back({{"filter", "uncaught"}, {"label", "Uncaught errors"}, {"default", false}});
    return {{"supportsConfigurationDoneRequest", true},
            {"supportsConditionalBreakpoints", true},
            {"supportsHitConditionalBreakpoints", true},
            {"supportsLogPoints", true},
            {"supportsSetVariable", true},
            {"supportsSetExpression", true},
            {"supportsEvaluateForHovers", true},
            {"supportsExceptionInfoRequest", true},
            {"supportsModulesRequest", true},
            {"supportsTerminateRequest", true},
            {"supportsDelayedStackTraceLoading", true},
            {"exceptionBreakpointFilters", std::move(filters)}};
}

Json DapSession::attach(const Json&) {
    start();
    event("initialized");
    event("thread", {{"reason", "started"}, {"threadId", kThread}});
    return nullptr;
}

Json DapSession::disconnect(const Json& a) {
    const auto end = a.find("terminateDebuggee");
    if (end != a.end() && end->is_boolean() && end->get<bool>()) return terminate(a);
    stop();
    event("terminated");
    return nullptr;
}

Json DapSession::terminate(const Json&) {
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) how_ = Resume::leave;
    }
    changed_.notify_all();
    stop();
    event("terminated");
    return nullptr;
}

Json DapSession::configuration_done(const Json&) { return nullptr; }

Json DapSession::debug_info(const Json&) {
    const std::lock_guard lock(mutex_);
    Json breakpoints = Json::array();
    for (const auto& [source, list] : breakpoints_) breakpoints.push_back({{"source", source}, {"breakpoints", list}});
    Json stopped = Json::array();
    if (stopped_) stopped.push_back(kThread);
    return {{"isStarted", started_},
            {"hashMethod", "Murmur2"},
            {"hashSeed", kSeed},
            {"tmpFilePrefix", prefix_},
            {"tmpFileSuffix", kSuffix},
            {"breakpoints", std::move(breakpoints)},
            {"stoppedThreads", std::move(stopped)},
            {"richRendering", true},
            {"copyToGlobals", true},
            {"exceptionPaths", Json::array({"Lua Exceptions"})}};
}

Json DapSession::dump_cell(const Json& a) {
    const auto code = a.find("code");
    if (code == a.end() || !code->is_string()) throw argument_error("dumpCell", "the code must be a string");
    const std::string path = cell_path(code->get<std::string>());
    // For the user alone: a cell may hold secrets.
    mkdir(prefix_.c_str(), 0700);
    write_file(path, code->get<std::string>());
    return {{"sourcePath", path}};
}

Json DapSession::set_breakpoints(const Json& a) {
    const std::string path = path_in(a);
    if (path.empty()) throw argument_error("setBreakpoints", "the source has no path");
    const auto asked = a.find("breakpoints");
    if (asked != a.end() && !asked->is_array()) throw argument_error("setBreakpoints", "breakpoints must be a list");
    const auto text = file_text(path);
    const std::vector<int> lines = text ? lines_with_code(*text) : std::vector<int>();
    std::vector<Breakpoint> list;
    std::vector<bool> verified;
    for (const Json& one : asked != a.end() ? *asked : Json::array()) {
        if (!one.is_object()) throw argument_error("setBreakpoints", "a breakpoint is a JSON object");
        Breakpoint b;
        b.line = static_cast<int>(std::clamp<int64_t>(number_of(one, "line"), 0, 1 << 30));
        b.condition = text_of_member(one, "condition");
        b.log = text_of_member(one, "logMessage");
        b.from_hit = first_hit(text_of_member(one, "hitCondition"));
        const auto next = std::lower_bound(lines.begin(), lines.end(), b.line);
        verified.push_back(lines.empty() || next != lines.end());
        if (next != lines.end()) b.line = *next;
        list.push_back(std::move(b));
    }
    {
        const std::lock_guard lock(mutex_);
        if (list.empty())
            breakpoints_.erase(path);
        else
            breakpoints_[path] = *asked;
    }
    Json result = Json::array();
    const auto set = debugger_.set_breakpoints(path, std::move(list));
    for (size_t i = 0; i < set.size(); ++i)
        result.push_back({{"id", set[i].id},
                          {"verified", static_cast<bool>(verified[i])},
                          {"line", set[i].line},
                          {"source", {{"path", path}}}});
    return {{"breakpoints", std::move(result)}};
}

Json DapSession::set_exception_breakpoints(const Json& a) {
    bool raised = false, uncaught = false;
    for (const Json& filter : part_of(a, "filters")) {
        raised |= filter == "raised" || filter == "all";
        uncaught |= filter == "uncaught" || filter == "userUnhandled" || filter == "unhandled";
    }
    debugger_.stop_at_errors(raised, raised || uncaught);
    return nullptr;
}

Json DapSession::exception_info(const Json&) {
    const std::lock_guard lock(mutex_);
    if (!stopped_ || stop_.reason != StopReason::error)
        throw state_error("exceptionInfo", "no error stopped the program");
    return {{"exceptionId", "Error"},
            {"description", stop_.text},
            {"breakMode", "always"},
            {"details", {{"message", stop_.text}, {"typeName", "Error"}}}};
}

Json DapSession::source(const Json& a) {
    const std::string path = path_in(a);
    if (auto text = file_text(path)) return {{"content", std::move(*text)}, {"mimeType", "text/x-lua"}};
    throw file_error(path, "the source is not available");
}

Json DapSession::threads(const Json&) { return {{"threads", Json::array({{{"id", kThread}, {"name", "Lua"}}})}}; }

Json DapSession::frame_json(const StackFrame& frame, size_t index) const {
    std::string path = path_of(frame.source);
    const bool is_cell = !path.empty();
    if (path.empty() && frame.chunk.starts_with('@')) {
        std::error_code failure;
        path = std::filesystem::absolute(frame.source, failure).string();
    }
    Json json = {
        {"id", index + 1},
        {"name", (frame.backward ? "derivative of " : "") + frame.function},
        {"line", frame.line},
        {"column", 1},
        {"source", {{"name", is_cell ? frame.source : std::filesystem::path(frame.source).filename().string()}}}};
    if (!path.empty()) json["source"]["path"] = path;
    return json;
}

Json DapSession::stack_trace(const Json& a) {
    Json frames = Json::array();
    size_t total = 0;
    on_lua([&] {
        const auto& all = debugger_.stack().frames();
        total = all.size();
        const auto first = static_cast<size_t>(std::max<int64_t>(0, number_of(a, "startFrame")));
        const auto levels = static_cast<size_t>(std::max<int64_t>(0, number_of(a, "levels")));
        for (size_t i = first; i < total && (levels == 0 || i < first + levels); ++i)
            frames.push_back(frame_json(all[i], i));
    });
    return {{"stackFrames", std::move(frames)}, {"totalFrames", total}};
}

size_t DapSession::frame_of(const Json& a) {
    const int64_t id = number_of(a, "frameId");
    return id > 0 ? static_cast<size_t>(id) - 1 : DebugVariables::npos;
}

Json DapSession::scopes(const Json& a) {
    Json list = Json::array();
    on_lua([&] {
        for (const auto& s : variables_.scopes(frame_of(a)))
            list.push_back({{"name", s.name},
                            {"variablesReference", s.reference},
                            {"namedVariables", s.count},
                            {"expensive", false}});
    });
    return {{"scopes", std::move(list)}};
}

Json DapSession::variables(const Json& a) {
    std::vector<ShownValue> list;
    on_lua([&] {
        const auto at_least_none = [&](const char* key) {
            return static_cast<size_t>(std::max<int64_t>(0, number_of(a, key)));
        };
        const int64_t reference = std::clamp<int64_t>(number_of(a, "variablesReference"), 0, 1 << 30);
        list = variables_.parts(static_cast<int>(reference), text_of_member(a, "filter"), at_least_none("start"),
                                at_least_none("count"));
    });
    return variables_json(list);
}

Json DapSession::inspect_variables(const Json&) {
    std::vector<ShownValue> list;
    on_lua([&] {
        if (!debugger_.is_stopped()) variables_.clear();
        list = variables_.globals();
    });
    return variables_json(list);
}

Json DapSession::rich_inspect_variables(const Json& a) {
    const std::string name = text_of_member(a, "variableName");
    if (name.empty()) throw argument_error("richInspectVariables", "no variable is named");
    MimeBundle bundle;
    on_lua([&] { bundle = variables_.rich(frame_of(a), name); });
    return {{"data", data_of(bundle)}, {"metadata", Json::object()}};
}

Json DapSession::copy_to_globals(const Json& a) {
    const std::string from = text_of_member(a, "srcVariableName"), to = text_of_member(a, "dstVariableName");
    if (from.empty() || to.empty()) throw argument_error("copyToGlobals", "two names are needed");
    Json frame = {{"frameId", number_of(a, "srcFrameId")}};
    on_lua([&] { variables_.copy_to_globals(frame_of(frame), from, to); });
    return nullptr;
}

Json DapSession::modules(const Json& a) {
    std::vector<ShownValue> loaded;
    on_lua([&] {
        const ShownValue all = variables_.evaluate(DebugVariables::npos, "package.loaded");
        if (all.reference > 0) loaded = variables_.parts(all.reference);
    });
    Json list = Json::array();
    const auto start = static_cast<size_t>(std::max<int64_t>(0, number_of(a, "startModule")));
    const auto count = static_cast<size_t>(std::max<int64_t>(0, number_of(a, "moduleCount")));
    for (size_t i = start; i < loaded.size() && (count == 0 || i < start + count); ++i)
        list.push_back({{"id", i}, {"name", loaded[i].name}});
    return {{"modules", std::move(list)}, {"totalModules", loaded.size()}};
}

Json DapSession::evaluate(const Json& a) {
    const std::string code = text_of_member(a, "expression");
    ShownValue v;
    on_lua([&] { v = variables_.evaluate(frame_of(a), code); });
    return {{"result", v.value},
            {"type", v.type},
            {"variablesReference", v.reference},
            {"namedVariables", v.named},
            {"indexedVariables", v.indexed}};
}

Json DapSession::set_variable(const Json& a) {
    ShownValue v;
    on_lua([&] {
        const int64_t reference = std::clamp<int64_t>(number_of(a, "variablesReference"), 0, 1 << 30);
        v = variables_.set(static_cast<int>(reference), text_of_member(a, "name"), text_of_member(a, "value"));
    });
    return variable_json(v);
}

Json DapSession::set_expression(const Json& a) {
    const std::string target = text_of_member(a, "expression"), value = text_of_member(a, "value");
    ShownValue v;
    on_lua([&] {
        variables_.evaluate(frame_of(a), target + " = " + value);
        v = variables_.evaluate(frame_of(a), target);
    });
    return variable_json(v);
}

Json DapSession::pause(const Json&) {
    debugger_.request_pause();
    return nullptr;
}

Json DapSession::resume(Resume how) {
    {
        const std::lock_guard lock(mutex_);
        if (!stopped_) throw state_error("debugger", "the program is not stopped");
        how_ = how;
    }
    changed_.notify_all();
    return {{"allThreadsContinued", true}};
}

}  // namespace lunaria::jupyter
