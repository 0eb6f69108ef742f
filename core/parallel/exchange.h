// The direct way from one layout to another: each rank gets the parts of a tensor that it lacks from ranks that have
// them, so that altogether nothing is moved twice. It reaches the lower bound of what has to be moved, between any two
// layouts of any two meshes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/parallel/layout.h"

namespace lunaria::parallel {

// A part of the tensor that goes the same way. Holders are positions of the mesh it comes from, all others of the mesh
// it goes to.
struct Part {
    Region region;                 // in the whole tensor
    std::vector<int64_t> holders;  // each gives one term to the root, which combines them in this order
    int64_t root = 0;
    std::vector<int64_t> targets;  // what else gets the result, from the root
};

struct Exchange {
    const Distribution *from = nullptr, *to = nullptr;
    Shape shape;
    std::vector<Part> parts;
    // Whether a position of `from` and one of `to` are the same rank, so that nothing has to be sent.
    bool is_same_rank(int64_t source, int64_t target) const;
};

enum class Way : uint8_t {
    shared,    // terms are combined once, each target combines a share; complete values come from the nearest holder
    balanced,  // as `shared`; each value comes from the holder that has sent the least so far
    relayed,   // as `balanced`; what many ranks need of few is sent to each of them in part, and they pass it on
    alone,     // as `balanced`, but every target combines all terms itself: more is moved, but at once
};

// Of one mesh: holders differ from a target at most along `group`, where that is possible. Throws where another mesh is
// to hold incomplete values.
Exchange exchange_between(const Distribution& from, const Distribution& to, const Shape& shape, Way way = Way::shared,
                          AxisSet group = ~AxisSet{0});

// About how many parts that has, without making them.
double part_count(const Distribution& from, const Distribution& to, const Shape& shape);

// What ranks move, in elements.
struct Volume {
    int64_t received = 0;  // by the rank that receives the most
    int64_t sent = 0;      // by the rank that sends the most
    int64_t total = 0;     // by all together
    int messages = 0;      // one after the other, sent or received by one rank; it sends and receives at once
};
Volume volume_of(const Exchange& exchange);

// No way moves less: `total` of all ranks together, `received` by the rank that receives the most.
Volume lower_bound(const Distribution& from, const Distribution& to, const Shape& shape);

}  // namespace lunaria::parallel
