// Cases of today: a long test runs one of so many parts of its cases each day (tests/lua/support/today.lua).
#pragma once
#include <cstddef>
#include <cstdlib>

namespace lunaria::testing {

// Whether every case runs.
inline bool is_whole() {
    const char* day = std::getenv("LUNARIA_TEST_DAY");
    return !day || !*day;
}

inline bool is_of_today(size_t number, size_t parts) {
    return is_whole() || (number + std::strtoull(std::getenv("LUNARIA_TEST_DAY"), nullptr, 10)) % parts == 0;
}

// In how many parts cases are run that an entry repeats for another instruction set (LUNARIA_ISA): their kernels are
// generated anew.
inline size_t parts_of_generated(size_t here) {
    return std::getenv("LUNARIA_ISA") && !std::getenv("LUNARIA_TEST_LOOPS") ? 7 : here;
}

}  // namespace lunaria::testing
