// The connection file: addresses and the key of a kernel. Whoever can read it can run code as the user.
#pragma once

#include <string>
#include <xeus/xkernel_configuration.hpp>

namespace lunaria::jupyter {

// Reads the file and takes other users' right to read it away. Throws Error when it is none.
xeus::xconfiguration read_connection(const std::string& path);

// A new file for a kernel that nobody waits for: free ports of this machine, a key of random bytes. An empty path is
// one in Jupyter's runtime folder. Gives the path. Throws Error.
std::string write_connection(std::string path);

}  // namespace lunaria::jupyter
