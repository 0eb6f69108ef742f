// The size of the processor's last cache.
#pragma once

#include <cstdint>

namespace lunaria {

// In bytes, as seen by the cores that this process may run on; 0: unknown.
int64_t last_cache_bytes();

}  // namespace lunaria
