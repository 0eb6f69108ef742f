// The control channel: requests that must be answered while a cell runs.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "kernel/requests.h"
#include "kernel/server.h"

namespace lunaria::jupyter {

namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 1500ms;  // for a cell that does not stop when the kernel is to end
constexpr auto kLastPatience = 4s;  // for finalizers that do not end

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

nl::json usage() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::ifstream file("/proc/self/statm");
    long size = 0, resident = 0;
    file >> size >> resident;
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return {{"status", "ok"},
            {"hostname", host.data()},
            {"pid", getpid()},
            {"kernel_cpu_seconds", seconds(used.ru_utime) + seconds(used.ru_stime)},
            {"kernel_memory", resident * sysconf(_SC_PAGESIZE)}};
}

}  // namespace

void Server::serve_control(xeus::xmessage message) {
    const std::string type = message.header()["msg_type"];
    try {
        nl::json content = message.content();
        if (const auto complaint = complete_content(type, content)) {
            refuse(Channel::control, message, *complaint);
        } else if (type == "kernel_info_request") {
            notify_control_listener(std::move(message));
        } else if (type == "shutdown_request") {
            status(message.header(), "busy");
            const nl::json answer = {{"status", "ok"}, {"restart", content["restart"]}};
            publish("shutdown_reply", message.header(), answer);
            reply(Channel::control, message, "shutdown_reply", answer);
            status(message.header(), "idle");
            shut_down();
        } else {
            const nl::json answer = answer_control(type, content);
            if (answer.is_null()) {
                // Only the main thread may run Lua.
                refuse(Channel::control, message, type + " is not taken on the control channel");
                return;
            }
            status(message.header(), "busy");
            reply(Channel::control, message, reply_type(type), answer);
            status(message.header(), "idle");
        }
    } catch (const std::exception& e) {
        context_.log->line(type + ": " + e.what());
    }
}

nl::json Server::answer_control(const std::string& type, const nl::json& content) {
    if (type == "interrupt_request") {
        host_->interrupt();
        return {{"status", "ok"}};
    }
    if (type == "comm_info_request") return comms(content["target_name"]);
    if (type == "usage_request") {
        nl::json answer = usage();
        answer["interrupt_seconds"] = host_->interrupt_seconds();
        return answer;
    }
    if (type == "create_subshell_request") return create_shell();
    if (type == "delete_subshell_request") return delete_shell(content["subshell_id"]);
    if (type == "list_subshell_request") return list_shells();
    return nullptr;
}

void Server::serve_debug(xeus::xmessage message) {
    const nl::json& request = message.content();
    nl::json answer = {{"type", "response"}, {"seq", 0}, {"success", false}};
    for (const auto& [ours, theirs] : {std::pair{"request_seq", "seq"}, {"command", "command"}})
        if (request.contains(theirs)) answer[ours] = request[theirs];
    status(message.header(), "busy");
    if (!debug_adapter_) {
        answer["message"] = "there is no debugger";
    } else {
        try {
            answer = debug_adapter_->answer(request);
        } catch (const std::exception& e) {
            answer["message"] = e.what();
            context_.log->line(std::string("debugger: ") + e.what());
        }
    }
    reply(Channel::control, message, "debug_reply", std::move(answer));
    status(message.header(), "idle");
}

// Ends the kernel, gently if the cell can be stopped: open files are then closed.
void Server::shut_down() {
    stop_impl();
    // Finalizers run after everything else is gone; if they do not end, this thread, which touches nothing, ends the
    // process.
    std::thread([] {
        std::this_thread::sleep_for(kLastPatience);
        _exit(0);
    }).detach();
    const auto start = std::chrono::steady_clock::now();
    while (!main_ended_ && std::chrono::steady_clock::now() - start < kPatience) {
        host_->interrupt();
        std::this_thread::sleep_for(20ms);
    }
    if (main_ended_) return;
    context_.log->line("the cell did not stop");
    _exit(0);
}

}  // namespace lunaria::jupyter
