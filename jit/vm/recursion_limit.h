// The limit of nested calls in the machine: ms.set_recursion_limit.
#pragma once

#include <cstddef>

namespace lunaria::vm {

// The initial and the highest limit.
inline constexpr size_t kMostCalls = 195000;

size_t recursion_limit();
void set_recursion_limit(size_t calls);

}  // namespace lunaria::vm
