// The kinds of requests that ranks make to one another, and how they combine elements.
#pragma once

#include <cstdint>

namespace lunaria::parallel {

enum class Collective : uint8_t {
    barrier,
    all_reduce,
    reduce,
    reduce_scatter,
    all_gather,
    gather,
    scatter,
    broadcast,
    all_to_all,
    all_to_all_v,
    send,
    recv
};
enum class Combine : uint8_t { sum, product, max, min, mean };

}  // namespace lunaria::parallel
