// The queues of the shells: the order of requests, and requests served in the middle of a cell.
#include <algorithm>
#include <cstdio>
#include <xeus/xguid.hpp>

#include "core/base/interrupt.h"
#include "core/base/signals.h"
#include "kernel/server.h"

namespace lunaria::jupyter {

namespace {

constexpr auto kGrace = std::chrono::milliseconds(30);  // for cells that were sent together

}  // namespace

std::string shell_of(const nl::json& header) {
    const auto id = header.find("subshell_id");
    return id != header.end() && id->is_string() ? id->get<std::string>() : std::string();
}

// With requests of one shell in the order in which they came.
std::optional<Server::Waiting> Server::next_request() {
    const std::scoped_lock lock(queue_mutex_, current_mutex_);
    const auto next = std::ranges::find_if(requests_, [this](const Waiting& r) { return !is_served(r.shell); });
    if (next == requests_.end()) return std::nullopt;
    Waiting request = std::move(*next);
    requests_.erase(next);
    return request;
}

bool Server::is_served(const std::string& shell) const {
    return std::ranges::any_of(current_, [&](const Current& served) { return served.shell == shell; });
}

void Server::serve_next(Waiting request) {
    if (request.is_aborted)
        answer_aborted(request.message);
    else
        serve(std::move(request.message));
}

void Server::wake_host() {
    {
        const std::lock_guard lock(queue_mutex_);
        if (!std::exchange(wake_requested_, false)) return;
    }
    host_->on_wake();
}

void Server::visit() {
    while (!stopped_ && !program_interrupt_requested()) {
        wake_host();
        if (!is_called()) return;
        auto request = next_request();
        if (!request) return;
        // Output of C code belongs to the cell that is left.
        std::fflush(stdout);
        streams_.flush();
        serve_next(std::move(*request));
    }
}

void Server::call_main() {
    if (current()) host_->ask_for_visit();
}

// The interrupted cell goes on when the request served within it has ended. So a request that will soon be done is not
// interrupted: a cell that was started within another shell's message would keep that shell waiting for its own end,
// although the message that ends the cell may be that shell's next one.
std::optional<Server::Clock::time_point> Server::call_time() {
    const std::scoped_lock lock(queue_mutex_, current_mutex_);
    if (current_.empty()) return std::nullopt;
    if (wake_requested_) return Clock::time_point();
    // Without other shells every request must wait.
    if (shells_.empty()) return std::nullopt;
    if (std::ranges::all_of(requests_, [this](const Waiting& r) { return is_served(r.shell); })) return std::nullopt;
    return current_.back().settled;
}

bool Server::is_called() {
    const auto time = call_time();
    return time && *time <= Clock::now();
}

int Server::count() const {
    const auto request = current();
    return request ? request->count : 0;
}

// Aborts the cells that were sent before the front end could know that one failed. They keep their place in the queue,
// so that replies keep theirs.
void Server::abort_waiting(const std::string& shell) {
    // Requests that were sent together with the cell may still be on the way.
    std::this_thread::sleep_for(kGrace);
    const std::lock_guard lock(queue_mutex_);
    for (Waiting& request : requests_)
        if (request.shell == shell && request.message.header()["msg_type"] == "execute_request")
            request.is_aborted = true;
}

nl::json Server::create_shell() {
    const std::string id(xeus::new_xguid().c_str());
    const std::lock_guard lock(queue_mutex_);
    shells_.insert(id);
    return {{"status", "ok"}, {"subshell_id", id}};
}

nl::json Server::list_shells() {
    const std::lock_guard lock(queue_mutex_);
    return {{"status", "ok"}, {"subshell_id", shells_}};
}

// Requests that wait in it are answered with an error; a request in progress goes on.
nl::json Server::delete_shell(const std::string& id) {
    std::deque<Waiting> left;
    {
        const std::lock_guard lock(queue_mutex_);
        if (!shells_.erase(id)) {
            const std::string complaint = "there is no subshell " + id;
            return {{"status", "error"},
                    {"ename", "NoSubshell"},
                    {"evalue", complaint},
                    {"traceback", nl::json::array({complaint})}};
        }
        for (Waiting& request : std::exchange(requests_, {}))
            (request.shell == id ? left : requests_).push_back(std::move(request));
    }
    for (const Waiting& request : left) refuse(Channel::shell, request.message, "its subshell has been deleted");
    return {{"status", "ok"}};
}

}  // namespace lunaria::jupyter
