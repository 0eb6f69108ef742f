// Whole numbers k with probabilities proportional to exp(-k² / (2 sigma²)), drawn exactly from random bits by whole
// numbers alone (Canonne, Kamath and Steinke 2020): noise in the ring of secure sums, without the gaps of floating
// point.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace lunaria::federated {

class DiscreteGaussian {
  public:
    // sigma: above 0, at most 2^24; sigma² is rounded up to a multiple of 2^-6.
    DiscreteGaussian(std::string_view where, double sigma);
    // draw(): 64 random bits.
    int64_t draw(const std::function<uint64_t()>& words) const;

  private:
    uint64_t scale_;      // t, of the discrete Laplace law that proposes
    uint64_t numerator_;  // sigma² = numerator / 64
};

}  // namespace lunaria::federated
