// Numbers that cannot be foretold: of the operating system's cryptographic generator, which has no seed that could be
// logged, saved or asked for.
#pragma once

#include <cstddef>
#include <string_view>

namespace lunaria {

// Fills `bytes` bytes. Throws a state_error of `where` when the system gives none.
void secure_random(std::string_view where, void* to, size_t bytes);

}  // namespace lunaria
