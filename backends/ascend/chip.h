// A kernel on the whole chip: its blocks on the cores, which share the way to global memory.
#pragma once

#include <vector>

#include "backends/ascend/core.h"

namespace lunaria::ascend {

struct ChipSettings {
    CoreSettings core;
    int64_t cores = 32;
    double hbm = 900;             // bytes per cycle that global memory gives all cores together
    double l2 = 4000;             // and the on-chip cache
    int64_t cache_lines = 65536;  // of 512 bytes
    int64_t core_start = 500;     // cycles until a core begins with a block
};

struct ChipResult {
    double cycles = 0;
    double gm_rate = 0;  // bytes per cycle that each core had
    double hbm_bytes = 0, moved_bytes = 0;
    std::array<double, kPipes> busy{}, instructions{};  // of all cores
    bool overflowed = false;
    int64_t cores_used = 0;
    std::vector<Fault> faults;
    std::vector<std::vector<TraceRow>> traces;  // by blocks
};

// Blocks go to the cores in turn. Afterwards the tensors' memory holds the kernel's results.
ChipResult run_kernel(const ChipSettings& settings, const std::vector<const Program*>& blocks,
                      std::vector<GlobalTensor>& tensors);

}  // namespace lunaria::ascend
