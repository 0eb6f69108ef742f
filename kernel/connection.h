// The connection file: addresses and the key of a kernel. Read access to it allows running code as the user.
#pragma once

#include <string>
#include <xeus/xkernel_configuration.hpp>

namespace lunaria::jupyter {

// Reads the file and removes other users' permission to read it. Throws Error when it is not a connection file.
xeus::xconfiguration read_connection(const std::string& path);

// Writes a new file for a kernel that was started by hand: free ports of this machine, a key of random bytes. An empty
// path means one in Jupyter's runtime folder. Returns the path. Throws Error.
std::string write_connection(std::string path);

}  // namespace lunaria::jupyter
