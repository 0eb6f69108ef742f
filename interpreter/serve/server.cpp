#include "interpreter/serve/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/own_library.h"
#include "core/base/signals.h"
#include "core/threads/make_thread.h"

namespace lunaria::serve {

namespace {

constexpr std::string_view kWhere = "server";

template <class Function>
Function transport_function(const char* symbol) {
    std::string problem;
    if (void* function = own_library_function("liblunaria_http.so", symbol, problem))
        return reinterpret_cast<Function>(function);
    throw state_error(kWhere, problem)
        .hint("the server needs cpp-httplib (libcpp-httplib-dev, libcpp-httplib0.11) and the target lunaria_http");
}

// Parts of letters, digits, _, ., -; with a slash before each.
std::string checked_prefix(std::string_view prefix) {
    std::string checked;
    while (!prefix.empty()) {
        if (prefix.front() == '/') prefix.remove_prefix(1);
        const std::string_view part = prefix.substr(0, prefix.find('/'));
        prefix.remove_prefix(part.size());
        if (part.empty() && prefix.empty()) break;
        const bool fine =
            !part.empty() && part != "." && part != ".." && std::ranges::all_of(part, [](unsigned char c) {
                return std::isalnum(c) || c == '_' || c == '.' || c == '-';
            });
        if (!fine)
            throw argument_error(kWhere,
                                 str("the prefix of addresses must be of parts of A-Z a-z 0-9 _ . -, with '/' between "
                                     "them, got the part '",
                                     part, "'"));
        checked += str('/', part);
    }
    return checked;
}

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
    std::string name;  // as addresses of pages have it
    bool is_loopback = false;

    void set_port(int port) {
        if (storage.ss_family == AF_INET)
            reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(static_cast<uint16_t>(port));
        else
            reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(static_cast<uint16_t>(port));
    }
};

Address address_of(const std::string& host) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    const std::string bare = host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
    if (const int problem = getaddrinfo(bare.c_str(), "0", &hints, &found); problem != 0)
        throw argument_error(kWhere, str("there is no machine '", host, "': ", gai_strerror(problem)));
    Address address;
    std::copy_n(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen,
                reinterpret_cast<char*>(&address.storage));
    address.size = found->ai_addrlen;
    freeaddrinfo(found);
    if (address.storage.ss_family == AF_INET)
        address.is_loopback = ntohl(reinterpret_cast<sockaddr_in&>(address.storage).sin_addr.s_addr) >> 24 == 127;
    else
        address.is_loopback = IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6&>(address.storage).sin6_addr);
    address.name = bare.find(':') == std::string::npos ? bare : "[" + bare + "]";
    return address;
}

// A bound socket; nothing where the port is taken.
int bound(Address address, int port) {
    address.set_port(port);
    Descriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (socket) setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket && bind(socket.number(), reinterpret_cast<sockaddr*>(&address.storage), address.size) == 0 &&
        ::listen(socket.number(), SOMAXCONN) == 0)
        return socket.release();
    if (errno == EADDRINUSE) return -1;
    Error error = state_error(kWhere, str("port ", port, " of ", address.name, ": ", std::strerror(errno)));
    throw errno == EACCES ? error.hint("ports below 1024 are the administrator's: --port 8080") : error;
}

// "name (process 12)" of the process that listens at a port; empty where that is another user's.
std::string listener_of(int port) {
    std::string inode;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream lines(table);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string number, local, remote, state, skipped, found;
            words >> number >> local >> remote >> state;
            for (int i = 0; i < 5; ++i) words >> skipped;
            words >> found;
            const size_t colon = local.rfind(':');
            if (state == "0A" && colon != std::string::npos &&
                std::strtol(local.c_str() + colon + 1, nullptr, 16) == port)
                inode = "socket:[" + found + "]";
        }
    }
    if (inode.empty()) return {};
    std::error_code none;
    for (const auto& process : std::filesystem::directory_iterator("/proc", none)) {
        const std::string name = process.path().filename();
        if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
        for (const auto& file : std::filesystem::directory_iterator(process.path() / "fd", none)) {
            if (std::filesystem::read_symlink(file.path(), none) != inode) continue;
            std::string command;
            std::getline(std::ifstream(process.path() / "comm"), command);
            return str(command, " (process ", name, ")");
        }
    }
    return {};
}

// The folder of the files of running servers: closed to others, since what is in it ends servers.
std::string records_folder() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const std::string above = cache && *cache == '/' ? cache
                              : home && *home == '/' ? std::string(home) + "/.cache"
                                                     : "";
    if (above.empty()) return {};
    const std::string folder = above + "/lunaria/servers";
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    struct stat info;
    if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) return {};
    chmod(folder.c_str(), 0700);
    return folder;
}

// The running server of a record; nothing where the record is one of a server that is gone.
std::optional<RunningServer> server_of(const std::string& path) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return std::nullopt;
    if (flock(file.number(), LOCK_SH | LOCK_NB) == 0) {
        unlink(path.c_str());
        return std::nullopt;
    }
    const nlohmann::json json = nlohmann::json::parse(std::ifstream(path), nullptr, false);
    if (!json.is_object()) return std::nullopt;
    return RunningServer{json.value("port", 0), json.value("process", int64_t{0}), json.value("url", ""),
                         json.value("about", "")};
}

}  // namespace

