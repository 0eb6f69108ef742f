// Connections by TCP between processes that work together: the ranks of a job, the parties of a training. What comes
// over them is not trusted before its sender has shown that it knows the secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/io/descriptor.h"

namespace lunaria {

// "host:port" or "[v6]:port". Throws value_error.
std::pair<std::string, int> split_address(std::string_view address);

// A socket that listens at the host's address; port 0: any that is free. An empty descriptor where the port is taken.
Descriptor listen_at(const std::string& host, int port);
int port_of(const Descriptor& socket);
// The own address in a connection, without the port.
std::string own_host(const Descriptor& socket);
// A connection; an empty descriptor where nothing listens there (yet).
Descriptor connect_to(const std::string& host, int port);
// A connection that has come; an empty descriptor after so many milliseconds without one.
Descriptor accept_from(const Descriptor& listener, int milliseconds);

// Whether there is something to read, or the end of the connection, within so many seconds.
bool is_readable(const Descriptor& socket, double seconds);
// Bytes with a limit in time, after which they throw state_error; also when the connection ends.
void send_all(const Descriptor& socket, std::string_view bytes, double seconds);
void receive_all(const Descriptor& socket, void* to, size_t count, double seconds);
// A text with its length before it, of at most `longest` bytes.
void send_text(const Descriptor& socket, std::string_view text, double seconds);
std::string receive_text(const Descriptor& socket, size_t longest, double seconds);

// Whether two secrets are the same, in a time that does not tell how much of them is.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace lunaria
