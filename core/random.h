// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011): element i of a call depends on the seed, the call's
// counter and i alone, so the numbers are the same for any number of threads and any vector width.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace lunaria {

// Four 32-bit random words for one counter value.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
    uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
    uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
        uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
        uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<uint32_t>(p1);
        c3 = static_cast<uint32_t>(p0);
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}

// The stream of one operator call: philox(seed, element block, counter).
struct RandomStream {
    uint64_t seed = 0, counter = 0;
};

class Generator {
  public:
    explicit Generator(uint64_t seed) : seed_(seed) {}
    void set_seed(uint64_t seed);
    uint64_t seed() const;
    RandomStream next_stream();
    RandomStream state() const;  // what next_stream would give
    void set_state(RandomStream state);

  private:
    mutable std::mutex mutex_;
    uint64_t seed_, calls_ = 0;
};

// Seeded from the system's entropy at start.
Generator& default_generator();

}  // namespace lunaria
