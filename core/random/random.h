// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011): element i of a call depends on the seed, the call's
// counter and i alone, so the numbers are the same for any number of threads and any vector width.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "core/random/formulas_random.h"

namespace lunaria {

// Four 32-bit random words for one counter value.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
    struct Machine {
        using Word = uint32_t;
        static Word word(uint32_t n) { return n; }
    };
    uint32_t c[4] = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                     static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
    formula::philox_rounds<Machine>(c, static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
                                    [](uint32_t a, uint32_t factor, uint32_t& high, uint32_t& low) {
                                        const uint64_t product = uint64_t{a} * factor;
                                        high = static_cast<uint32_t>(product >> 32);
                                        low = static_cast<uint32_t>(product);
                                    });
    return {c[0], c[1], c[2], c[3]};
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
    RandomStream state() const;  // the stream that next_stream would return
    void set_state(RandomStream state);

  private:
    mutable std::mutex mutex_;
    uint64_t seed_, calls_ = 0;
};

// Seeded from the system's entropy at start.
Generator& default_generator();

}  // namespace lunaria
