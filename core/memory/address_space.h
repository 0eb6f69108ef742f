// Where a limit of addresses (ulimit -v) is near, libraries fare badly: OpenBLAS asks for its buffers again and again
// for ever, oneDNN writes its code through a null pointer. So they are asked for first what they will need.
#pragma once

#include <cstddef>

namespace lunaria {

// Whether there are so many bytes of addresses in one piece; true without a question where the process had no limit
// when it began.
bool address_space_has(size_t bytes);

}  // namespace lunaria
