#include "kernel/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/warning.h"
#include "core/io/file.h"
#include "interpreter/session/session.h"

namespace lunaria::jupyter {

namespace {

using nlohmann::json;

constexpr std::array kPorts = {"shell_port", "control_port", "stdin_port", "iopub_port", "hb_port"};

std::string text_of(const json& document, const char* name, const std::string& fallback, const std::string& path) {
    if (!document.contains(name)) return fallback;
    if (!document[name].is_string()) throw value_error(path, str(name, " must be a string"));
    return document[name];
}

std::string port_of(const json& document, const char* name, const std::string& path) {
    if (!document.contains(name) || !document[name].is_number_integer())
        throw value_error(path, str(name, " must be a port number"));
    const auto port = document[name].get<int64_t>();
    if (port < 1 || port > 65535) throw value_error(path, str(name, " must be from 1 to 65535, got ", port));
    return std::to_string(port);
}

// Ports that are free now; all are held until all are found, so that none occurs twice.
std::vector<int> free_ports(size_t count) {
    std::vector<int> sockets, ports;
    for (size_t i = 0; i < count; ++i) {
        const int socket_file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        const bool ok = socket_file >= 0 && bind(socket_file, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        getsockname(socket_file, reinterpret_cast<sockaddr*>(&address), &size) == 0;
        if (socket_file >= 0) sockets.push_back(socket_file);
        if (ok) ports.push_back(ntohs(address.sin_port));
    }
    for (const int file : sockets) close(file);
    if (ports.size() != count) throw state_error("kernel", "the system gives no free ports");
    return ports;
}

std::string runtime_folder() {
    for (const auto& [name, below] : {std::pair{"JUPYTER_RUNTIME_DIR", ""}, {"HOME", "/.local/share/jupyter/runtime"}})
        if (const char* value = std::getenv(name); value && *value) return std::string(value) + below;
    throw state_error("kernel", "there is no HOME").hint("name the connection file with -f");
}

}  // namespace

xeus::xconfiguration read_connection(const std::string& path) {
    constexpr uint64_t kLargest = 1 << 20;
    const std::string text = read_file(path, kLargest);
    // Any client with the key can run code in this kernel.
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
        const bool is_ours = status.st_uid == geteuid() && chmod(path.c_str(), 0600) == 0;
        warn(path,
             str("other users can ", is_ours ? "" : "still ",
                 "read this connection file, and with its key run code here",
                 is_ours ? ": it is now for you alone" : ""),
             is_ours ? "they may know the key already: start the kernel anew where that matters"
                     : "chmod 600 by the file's owner keeps them out");
    }
    const json document = json::parse(text, nullptr, false);
    if (!document.is_object()) throw value_error(path, "the connection file must be a JSON object");
    xeus::xconfiguration result;
    result.m_transport = text_of(document, "transport", "tcp", path);
    if (result.m_transport != "tcp" && result.m_transport != "ipc")
        throw value_error(path, str("transport must be tcp or ipc, got '", result.m_transport, "'"));
    result.m_ip = text_of(document, "ip", "127.0.0.1", path);
    result.m_key = text_of(document, "key", "", path);
    result.m_signature_scheme = text_of(document, "signature_scheme", "hmac-sha256", path);
    if (result.m_signature_scheme != "hmac-sha256")
        throw value_error(path, str("signature_scheme must be hmac-sha256, got '", result.m_signature_scheme, "'"));
    std::string* const ports[] = {&result.m_shell_port, &result.m_control_port, &result.m_stdin_port,
                                  &result.m_iopub_port, &result.m_hb_port};
    for (size_t i = 0; i < kPorts.size(); ++i) *ports[i] = port_of(document, kPorts[i], path);
    return result;
}

std::string write_connection(std::string path) {
    if (path.empty()) path = str(runtime_folder(), "/kernel-", getpid(), ".json");
    const auto folder = std::filesystem::path(path).parent_path();
    std::error_code failure;
    if (!folder.empty()) std::filesystem::create_directories(folder, failure);
    json document = {{"transport", "tcp"},
                     {"ip", "127.0.0.1"},
                     {"key", new_display_id()},  // sixteen random bytes
                     {"signature_scheme", "hmac-sha256"},
                     {"kernel_name", "lunaria"}};
    const std::vector<int> ports = free_ports(kPorts.size());
    for (size_t i = 0; i < kPorts.size(); ++i) document[kPorts[i]] = ports[i];
    // Readable by the user alone from its first byte on; a file of another user is never opened.
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) throw file_error(path, std::strerror(errno));
    const std::string text = document.dump(2) + "\n";
    const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(file);
    if (!written) throw file_error(path, "cannot be written");
    return path;
}

}  // namespace lunaria::jupyter
