// A server of this user's machine: a site and a socket. Running servers of a user are known by files, one for each
// port, which their servers hold locked; a server whose file is removed ends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/io/descriptor.h"
#include "interpreter/serve/site.h"

namespace lunaria::serve {

struct ServerOptions {
    std::string about;  // what is served, for lists of servers
    std::string host = "127.0.0.1";
    int port = 8080;  // 0: any that is free
    std::string prefix;
    std::vector<std::string> hosts;
    bool embeddable = false;
    std::vector<std::string> types{"application/json"};  // of contents that are taken
    HttpLimits limits{};
    HttpTls tls{};
    // A server for programs of other machines that verifies them by other means: it asks for no token, and answers to
    // any name.
    bool is_public = false;
};

class Server {
  public:
    // Throws where an option makes no sense, or the port is taken: the error names the process
    // that has it and a port that is free.
    Server(Answering answering, const ServerOptions& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    const std::string& url() const { return url_; }
    int port() const { return port_; }
    // Answers what has arrived and ends; a request that comes later finds no server.
    void drain();
    // Whether another program ended it (`lunaria insight stop`).
    bool has_ended() const { return ended_; }

  private:
    void listen(const ServerOptions& options);
    void announce();
    bool is_unwanted() const;
    void guard();
    void close();
    const std::string about_;
    std::optional<Site> site_;
    Descriptor socket_, record_;
    std::string url_, record_path_;
    int port_ = 0;
    std::unique_ptr<HttpTransport> transport_;
    std::mutex mutex_;  // of is_closing_
    std::condition_variable wake_;
    bool is_closing_ = false;
    std::atomic<bool> ended_ = false;
    std::thread guard_;
};

// A running server of this user.
struct RunningServer {
    int port = 0;
    int64_t process = 0;
    std::string url, about;
};
std::vector<RunningServer> running_servers();
// Ends the server at a port and waits for that; false where there is none, or it is still there after `seconds`.
bool stop_server(int port, double seconds);

}  // namespace lunaria::serve
