// From one layout to another: a plan of steps, found by their cost, and its execution, either on all pieces in one
// process or by one rank that has a communicator. Both carry out the same steps with the same arithmetic, so that they
// give the same bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/parallel/exchange.h"
#include "core/parallel/layout.h"
#include "core/tensor/tensor.h"

namespace lunaria::parallel {

class Communicator;

// What it costs to send n bytes: seconds = latency + n * seconds_per_byte. Without latency the bytes of all ranks
// together decide, even where they are divided less evenly.
struct Link {
    double latency = 10e-6, seconds_per_byte = 1.0 / 10e9;
};

struct Costs {
    Link link;
    std::vector<Link> axes;    // along each axis of the mesh, if they differ; a step takes the slowest of its axes
    int64_t memory_limit = 0;  // bytes of one rank for the pieces before and after a step; 0: no limit
};

enum class StepKind : uint8_t {
    slice,           // each keeps a part of its piece: nothing is sent
    place,           // complete values become incomplete: each is kept by one rank, nothing is sent
    all_gather,      // pieces are put together
    reduce_scatter,  // incomplete values are combined, each gets a part
    all_reduce,      // incomplete values are combined, all get the result
    all_to_all,      // the cut goes from one axis of the tensor to another
    permute,         // each gets another one's piece
    exchange,        // each gets what it lacks from those that have it
};
const char* name_of(StepKind kind);

struct Step {
    StepKind kind = StepKind::exchange;
    const Distribution *from = nullptr, *to = nullptr;  // possibly on a finer mesh: see Plan
    AxisSet axes = 0;                                   // of from's mesh: the ranks that take part together
    int axis = -1, to_axis = -1;                        // of the tensor: cut before, cut afterwards
    Way way = Way::shared;                              // of exchanges
    // Bytes that the rank that gets (sends) the most gets (sends), and those of all ranks together.
    int64_t bytes = 0, total_bytes = 0;
    double seconds = 0;
};

// The steps may speak of a mesh with the same ranks at the same positions, whose axes are factors of those of the given
// mesh: dp=4 becomes dp_0=2, dp_1=2.
struct Plan {
    const Distribution *from = nullptr, *to = nullptr;
    Shape shape;
    DType dtype = DType::f32;
    std::vector<Step> steps;
    int64_t bytes = 0, total_bytes = 0;  // the sums of those of the steps
    double seconds = 0;

    std::string text() const;  // all_gather(tp) 128 B -> ...
};

// The cheapest plan that is found among the shortest path over collective steps and the direct exchange. Throws where
// ranks of the tensors differ, where incomplete values would go to another mesh or be of a dtype that cannot be
// combined, and where no way keeps to the memory limit.
Plan plan_redistribution(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                         const Costs& costs = {});
// The two candidates. No path: the meshes differ or have too many axes, or the memory limit is in the way.
std::optional<Plan> shortest_path(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                                  const Costs& costs = {});
Plan direct_exchange(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype,
                     const Costs& costs = {});
// The largest and total bytes that any way moves at least.
Volume lower_bound_bytes(const Distribution& from, const Distribution& to, const Shape& shape, DType dtype);

// The pieces of all positions of plan.from's mesh, in order, become those of plan.to's mesh. Equal pieces share their
// storage.
std::vector<Tensor> redistribute(const Plan& plan, std::vector<Tensor> pieces);
// The piece of this rank (without one where it is not in plan.from's mesh) becomes its piece afterwards (without one
// where it is not in plan.to's). All ranks of both meshes call it.
Tensor redistribute(const Plan& plan, Tensor piece, Communicator& communicator);

// The piece of a position of a whole tensor in host memory, and the whole of all pieces. Incomplete: the first rank
// along partial axes gets the values and the others those that change nothing.
Tensor piece_of(const Tensor& whole, const Distribution& layout, int64_t position);
Tensor whole_of(const Distribution& layout, const Shape& shape, DType dtype, std::span<const Tensor> pieces);
// A tensor of the value that changes nothing when it is merged: 0, 1, the lowest, the highest.
Tensor neutral(DType dtype, const Shape& shape, Merge merge);

}  // namespace lunaria::parallel
