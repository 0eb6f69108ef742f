#include "core/federated/discrete_noise.h"

#include <cmath>

#include "core/base/error.h"

namespace lunaria::federated {

namespace {

__extension__ using Wide = unsigned __int128;

// A number below `count`, all exactly as likely as each other; count: below 2^120.
Wide below(Wide count, const std::function<uint64_t()>& words) {
    int bits = 0;
    while (bits < 128 && (Wide{1} << bits) < count) ++bits;
    for (;;) {
        Wide drawn = words();
        if (bits > 64) drawn = drawn << 64 | words();
        drawn &= (Wide{1} << bits) - 1;
        if (drawn < count) return drawn;
    }
}

bool happens(Wide numerator, Wide denominator, const std::function<uint64_t()>& words) {
    return below(denominator, words) < numerator;
}

// True with probability exp(-numerator / denominator), where that is at most 1: the alternating series of exp, von
// Neumann's way.
bool happens_exp_below_1(Wide numerator, Wide denominator, const std::function<uint64_t()>& words) {
    uint64_t k = 1;
    while (happens(numerator, denominator * k, words)) ++k;
    return k % 2 == 1;
}

bool happens_exp(Wide numerator, Wide denominator, const std::function<uint64_t()>& words) {
    for (; numerator > denominator; numerator -= denominator)
        if (!happens_exp_below_1(1, 1, words)) return false;
    return happens_exp_below_1(numerator, denominator, words);
}

}  // namespace

DiscreteGaussian::DiscreteGaussian(std::string_view where, double sigma) {
    constexpr double kMost = 1 << 24;
    if (!(sigma > 0 && sigma <= kMost))
        throw argument_error(where, str("sigma must be above 0 and at most 2^24, got ", sigma));
    numerator_ = static_cast<uint64_t>(std::ceil(sigma * sigma * 64));
    scale_ = static_cast<uint64_t>(std::floor(sigma)) + 1;
}

int64_t DiscreteGaussian::draw(const std::function<uint64_t()>& words) const {
    for (;;) {
        // A number of the discrete Laplace law of scale t: |k| = u + t v, where u passes with exp(-u / t) and v counts
        // passes of exp(-1).
        const auto u = static_cast<uint64_t>(below(scale_, words));
        if (!happens_exp(u, scale_, words)) continue;
        uint64_t v = 0;
        while (happens_exp_below_1(1, 1, words)) ++v;
        const uint64_t size = u + scale_ * v;
        const bool is_negative = words() & 1;
        if (is_negative && size == 0) continue;
        // It is kept with exp(-(|k| - sigma² / t)² / (2 sigma²)), in whole numbers: sigma² = n / 64.
        const Wide scaled = Wide{size} * 64 * scale_;
        const Wide distance = scaled > numerator_ ? scaled - numerator_ : numerator_ - scaled;
        if (distance >> 60) continue;  // more than 2^24 deviations: the probability is below 2^-(10^13)
        if (happens_exp(distance * distance, Wide{2} * numerator_ * 64 * scale_ * scale_, words))
            return is_negative ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
    }
}

}  // namespace lunaria::federated
