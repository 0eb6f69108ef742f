#include "core/base/warning.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/base/printable.h"

namespace lunaria {

namespace {

// The number of places that are remembered; once there are so many, no further warnings are printed.
constexpr size_t kPlaces = 1000;

bool is_new(std::string_view place) {
    static std::mutex mutex;
    static std::set<std::string, std::less<>> places;
    const std::lock_guard lock(mutex);
    return places.size() < kPlaces && places.emplace(place).second;
}

}  // namespace

void warn(std::string_view place, std::string_view text, std::string_view hint) {
    if (!is_new(place)) return;
    const std::string line = printable(str(place, ": warning: ", text, "\n  hint: ", hint, "\n"));
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace lunaria
