#include "core/federated/client/local_noise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace lunaria::federated::client {

namespace {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// The least delta of noise with this deviation, in units of the sensitivity.
double delta_of(double deviation, double eps) {
    const double near = 1 / (2 * deviation), far = eps * deviation;
    // As one exponential: e^eps alone overflows where the probability beside it is tiny.
    return normal_cdf(near - far) - std::exp(eps + std::log(normal_cdf(-near - far)));
}

}  // namespace

double gaussian_deviation(double eps, double delta, double sensitivity) {
    constexpr int kHalvings = 200;
    double low = 0, high = 1;
    while (delta_of(high, eps) > delta) {
        low = high;
        high *= 2;
    }
    for (int i = 0; i < kHalvings && low < high; ++i) {
        const double middle = low + (high - low) / 2;
        if (middle == low || middle == high) break;
        (delta_of(middle, eps) > delta ? low : high) = middle;
    }
    return high * sensitivity;
}

void make_private(std::span<double> change, double norm, double eps, double delta,
                  const std::function<void(void*, size_t)>& random) {
    double largest = 0, sum = 0;
    for (const double x : change) largest = std::max(largest, std::abs(x));
    if (largest > 0) {
        // Squares of the largest numbers would overflow.
        for (const double x : change) sum += x / largest * (x / largest);
        const double length = largest * std::sqrt(sum);
        if (length > norm)
            for (double& x : change) x *= norm / length;
    }
    const double deviation = gaussian_deviation(eps, delta, 2 * norm);
    constexpr double kUnit = 0x1p-53;
    std::vector<uint64_t> words((change.size() + 1) / 2 * 2);
    random(words.data(), words.size() * sizeof(uint64_t));
    for (size_t i = 0; i < change.size(); i += 2) {
        // Box and Muller: u in (0, 1], so that its logarithm is finite.
        const double u = (static_cast<double>(words[i] >> 11) + 1) * kUnit;
        const double angle = 2 * std::numbers::pi * (static_cast<double>(words[i + 1] >> 11) * kUnit);
        const double radius = deviation * std::sqrt(-2 * std::log(u));
        change[i] += radius * std::cos(angle);
        if (i + 1 < change.size()) change[i + 1] += radius * std::sin(angle);
    }
}

}  // namespace lunaria::federated::client
