// A plan for a whole cluster: how many stages a pipeline has and where they are cut, into how many micro-batches a
// batch goes, the mesh of a stage's ranks and what each of its axes cuts, what the optimizer shards and whether layers
// are computed twice. All of them are tried; which fit into the memory is counted, and their order is that of the
// simulated step.
#pragma once

#include <optional>

#include "core/parallel/schedule.h"
#include "core/parallel/strategies.h"

namespace lunaria::parallel {

// Gives equal runs of operators the numbers of layers, from 0 in the order of the program; operators outside of such
// runs get -1. The number of layers.
int find_layers(Program& program);

struct PlanRequest {
    int64_t devices = 1;
    int64_t batch = 1;  // of all ranks together
    bool trains = true;
    double state_bytes = 12, gradient_bytes = 2;  // of a parameter, beside its weight
    // What is given is not searched.
    std::optional<MeshAxes> mesh;  // of a stage
    std::optional<int64_t> stages, micro_batches;
    std::optional<int> level;
    std::optional<bool> remakes;
    ScheduleKind schedule = ScheduleKind::one_f_one_b;
    int chunks = 1;
    double worth = 1.1;       // plans that must take longer than so many times the best are not looked at
    size_t keep = 20;         // so many of the best are returned
    bool first_only = false;  // the first one that fits will do
};

struct StageCost {
    double forward = 0, backward = 0, weight_gradient = 0;  // seconds of a micro-batch; backward without the latter
    double send_bytes = 0;                                  // of a micro-batch to the next part
    double gradients = 0;                                   // seconds after the last backward pass
    double bytes = 0;                                       // that a rank needs
};

struct ClusterPlan {
    PlanSettings settings;
    ScheduleKind schedule = ScheduleKind::one_f_one_b;
    int stages = 1, chunks = 1;
    ProgramPlan plan;          // of a stage's mesh
    std::vector<int> part_of;  // of each operator: the part of the pipeline that it belongs to
    std::vector<StageCost> parts;
    double seconds = 0;        // of a simulated step
    double cost = 0;           // by a formula: the way of one micro-batch, then the slowest stage for the others
    double bubble = 0;         // the largest idle share of a stage
    double bytes = 0;          // of the rank that needs most
    std::string text() const;  // "pp 8, dp 64 x tp 8, 32 micro-batches, level 1, layers computed twice"
};

struct PlanSearch {
    std::vector<ClusterPlan> best;  // the fastest first; empty: nothing fits
    size_t tried = 0, fitting = 0;
    double least_bytes = 0;    // of the plan that needs least, where nothing fits
    double first_seconds = 0;  // after which the first fitting plan was known
};

PlanSearch plan_cluster(const Program& program, const Cluster& cluster, const PlanRequest& request);

}  // namespace lunaria::parallel
