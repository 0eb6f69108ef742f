// Machine code of generated kernels on disk: $XDG_CACHE_HOME/lunaria/kernels, or below ~/.cache. One file per kernel,
// with its whole key and a checksum, written under another name and moved into place, so that processes at the same
// time see either all of it or nothing. Any failure means that there is no such file. The folder is used only where it
// and the one above are no links and belong to the user, and is closed to others; in it, nothing is touched but regular
// files with the name and the first bytes of an entry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lunaria::graph {

// The object file for the key; empty when there is none.
std::string read_kernel_file(std::string_view key);
void write_kernel_file(std::string_view key, std::string_view object);

// Limit of all files together: beyond it new files replace those that have not been read for the longest time.
inline constexpr uint64_t kMostKernelBytes = uint64_t{512} << 20;
// Where the files are more than `most` bytes, removes files down to three quarters of it; several processes may do so
// at once.
void trim_kernel_files(uint64_t most = kMostKernelBytes);

}  // namespace lunaria::graph
