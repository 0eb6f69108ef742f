#include "backends/ascend/chip.h"

#include <algorithm>

#include "core/base/interrupt.h"

namespace lunaria::ascend {

namespace {

ChipResult pass(const ChipSettings& settings, const std::vector<const Program*>& blocks,
                std::vector<GlobalTensor>& tensors) {
    ChipResult all;
    Cache cache{.lines = settings.cache_lines};
    for (auto& tensor : tensors) std::ranges::fill(tensor.lines, 0u);
    Core core(settings.core, tensors, cache);
    std::vector<double> load(static_cast<size_t>(settings.cores));
    for (size_t b = 0; b < blocks.size(); ++b) {
        poll_interrupt();
        CoreResult one = core.run(*blocks[b], static_cast<int>(b));
        load[b % load.size()] += static_cast<double>(one.cycles + settings.core_start);
        for (size_t p = 0; p < kPipes; ++p) {
            all.busy[p] += static_cast<double>(one.busy[p]);
            all.instructions[p] += static_cast<double>(one.instructions[p]);
        }
        all.overflowed |= one.overflowed;
        for (Fault& f : one.faults) all.faults.push_back(std::move(f));
        all.traces.push_back(std::move(one.trace));
    }
    all.cycles = *std::ranges::max_element(load);
    all.cores_used = static_cast<int64_t>(std::min(blocks.size(), load.size()));
    all.hbm_bytes = cache.hbm_bytes;
    all.moved_bytes = cache.moved_bytes;
    all.gm_rate = std::min(settings.core.gm, settings.core.channel);
    return all;
}

}  // namespace

ChipResult run_kernel(const ChipSettings& given, const std::vector<const Program*>& blocks,
                      std::vector<GlobalTensor>& tensors) {
    ChipSettings settings = given;
    const double cores = static_cast<double>(std::min<size_t>(blocks.size(), static_cast<size_t>(settings.cores)));
    settings.core.gm = std::min(settings.core.gm, settings.l2 / std::max(cores, 1.0));
    ChipResult first = pass(settings, blocks, tensors);
    if (first.moved_bytes == 0 || !first.faults.empty()) return first;
    // The cores that run share the rate of the memory stacks, but not that of the cache.
    const double missing = first.hbm_bytes / first.moved_bytes;
    settings.core.channel = settings.hbm / (missing * cores);
    if (settings.core.channel >= 2 * settings.core.gm) return first;
    settings.core.compute = false;
    ChipResult timed = pass(settings, blocks, tensors);
    timed.overflowed = first.overflowed;
    return timed;
}

}  // namespace lunaria::ascend
