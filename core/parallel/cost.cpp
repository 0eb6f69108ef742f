#include "core/parallel/cost.h"

#include <algorithm>

namespace lunaria::parallel {

namespace {

// Calls f(level, ranks of the group that meet at it) from the nearest level to the farthest.
template <class F>
void for_each_level(const Cluster& c, RankGroup g, const F& f) {
    int64_t joined = 1;
    for (size_t i = 0; i < c.levels.size() && joined < g.size; ++i) {
        const bool is_last = i + 1 == c.levels.size();
        const int64_t inside = is_last ? g.size : std::clamp<int64_t>(c.levels[i].ranks / g.stride, 1, g.size);
        const int64_t here = (inside + joined - 1) / joined;
        if (here > 1) f(c.levels[i], here);
        joined *= std::max<int64_t>(here, 1);
    }
}

// One way through a tensor of which each rank keeps or has its part: gathering, or summing and scattering.
double one_way(const Cluster& c, RankGroup g, double bytes) {
    double seconds = 0;
    for_each_level(c, g, [&](const LinkLevel& level, int64_t n) {
        const auto count = static_cast<double>(n);
        seconds += (count - 1) * level.latency + (count - 1) / count * bytes / level.bytes_per_second;
        bytes /= count;
    });
    return seconds;
}

}  // namespace

double all_gather_seconds(const Cluster& c, RankGroup g, double bytes) {
    return g.size > 1 ? c.collective_seconds + one_way(c, g, bytes) : 0;
}

double reduce_scatter_seconds(const Cluster& c, RankGroup g, double bytes) { return all_gather_seconds(c, g, bytes); }

double all_reduce_seconds(const Cluster& c, RankGroup g, double bytes) {
    return g.size > 1 ? c.collective_seconds + 2 * one_way(c, g, bytes) : 0;
}

// Every rank sends each other one its part: what crosses a level goes at that level's rate.
double all_to_all_seconds(const Cluster& c, RankGroup g, double bytes) {
    if (g.size <= 1) return 0;
    double seconds = c.collective_seconds;
    int64_t joined = 1;
    for_each_level(c, g, [&](const LinkLevel& level, int64_t n) {
        const auto partners = static_cast<double>(joined * (n - 1));
        seconds += partners * level.latency + partners / static_cast<double>(g.size) * bytes / level.bytes_per_second;
        joined *= n;
    });
    return seconds;
}

double send_seconds(const Cluster& c, int64_t stride, double bytes) {
    const auto reaches = [&](const LinkLevel& level) { return stride < level.ranks; };
    auto level = std::ranges::find_if(c.levels, reaches);
    if (level == c.levels.end()) --level;
    return level->latency + bytes / level->bytes_per_second;
}

}  // namespace lunaria::parallel
