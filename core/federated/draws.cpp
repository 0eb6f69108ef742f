#include "core/federated/draws.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "core/random/random.h"

namespace lunaria::federated {

namespace {

uint64_t word(uint64_t seed, uint64_t round, uint64_t device, Purpose purpose) {
    // Rounds stay below 2^40, so that purposes have bits of their own.
    const auto w = philox(seed, device, round << 24 | static_cast<uint64_t>(purpose));
    return uint64_t{w[1]} << 32 | w[0];
}

// A number below `limit` without the bias of a remainder: the high half of a product (Lemire 2019), where a draw in the
// partial last interval is drawn again at the next position.
uint64_t whole_below(uint64_t limit, uint64_t seed, uint64_t round, uint64_t& position) {
    const uint64_t rest = -limit % limit;
    while (true) {
        const auto product = static_cast<unsigned __int128>(word(seed, round, position++, Purpose::choice)) * limit;
        if (static_cast<uint64_t>(product) >= rest) return static_cast<uint64_t>(product >> 64);
    }
}

}  // namespace

double uniform(uint64_t seed, uint64_t round, uint64_t device, Purpose purpose) {
    return static_cast<double>(word(seed, round, device, purpose) >> 11) * 0x1p-53;
}

std::vector<uint64_t> chosen(uint64_t seed, uint64_t round, uint64_t population, uint64_t count) {
    assert(count <= population);
    // Floyd's method (Bentley 1987) draws one number for each member. Of more than half, those that are left out are
    // drawn.
    const bool inverted = count > population / 2;
    const uint64_t drawn = inverted ? population - count : count;
    std::unordered_set<uint64_t> set;
    set.reserve(drawn);
    uint64_t position = 0;
    for (uint64_t last = population - drawn; last < population; ++last)
        if (!set.insert(whole_below(last + 1, seed, round, position)).second) set.insert(last);
    std::vector<uint64_t> list(set.begin(), set.end());
    std::sort(list.begin(), list.end());
    if (!inverted) return list;
    std::vector<uint64_t> others;
    others.reserve(count);
    size_t next = 0;
    for (uint64_t i = 0; i < population; ++i) {
        if (next < list.size() && list[next] == i)
            ++next;
        else
            others.push_back(i);
    }
    return others;
}

}  // namespace lunaria::federated
