#include "core/parallel/buckets.h"

#include <algorithm>

namespace lunaria::parallel {

double end_of_messages(std::span<const ReadyGradient> gradients, const Buckets& buckets, MessageCost cost) {
    double end = 0;
    size_t begin = 0;
    for (size_t bucket : buckets) {
        int64_t bytes = 0;
        for (size_t i = begin; i < bucket; ++i) bytes += gradients[i].bytes;
        end = std::max(end, gradients[bucket - 1].seconds) + cost.seconds(bytes);
        begin = bucket;
    }
    return end;
}

Buckets best_buckets(std::span<const ReadyGradient> gradients, MessageCost cost, int64_t most_bytes) {
    // The best of the first n gradients. A message that ends earlier is never worse for those after it, so that the
    // best of the first n continues the best of some fewer.
    struct Best {
        double end = 0;
        size_t messages = 0, begin = 0;  // begin: of the last bucket
    };
    const size_t count = gradients.size();
    std::vector<Best> best(count + 1);
    for (size_t n = 1; n <= count; ++n) {
        const double ready = gradients[n - 1].seconds;
        int64_t bytes = 0;
        for (size_t begin = n; begin-- > 0;) {
            bytes += gradients[begin].bytes;
            if (bytes > most_bytes && begin + 1 < n) break;
            const Best& before = best[begin];
            const Best found{std::max(before.end, ready) + cost.seconds(bytes), before.messages + 1, begin};
            const bool first = begin + 1 == n;
            if (first || found.end < best[n].end || (found.end == best[n].end && found.messages < best[n].messages))
                best[n] = found;
        }
    }
    Buckets buckets;
    for (size_t n = count; n > 0; n = best[n].begin) buckets.push_back(n);
    std::ranges::reverse(buckets);
    return buckets;
}

Buckets buckets_of_size(std::span<const int64_t> bytes, int64_t most_bytes) {
    Buckets buckets;
    int64_t held = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        if (i > 0 && held + bytes[i] > most_bytes) {
            buckets.push_back(i);
            held = 0;
        }
        held += bytes[i];
    }
    if (!bytes.empty()) buckets.push_back(bytes.size());
    return buckets;
}

MessageCost fitted_cost(std::span<const Message> messages) {
    // Each error is weighed by the time itself: small messages tell the latency and count as much as large ones.
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (const Message& m : messages) {
        if (!(m.seconds > 0)) continue;
        const double weight = 1 / (m.seconds * m.seconds), x = static_cast<double>(m.bytes);
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * m.seconds;
        wxy += weight * x * m.seconds;
    }
    if (w == 0) return {};
    const double determinant = w * wxx - wx * wx;
    MessageCost cost;
    if (determinant > 0) cost = {(wy * wxx - wxy * wx) / determinant, (w * wxy - wx * wy) / determinant};
    if (!(determinant > 0) || cost.per_byte < 0) return {wy / w, 0};
    if (cost.latency < 0) return {0, wxy / wxx};
    return cost;
}

}  // namespace lunaria::parallel
