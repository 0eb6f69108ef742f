// Communication in a divided graph: an operator that brings the pieces of one value into another layout, or gives each
// position the part that it needs. Each is made for one place in one graph, with a plan of its own, so that nothing is
// searched for when the graph runs.
#pragma once

#include <string>
#include <vector>

#include "core/operator/op.h"
#include "core/parallel/laid.h"
#include "core/parallel/redistribution.h"
#include "core/parallel/traffic.h"

namespace lunaria::parallel {

// The call has one operand, the list of the pieces that this process holds, and gives such a list. It is ordered: all
// ranks ask the same of one another in the same order, and nothing that an operator asked for is left out.
class MoveOp final : public Op {
  public:
    // A value without its pieces becomes one of the layout. `place`: the line of the program, for reports.
    static std::unique_ptr<MoveOp> to_layout(Laid from, const Distribution& to, const Cause& cause, std::string place);
    // The part of each position of the mesh; the value is complete.
    static std::unique_ptr<MoveOp> to_parts(Laid from, std::vector<Region> needed, const Cause& cause,
                                            std::string place);

    // "Float32[8@dp, 4] -> Float32[8, 4], all_gather(dp), 64 bytes"
    const std::string& described() const { return described_; }
    bool moves() const { return bytes_ > 0; }
    // Whether every position keeps a part of its own piece.
    bool only_slices() const;

  private:
    MoveOp(Laid from, const Cause& cause, std::string place);
    Value run(const Value& pieces) const;

    const Laid from_;
    const Cause cause_;
    const std::string place_;
    std::string described_;
    int64_t bytes_ = 0;
    Plan plan_;
    Move move_;
    std::vector<Region> needed_;
};

}  // namespace lunaria::parallel
