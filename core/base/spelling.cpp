#include "core/base/spelling.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace lunaria {

size_t edit_distance(std::string_view a, std::string_view b) {
    // Rows of the table of distances between beginnings of both: the one before the last, the last, the next.
    std::vector<size_t> before(b.size() + 1), last(b.size() + 1), next(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        next[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            next[j] = std::min({last[j] + 1, next[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) next[j] = std::min(next[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(next);
    }
    return last[b.size()];
}

bool is_near(std::string_view name, size_t distance) {
    return !name.empty() && name.size() <= 64 && distance <= 1 + name.size() / 5;
}

std::string nearest(std::string_view name, std::span<const std::string_view> names) {
    std::string_view best;
    size_t least = name.size() + 1;
    for (const std::string_view other : names) {
        if (other.size() > 2 * name.size() + 2) continue;
        const size_t distance = edit_distance(name, other);
        if (!is_near(name, distance) || distance > least) continue;
        // Two slips of the finger leave the first letter as it is; another word begins with another one.
        if (distance > 1 && !other.empty() &&
            std::tolower(static_cast<unsigned char>(name[0])) != std::tolower(static_cast<unsigned char>(other[0])))
            continue;
        least = distance;
        best = other;
    }
    return best.empty() ? std::string() : "did you mean '" + std::string(best) + "'?";
}

}  // namespace lunaria
