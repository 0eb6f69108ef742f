// The number of times that the test program has taken memory by C++'s operator new.
#pragma once

#include <cstdint>

namespace lunaria::testing {

int64_t allocations();

}  // namespace lunaria::testing
