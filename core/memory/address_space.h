// The address space left under a limit (ulimit -v). Libraries fare badly near it: OpenBLAS asks for its buffers again
// and again for ever, oneDNN writes its code through a null pointer. So the program checks for room before it lets them
// allocate.
#pragma once

#include <cstddef>

namespace lunaria {

// Whether so many bytes of addresses are free in one piece; true without a system call where the process had no limit
// when it began.
bool address_space_has(size_t bytes);

}  // namespace lunaria
