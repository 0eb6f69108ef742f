// A secret as shares of which any `threshold` restore it and fewer tell nothing (Shamir 1979): values of a random
// polynomial over the scalars of ristretto255, whose value at 0 is the secret.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/federated/primitives.h"

namespace lunaria::federated {

// Fills bytes: of the system's generator, or, in tests, given ones.
using Random = std::function<void(std::span<uint8_t>)>;
Random system_random(std::string_view where);
Secret random_scalar(const Primitives& table, const Random& random);

// The place of a holder's share: a scalar by the hash of its name.
Secret share_place(const Primitives& table, std::string_view holder);

// One share for each place. The polynomial's coefficients are drawn from the second one to the last.
std::vector<Secret> shared_secret(const Primitives& table, const Secret& secret, size_t threshold,
                                  std::span<const Secret> places, const Random& random);

// What restores secrets from the shares at given places, which are different; one for all secrets of the same holders.
class Interpolation {
  public:
    Interpolation(const Primitives& table, std::span<const Secret> places);
    // `shares`: in the order of the places.
    Secret at_zero(std::span<const Secret> shares) const;

  private:
    const Primitives& table_;
    std::vector<Secret> factors_;
};

}  // namespace lunaria::federated
