// Clients of a federated server, as many as are wanted, from one process: each has a connection and a name of its own,
// and trains nothing.
//
//   federated_clients round PORT CLIENTS PARAMETERS      one iteration of all: startFLJob, updateModel, getModel
//   federated_clients start PORT CLIENTS SECONDS         startFLJob of all, at times that are drawn evenly over so many
//   seconds
//
// Prints a line of JSON: seconds of each part, the requests that were lost, and quantiles of the times of answers in
// milliseconds.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "core/federated/messages.h"

using namespace lunaria;
using namespace lunaria::federated;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kThreads = 32;

double since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

int64_t wall() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

class Client {
  public:
    Client(int port, int number) : port_(port), name_(str("client", number)) {}
    ~Client() {
        if (socket_ >= 0) close(socket_);
    }
    void connect() {
        socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(port_));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int on = 1;
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            close(socket_);
            socket_ = -1;
        }
    }

    messages::Reply ask(std::string_view endpoint, const std::string& content, int64_t iteration) {
        messages::Envelope envelope;
        envelope.job = "bench";
        envelope.client = name_;
        envelope.iteration = iteration;
        envelope.timestamp = wall();
        envelope.content = content;
        const std::string body = messages::written(envelope);
        const std::string head =
            str("POST /", endpoint, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n",
                "Content-Length: ", body.size(), "\r\n\r\n");
        for (int tries = 0; tries < 3; ++tries) {
            if (socket_ < 0) connect();
            std::string answer;
            if (socket_ >= 0 && sent(head) && sent(body) && received(answer))
                return messages::parsed<messages::Reply>(answer, endpoint);
            if (socket_ >= 0) close(socket_);
            socket_ = -1;
        }
        messages::Reply lost;
        lost.code = messages::Code::system_error;
        lost.reason = "no connection";
        return lost;
    }
    // Asks again while it is too early.
    messages::Reply until(std::string_view endpoint, const std::string& content, int64_t iteration) {
        while (true) {
            messages::Reply reply = ask(endpoint, content, iteration);
            if (reply.code != messages::Code::not_ready) return reply;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
    }

  private:
    bool sent(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t count = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (count <= 0) return false;
            bytes.remove_prefix(static_cast<size_t>(count));
        }
        return true;
    }
    bool received(std::string& body) {
        std::string bytes;
        char buffer[65536];
        size_t head = std::string::npos, size = 0;
        while (head == std::string::npos || bytes.size() < head + size) {
            const ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
            if (count <= 0) return false;
            bytes.append(buffer, static_cast<size_t>(count));
            if (head != std::string::npos) continue;
            head = bytes.find("\r\n\r\n");
            if (head == std::string::npos) continue;
            head += 4;
            if (!bytes.starts_with("HTTP/1.1 200")) return false;
            const size_t at = bytes.find("Content-Length: ");
            if (at == std::string::npos) return false;
            size = std::strtoul(bytes.c_str() + at + 16, nullptr, 10);
        }
        body = bytes.substr(head, size);
        return true;
    }
    const int port_;
    const std::string name_;
    int socket_ = -1;
};

using Clients = std::vector<std::unique_ptr<Client>>;

// f(client) on a few threads; how often it was false.
template <class F>
int64_t lost(const Clients& clients, F f) {
    std::atomic<size_t> next = 0;
    std::atomic<int64_t> lost = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            for (size_t k = next++; k < clients.size(); k = next++) lost += !f(*clients[k]);
        });
    for (std::thread& thread : threads) thread.join();
    return lost;
}

std::string start_content() {
    messages::StartFLJob start;
    start.samples = 100;
    return messages::written(start);
}

int round(const Clients& clients, size_t parameters) {
    messages::UpdateModel update;
    update.samples = 100;
    messages::Feature feature;
    feature.name = "w";
    feature.shape = {static_cast<int64_t>(parameters)};
    feature.data.assign(parameters * sizeof(float), '\0');
    update.features.push_back(std::move(feature));
    const std::string start = start_content(), content = messages::written(update);
    std::atomic<int64_t> iteration = 0;
    const auto from = Clock::now();
    const int64_t not_started = lost(clients, [&](Client& client) {
        const messages::Reply reply = client.until(messages::kStartFLJob, start, 0);
        iteration = reply.iteration;
        return reply.code == messages::Code::succeed;
    });
    const double started = since(from);
    const int64_t not_taken = lost(clients, [&](Client& client) {
        return client.until(messages::kUpdateModel, content, iteration).code == messages::Code::succeed;
    });
    const double updated = since(from);
    const int64_t without = lost(clients, [&](Client& client) {
        return client.until(messages::kGetModel, "", iteration).code == messages::Code::succeed;
    });
    std::printf(
        "{\"clients\": %zu, \"parameters\": %zu, \"not_started\": %lld, \"uploads_lost\": %lld, \"without_model\": "
        "%lld, "
        "\"start_seconds\": %.3f, \"update_seconds\": %.3f, \"model_seconds\": %.3f, \"seconds\": %.3f}\n",
        clients.size(), parameters, static_cast<long long>(not_started), static_cast<long long>(not_taken),
        static_cast<long long>(without), started, updated - started, since(from) - updated, since(from));
    return not_started + not_taken + without == 0 ? 0 : 1;
}

int starts(const Clients& clients, double seconds) {
    lost(clients, [](Client& client) {
        client.connect();
        return true;
    });
    const std::string content = start_content();
    std::mt19937_64 draws(1);
    std::vector<double> at(clients.size());
    for (double& time : at) time = std::uniform_real_distribution<>(0, seconds)(draws);
    std::ranges::sort(at);
    std::vector<double> times(clients.size());
    std::atomic<size_t> next = 0;
    std::atomic<int64_t> taken = 0, failed = 0;
    const auto from = Clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            for (size_t k = next++; k < clients.size(); k = next++) {
                const double wait = at[k] - since(from);
                if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
                // The time from when it was to be asked: a late driver does not make the server look fast.
                const messages::Reply reply = clients[k]->ask(messages::kStartFLJob, content, 0);
                times[k] = (since(from) - at[k]) * 1e3;
                taken += reply.code == messages::Code::succeed;
                failed += reply.code == messages::Code::system_error;
            }
        });
    for (std::thread& thread : threads) thread.join();
    std::ranges::sort(times);
    const auto quantile = [&](double q) {
        return times[std::min(times.size() - 1, static_cast<size_t>(q * static_cast<double>(times.size())))];
    };
    std::printf(
        "{\"clients\": %zu, \"seconds\": %.1f, \"taken\": %lld, \"failed\": %lld, \"p50\": %.2f, \"p90\": %.2f, "
        "\"p99\": %.2f, "
        "\"max\": %.2f}\n",
        clients.size(), seconds, static_cast<long long>(taken), static_cast<long long>(failed), quantile(0.5),
        quantile(0.9), quantile(0.99), times.back());
    return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (count != 5) {
        std::fputs("usage: federated_clients round|start PORT CLIENTS PARAMETERS|SECONDS\n", stderr);
        return 2;
    }
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    Clients clients;
    const int port = std::atoi(words[2]), all = std::atoi(words[3]);
    for (int i = 0; i < all; ++i) clients.push_back(std::make_unique<Client>(port, i));
    return std::strcmp(words[1], "round") == 0 ? round(clients, static_cast<size_t>(std::atoll(words[4])))
                                               : starts(clients, std::atof(words[4]));
}
