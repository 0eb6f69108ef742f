#include "core/parallel/recorder.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace lunaria::parallel {

std::string_view name_of(Collective operation) {
    static constexpr std::string_view names[kCollectives] = {"barrier",    "all_reduce",   "reduce",  "reduce_scatter",
                                                             "all_gather", "gather",       "scatter", "broadcast",
                                                             "all_to_all", "all_to_all_v", "send",    "recv"};
    const auto i = static_cast<size_t>(operation);
    return i < kCollectives ? names[i] : "unknown request";
}

std::string_view name_of(Combine combine) {
    static constexpr std::string_view names[] = {"sum", "product", "max", "min", "mean"};
    const auto i = static_cast<size_t>(combine);
    return i < std::size(names) ? names[i] : "unknown";
}

uint64_t Mark::fingerprint() const {
    // Each step is a bijection of the sum so far, so that one differing field always shows.
    const auto mixed = [](uint64_t h, uint64_t x) { return (h ^ x) * 0x9e3779b97f4a7c15u; };
    uint64_t h = mixed(sequence, static_cast<uint64_t>(count));
    h = mixed(h ^ (h >> 32), uint64_t{group} << 32 | static_cast<uint32_t>(root));
    return mixed(h ^ (h >> 32), uint64_t{static_cast<uint32_t>(tag)} << 32 | uint64_t{is_elsewhere != 0} << 31 |
                                    static_cast<uint64_t>(operation) << 16 | static_cast<uint64_t>(dtype) << 8 |
                                    static_cast<uint64_t>(combine));
}

uint16_t NameTable::number(RankLog& log, std::string_view name) {
    if (name.empty()) return 0;
    for (const Last& last : last_)
        if (last.name == name) return last.number;
    uint16_t& number = known_[std::string(name)];
    const uint32_t used = std::max(1u, log.names_used.load(std::memory_order_relaxed));
    if (number == 0 && used < RankLog::kNames) {
        std::string_view end = name;
        if (end.size() >= RankLog::kNameSize) end.remove_prefix(end.size() - RankLog::kNameSize + 1);
        std::memcpy(log.names[used], end.data(), end.size());
        log.names_used.store(used + 1, std::memory_order_release);
        number = static_cast<uint16_t>(used);
    }
    last_[older_] = {std::string(name), number};
    older_ ^= 1;
    return number;
}

std::string name_in(const RankLog& log, uint16_t number) {
    if (number >= RankLog::kNames) return {};
    return std::string(log.names[number], strnlen(log.names[number], RankLog::kNameSize));
}

std::string describe(const RankLog& log, const Mark& mark) {
    std::string text = str(name_of(mark.operation), " #", mark.sequence);
    if (mark.operation == Collective::send || mark.operation == Collective::recv)
        text += str(mark.operation == Collective::send ? " to" : " from", " place ", mark.root, " with tag ", mark.tag);
    if (mark.operation != Collective::barrier) {
        const bool is_known = static_cast<size_t>(mark.dtype) < static_cast<size_t>(kDTypeCount);
        text += str(" (", is_known ? name_of(mark.dtype) : "unknown type", ", ", mark.count,
                    mark.count == 1 ? " element" : " elements");
        const bool combines = mark.operation == Collective::all_reduce || mark.operation == Collective::reduce ||
                              mark.operation == Collective::reduce_scatter;
        if (combines && mark.combine != Combine::sum) text += str(", ", name_of(mark.combine));
        const bool has_root = mark.operation == Collective::broadcast || mark.operation == Collective::reduce ||
                              mark.operation == Collective::gather || mark.operation == Collective::scatter;
        if (has_root) text += str(", root ", mark.root);
        if (mark.is_elsewhere) text += ", on a device";
        text += ")";
    }
    if (const std::string parameter = name_in(log, mark.parameter); !parameter.empty()) text += " of " + parameter;
    if (const std::string chunk = name_in(log, mark.chunk); !chunk.empty()) text += str(", ", chunk, ":", mark.line);
    return text;
}

uint64_t nanoseconds_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace lunaria::parallel
