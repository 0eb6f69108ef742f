// Samplers: the rows of a source that an epoch takes, and their order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/data/draws.h"

namespace lunaria::data {

// Positions in a source: a range, or a list.
struct Order {
    int64_t begin = 0, count = 0;
    bool listed = false;
    std::vector<int64_t> list;
    std::optional<Scattered> scattered;

    static Order range(int64_t begin, int64_t count) { return {begin, count, false, {}, {}}; }
    static Order of(std::vector<int64_t> list) {
        const int64_t count = static_cast<int64_t>(list.size());
        return {0, count, true, std::move(list), {}};
    }
    // The first `count` rows of a random order of `rows`.
    static Order random(const Draws& draws, int64_t rows, int64_t count) {
        if (rows >= Scattered::kLeast) return {0, count, false, {}, Scattered(draws, rows)};
        auto list = draws.permutation(rows);
        list.resize(static_cast<size_t>(count));
        return of(std::move(list));
    }
    bool is_range() const { return !listed && !scattered; }
    int64_t at(int64_t i) const {
        if (listed) return list[static_cast<size_t>(i)];
        return scattered ? scattered->at(i) : begin + i;
    }
};

class Sampler {
  public:
    virtual ~Sampler() = default;
    // The positions for a source of `rows` rows. Throws when the sampler does not fit it.
    virtual Order order(int64_t rows, uint64_t epoch) const = 0;
    // The number of positions in every order.
    virtual int64_t count(int64_t rows) const = 0;
};

// Owners: sources, handles in the host language, samplers that choose from another's choice. Samplers never change.
using SamplerPtr = std::shared_ptr<const Sampler>;

// Without `samples`: as many as there are rows.
using Samples = std::optional<int64_t>;

SamplerPtr sequential_sampler(int64_t start, Samples samples);
SamplerPtr random_sampler(bool replacement, Samples samples, uint64_t seed);
SamplerPtr subset_sampler(std::vector<int64_t> positions, Samples samples, bool shuffled, uint64_t seed);
SamplerPtr weighted_sampler(std::vector<double> weights, Samples samples, bool replacement, uint64_t seed);
// Every shard gets the same number of rows; positions past the end wrap around to the start.
SamplerPtr distributed_sampler(int64_t shards, int64_t shard, bool shuffled, Samples samples, uint64_t seed);
// `each` rows of each class, of `classes` classes or of all that have enough rows. `labels`: the class of every row.
SamplerPtr class_sampler(std::vector<int64_t> labels, int64_t each, std::optional<int64_t> classes, bool shuffled,
                         Samples samples, uint64_t seed);
// The selection of `second` from the selection of `first`.
SamplerPtr chained_sampler(SamplerPtr first, SamplerPtr second);

}  // namespace lunaria::data
