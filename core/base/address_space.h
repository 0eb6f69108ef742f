// The address space left under a limit (ulimit -v). Libraries fare badly near it: OpenBLAS asks for its buffers again
// and again for ever, oneDNN writes its code through a null pointer. So the program checks for room before it lets them
// allocate.
#pragma once

#include <cstddef>
#include <string>

namespace lunaria {

// What the program's own allocations leave: libraries that get no memory for some hundred bytes end the process.
inline constexpr size_t kAddressesLeft = size_t{8} << 20;

// Whether the process had a limit of addresses when it began.
bool address_space_is_limited();

// Whether so many bytes of addresses are free in one piece; true without a system call where there was no limit.
bool address_space_has(size_t bytes);

// Opens a shared library for the life of the process, as dlopen does, if `room` bytes are free for it and for what it
// opens and allocates itself: constructors of libraries that get no memory end the process. Null, and the reason in
// `why`, where it cannot be opened.
void* open_library(const char* file, int flags, size_t room, std::string& why);

}  // namespace lunaria
