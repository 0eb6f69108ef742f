// Cases of today: a long test runs one of so many parts of its cases each day (tests/lua/support/today.lua).
#pragma once
#include <cstddef>
#include <cstdlib>

namespace lunaria::testing {

inline bool is_of_today(size_t number, size_t parts) {
    const char* day = std::getenv("LUNARIA_TEST_DAY");
    return !day || !*day || (number + std::strtoull(day, nullptr, 10)) % parts == 0;
}

}  // namespace lunaria::testing