VerifyCertificate verify_certificate() { return transport_function<VerifyCertificate>(kVerifyCertificate); }

Server::Server(Answering answering, const ServerOptions& options) : about_(options.about) {
    const std::string prefix = checked_prefix(options.prefix);
    listen(options);
    const Address address = address_of(options.host);
    const std::string token = address.is_loopback || options.is_public ? std::string() : Gate::random_token();
    std::vector<std::string> hosts = options.hosts;
    hosts.push_back(options.is_public ? "*" : address.name);
    url_ = str(options.tls.certificate.empty() ? "http://" : "https://", address.name, ':', port_, prefix, '/');
    if (!token.empty()) url_ += "?token=" + token;
    site_.emplace(std::move(answering),
                  SiteOptions{prefix, std::move(hosts), token, options.types, options.embeddable});
    const auto start = transport_function<StartTransport>(kStartTransport);
    announce();
    transport_.reset(start(
        socket_.number(), [this](HttpRequest request) { return site_->answer(std::move(request)); }, options.limits,
        options.tls));
    (void)socket_.release();
    guard_ = make_thread(kWhere, [this] { guard(); });
}

Server::~Server() {
    {
        const std::lock_guard lock(mutex_);
        is_closing_ = true;
        wake_.notify_all();
    }
    guard_.join();
    close();
}

void Server::drain() {
    // The guard thread may close the server meanwhile.
    const std::lock_guard lock(mutex_);
    if (transport_) transport_->drain();
}

void Server::close() {
    transport_.reset();
    if (record_ && !is_unwanted()) unlink(record_path_.c_str());
    record_.reset(-1);
    ended_ = true;
}

// Looks whether the file of the server is still there.
void Server::guard() {
    constexpr auto kStep = std::chrono::milliseconds(250);
    leave_signals_to_others();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kStep, [&] { return is_closing_; })) {
        if (!is_unwanted()) continue;
        close();
        return;
    }
}

void Server::listen(const ServerOptions& options) {
    constexpr int kLast = 65535, kTries = 100;
    if (options.port < 0 || options.port > kLast)
        throw argument_error(kWhere, str("a port is a number from 1 to 65535, got ", options.port));
    const Address address = address_of(options.host);
    socket_.reset(bound(address, options.port));
    if (!socket_) {
        std::string holder = listener_of(options.port);
        for (const RunningServer& running : running_servers())
            if (running.port == options.port)
                holder =
                    str("lunaria (process ", running.process, "), which serves ", running.about, " at ", running.url);
        const Error error = state_error(kWhere, str("port ", options.port, " is taken",
                                                    holder.empty() ? " by another user's program" : " by " + holder));
        for (int port = options.port + 1; port <= std::min(options.port + kTries, kLast); ++port) {
            const Descriptor trial(bound(address, port));
            if (trial) throw error.hint(str("port ", port, " is free: --port ", port));
        }
        throw error;
    }
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&own), &size);
    port_ = ntohs(own.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(own).sin_port
                                           : reinterpret_cast<sockaddr_in6&>(own).sin6_port);
}

// Without a folder for it, the server runs all the same, and list and stop do not know of it.
void Server::announce() {
    const std::string folder = records_folder();
    if (folder.empty()) return;
    record_path_ = str(folder, '/', port_);
    // A live record, of a server with this port at another address, stays. A program that lists servers may take a new
    // one for a record that was left behind, until it is locked.
    for (bool is_new = true; is_new; is_new = is_unwanted()) {
        (void)server_of(record_path_);
        record_.reset(open(record_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!record_) return;
        flock(record_.number(), LOCK_EX);
    }
    const nlohmann::json json = {{"port", port_}, {"process", getpid()}, {"url", url_}, {"about", about_}};
    const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    (void)!write(record_.number(), text.data(), text.size());
}

bool Server::is_unwanted() const {
    struct stat info;
    return record_ && fstat(record_.number(), &info) == 0 && info.st_nlink == 0;
}

std::vector<RunningServer> running_servers() {
    std::vector<RunningServer> list;
    const std::string folder = records_folder();
    std::error_code none;
    if (!folder.empty())
        for (const auto& file : std::filesystem::directory_iterator(folder, none))
            if (auto server = server_of(file.path())) list.push_back(std::move(*server));
    std::ranges::sort(list, {}, &RunningServer::port);
    return list;
}

bool stop_server(int port, double seconds) {
    const std::string path = str(records_folder(), '/', port);
    if (!server_of(path)) return false;
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    unlink(path.c_str());
    constexpr double kStep = 0.02;
    for (double waited = 0; waited < seconds; waited += kStep) {
        if (flock(file.number(), LOCK_SH | LOCK_NB) == 0) return true;
        usleep(static_cast<useconds_t>(kStep * 1e6));
    }
    return false;
}

}  // namespace lunaria::serve
