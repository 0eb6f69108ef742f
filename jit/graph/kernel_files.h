// Machine code of generated kernels on disk: $XDG_CACHE_HOME/lunaria/kernels, or below ~/.cache. One file per kernel,
// with its whole key and a checksum, written under another name and moved into place, so that processes at the same
// time see either all of it or nothing. Whatever goes wrong means that there is no such file.
#pragma once

#include <string>
#include <string_view>

namespace lunaria::graph {

// The object file for the key; empty when there is none.
std::string read_kernel_file(std::string_view key);
void write_kernel_file(std::string_view key, std::string_view object);

}  // namespace lunaria::graph
