// Gradients in messages: how many of them go together, so that the last message ends as early as possible.
//
// A backward pass gives gradients one after the other. A message costs a latency and a time for each byte; messages
// follow each other, and one begins when its last gradient is there. Few large messages save latencies, many small ones
// begin earlier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lunaria::parallel {

struct ReadyGradient {
    double seconds = 0;  // since the backward pass began; not less than that of the gradient before it
    int64_t bytes = 0;
};

struct MessageCost {
    double latency = 0;   // seconds for each message
    double per_byte = 0;  // seconds

    double seconds(int64_t bytes) const { return latency + per_byte * static_cast<double>(bytes); }
};

// For each bucket the number of gradients in it and in those before it; the last one is the number of all gradients.
using Buckets = std::vector<size_t>;

// The time at which the last message of these buckets ends.
double end_of_messages(std::span<const ReadyGradient> gradients, const Buckets& buckets, MessageCost cost);

// The buckets whose last message ends first; of equal ones those with the fewest messages. A bucket has at most
// most_bytes, unless it is a single gradient. Takes time quadratic in the number of gradients.
Buckets best_buckets(std::span<const ReadyGradient> gradients, MessageCost cost, int64_t most_bytes = INT64_MAX);

// Buckets that are full at most_bytes, in order: what is used while no times are known.
Buckets buckets_of_size(std::span<const int64_t> bytes, int64_t most_bytes);

// A line through measured messages (bytes, seconds), by least squares of the relative errors. Neither coefficient is
// negative.
struct Message {
    int64_t bytes = 0;
    double seconds = 0;
};
MessageCost fitted_cost(std::span<const Message> messages);

}  // namespace lunaria::parallel
