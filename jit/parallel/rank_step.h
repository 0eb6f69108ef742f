// A step of training of one rank of a plan, by the executor, operator by operator with the shapes of the rank's pieces:
// on a device that computes nothing (backends/ascend/outline.h) it tells what the rank does. The derivative is that of
// the rank's own operators; what moves between ranks forward and backward follows from the plan.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/parallel/planner.h"
#include "core/parallel/read_program.h"
#include "core/tensor/tensor.h"

namespace lunaria::parallel {

// What the rank asks of those along an axis of its stage's mesh.
struct RankRequest {
    const char* kind = "";  // of Conversion, or "exchange" of the edges of pieces
    size_t axis = 0;
    double bytes = 0;  // the larger of what the rank has before and after
    Tensor in, out;
    const ProgramOperator* op = nullptr;  // that needs it
};

// The gradient of a parameter as the rank's backward pass gives it.
struct RankGradient {
    int tensor = 0, layer = -1;
    Tensor weight, value;  // the rank's pieces; no value: nothing gave one
};

class RankStep {
  public:
    // The rank with the first place on all axes of the mesh, for one micro-batch. All but `ask` must outlive it.
    // `begins` is called with the operator that is computed next, forward or backward.
    RankStep(const GraphProgram& read, const ClusterPlan& plan, std::function<void(const RankRequest&)> ask,
             std::function<void(const ProgramOperator&)> begins);
    ~RankStep();
    RankStep(const RankStep&) = delete;

    // Parts of the pipeline: forward from the first to the last, backward from the last to the first.
    void forward(int part);
    void backward(int part);
    // Of the parameters that the part uses, in the order of the program; complete when all their parts ran backward.
    std::vector<RankGradient> gradients(int part) const;
    // An earlier part that does the same, in whose place nothing is computed; -1: there is none.
    int same_as(int part) const;
    // Equal layers of a part are computed once: the layers that stand for others, with how many they are with those.
    const std::map<int, int>& repeats(int part) const;
    // The pieces of activations that came into the part from the one before.
    std::vector<Tensor> received(int part) const;
    // Their gradients, which go back there.
    std::vector<Tensor> handed_back(int part) const;

  private:
    class Work;
    std::unique_ptr<Work> work_;
};

}  // namespace lunaria::parallel
