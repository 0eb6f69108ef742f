// Warnings on the standard error stream: the program does something that is allowed but hardly meant, and goes on.
#pragma once

#include <string_view>

namespace lunaria {

// Writes "place: warning: text" and, on a line of its own, the hint; once for each place in a process. Callable from
// any thread.
void warn(std::string_view place, std::string_view text, std::string_view hint);

}  // namespace lunaria
