// Local differential privacy of updates (DP_ENCRYPT): the change of the weights is clipped to a norm, and Gaussian
// noise is added before it leaves the client.
#pragma once

#include <functional>
#include <span>

namespace lunaria::federated::client {

// The standard deviation with which noise on values that differ by at most `sensitivity` in L2 is (eps, delta)-private:
// the smallest one, by the exact condition of Balle and Wang (2018), which holds for every eps > 0. 0 < delta < 1.
double gaussian_deviation(double eps, double delta, double sensitivity);

// Clips the vector to the norm, and adds noise. Any two clipped vectors differ by up to twice the norm, so that what is
// sent is (eps, delta)-private whatever the client's data are. `random` fills bytes, as secure_random does.
void make_private(std::span<double> change, double norm, double eps, double delta,
                  const std::function<void(void*, size_t)>& random);

}  // namespace lunaria::federated::client
