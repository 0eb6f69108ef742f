// How large the processor's last cache is.
#pragma once

#include <cstdint>

namespace lunaria {

// In bytes, as the cores see it that this process may run on; 0: unknown.
int64_t last_cache_bytes();

}  // namespace lunaria
