// The lower bound of what a redistribution moves, against a search: breadth first over what ranks can know of one
// element, a message at a time.
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <unordered_set>

#include "tests/parallel/layouts.h"

namespace lunaria::parallel {
namespace {

// The sums that a rank can form of up to four terms: bit s stands for the sum of the terms whose bits s has. Four ranks
// are 64 bits.
using Sums = uint16_t;
using Ranks = uint64_t;
using Classes = std::vector<std::vector<int>>;

bool knows(Ranks ranks, int rank, unsigned sum) { return (ranks >> (16 * rank) >> sum & 1) != 0; }

Ranks told(Ranks ranks, int rank, unsigned sum) {
    auto sums = static_cast<Sums>(ranks >> (16 * rank) | 1u << sum);
    for (bool grows = true; grows;) {
        const Sums before = sums;
        for (unsigned a = 1; a < 16; ++a)
            for (unsigned b = 1; b < 16; ++b)
                if ((sums >> a & 1) && (sums >> b & 1) && !(a & b)) sums = static_cast<Sums>(sums | 1u << (a | b));
        grows = sums != before;
    }
    return ranks | static_cast<Ranks>(sums) << (16 * rank);
}

// Whether each class has a sum that all its ranks know, or none of the terms, and together they have the rest.
bool is_reached(Ranks ranks, const Classes& classes, size_t next, unsigned rest) {
    if (next == classes.size()) return rest == 0;
    if (is_reached(ranks, classes, next + 1, rest)) return true;
    for (unsigned sum = 1; sum < 16; ++sum) {
        bool is_known = (sum & ~rest) == 0;
        for (int r : classes[next]) is_known = is_known && knows(ranks, r, sum);
        if (is_known && is_reached(ranks, classes, next + 1, rest & ~sum)) return true;
    }
    return false;
}

int64_t fewest_messages(Ranks start, int count, const Classes& classes, unsigned terms) {
    std::unordered_set<Ranks> seen = {start};
    std::vector<Ranks> layer = {start};
    for (int64_t messages = 0;; ++messages) {
        for (Ranks ranks : layer)
            if (is_reached(ranks, classes, 0, terms)) return messages;
        std::vector<Ranks> following;
        for (Ranks ranks : layer)
            for (unsigned sum = 1; sum < 16; ++sum) {
                bool is_there = false;
                for (int r = 0; r < count; ++r) is_there = is_there || knows(ranks, r, sum);
                for (int taker = 0; is_there && taker < count; ++taker)
                    if (const Ranks next = told(ranks, taker, sum); seen.insert(next).second) following.push_back(next);
            }
        layer = std::move(following);
    }
}

bool has(const Distribution& layout, const Shape& shape, int64_t position, int64_t i, int64_t k) {
    const Region piece = layout.piece(shape, position);
    return piece[0].begin <= i && i < piece[0].end && piece[1].begin <= k && k < piece[1].end;
}

int64_t fewest_for(const Distribution& from, const Distribution& to, const Shape& shape, int64_t i, int64_t k) {
    const Mesh& mesh = from.mesh();
    const auto count = static_cast<int>(mesh.count());
    Ranks ranks = 0;
    std::map<int64_t, std::vector<int>> targets;
    for (int p = 0; p < count; ++p) {
        if (has(from, shape, p, i, k)) ranks = told(ranks, p, 1u << mesh.place_in_group(p, from.partial()));
        if (has(to, shape, p, i, k)) targets[mesh.place_in_group(p, to.partial())].push_back(p);
    }
    Classes classes;
    for (auto& [place, members] : targets) classes.push_back(std::move(members));
    // Many elements of many pairs of layouts are alike.
    static std::map<std::tuple<Ranks, Classes>, int64_t> known;
    const auto [entry, is_new] = known.try_emplace({ranks, classes}, 0);
    if (is_new) entry->second = fewest_messages(ranks, count, classes, (1u << mesh.size_of(from.partial())) - 1);
    return entry->second;
}

TEST(LowerBound, NoWayNeedsFewerMessages) {
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{2}, {3}, {4}, {2, 2}}) {
        const Shape shape = sizes.size() == 1 ? Shape{sizes[0], 1} : Shape{2, 2};
        for (const Distribution* from : all_layouts(mesh_of(sizes), 2))
            for (const Distribution* to : all_layouts(mesh_of(sizes), 2)) {
                int64_t fewest = 0;
                for (int64_t i = 0; i < shape[0]; ++i)
                    for (int64_t k = 0; k < shape[1]; ++k) fewest += fewest_for(*from, *to, shape, i, k);
                EXPECT_EQ(lower_bound(*from, *to, shape).total, fewest)
                    << from->text(shape) << " to " << to->text(shape);
            }
    }
}

}  // namespace
}  // namespace lunaria::parallel
