// How deep calls may be nested in the machine: ms.set_recursion_limit.
#pragma once

#include <cstddef>

namespace lunaria::vm {

// What the limit is at first and at most.
inline constexpr size_t kMostCalls = 195000;

size_t recursion_limit();
void set_recursion_limit(size_t calls);

}  // namespace lunaria::vm
