// What is said on the standard error stream of a program that goes on: what it does is allowed and hardly meant.
#pragma once

#include <string_view>

namespace lunaria {

// Writes "place: warning: text" and, on a line of its own, the hint; of each place once in a process. From any thread.
void warn(std::string_view place, std::string_view text, std::string_view hint);

}  // namespace lunaria
