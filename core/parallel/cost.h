// The cost of communication, by the model of latency and bandwidth, on ranks that are joined in levels: chips of a
// group, group, groups of a server, servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lunaria::parallel {

// Neighbouring ranks, so many of them, reach each other by this level or a lower one. What a rank sends and receives at
// once goes at the rate.
struct LinkLevel {
    int64_t ranks = 1;
    double latency = 0;  // seconds of a message
    double bytes_per_second = 1;
};

struct Cluster {
    std::string name;
    std::vector<LinkLevel> levels;  // from the nearest to the farthest; the last one reaches all ranks
    double collective_seconds = 0;  // to start a collective
    double flops_per_second = 1;    // that products reach
    double bytes_per_second = 1;    // that other operators reach
    double operator_seconds = 0;    // to start an operator
    double memory_bytes = 0;        // of a device
    double hidden = 0.8;            // share of the backward pass beside which gradients can be summed
};

// Ranks that communicate: `size` of them, each `stride` after the one before, so that an axis of a mesh is a group for
// each place on the other axes.
struct RankGroup {
    int64_t stride = 1, size = 1;
};

// Seconds; `bytes`: of the tensor that a rank has before (all_reduce, reduce_scatter, all_to_all) or after
// (all_gather). Groups that reach over several levels work level by level, so that the far ones move only each rank's
// part.
double all_reduce_seconds(const Cluster& c, RankGroup g, double bytes);
double all_gather_seconds(const Cluster& c, RankGroup g, double bytes);
double reduce_scatter_seconds(const Cluster& c, RankGroup g, double bytes);
double all_to_all_seconds(const Cluster& c, RankGroup g, double bytes);
// To the rank that is `stride` away.
double send_seconds(const Cluster& c, int64_t stride, double bytes);

}  // namespace lunaria::parallel
