// Random numbers of federated rounds, by position: what is drawn depends on (seed, round, device, purpose) alone, not
// on what was drawn before, so that any run is repeated to the bit on any number of threads and servers.
#pragma once

#include <cstdint>
#include <vector>

namespace lunaria::federated {

// Purposes of draws. Their numbers are part of what a seed means.
enum class Purpose : uint32_t { selection = 1, next_request = 2, choice = 3 };

// From 0 on and below 1.
double uniform(uint64_t seed, uint64_t round, uint64_t device, Purpose purpose);
// `count` different numbers below `population`, each set equally likely, in rising order. count <= population.
std::vector<uint64_t> chosen(uint64_t seed, uint64_t round, uint64_t population, uint64_t count);

}  // namespace lunaria::federated
