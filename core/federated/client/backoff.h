// The waits of a client before it repeats a request: twice as long each time, and not the same for all clients.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/random/random.h"

namespace lunaria::federated::client {

struct BackoffOptions {
    int64_t first_ms = 500;
    int64_t most_ms = 30'000;
    double jitter = 0.5;  // the part of a wait that is drawn: it is between 1 - jitter and 1 of the whole
    int64_t seed = 0;     // of the drawing
};

class Backoff {
  public:
    explicit Backoff(const BackoffOptions& options) : options_(options) {}

    // The wait after the attempt with this number, from 0, of a request with that number.
    int64_t wait_ms(uint32_t attempt, uint64_t request) const {
        int64_t whole = options_.first_ms;
        for (uint32_t i = 0; i < attempt && whole < options_.most_ms; ++i) whole *= 2;
        whole = std::min(whole, options_.most_ms);
        constexpr double kWords = 4294967296.0;
        const double drawn = philox(static_cast<uint64_t>(options_.seed), request, attempt)[0] / kWords;
        return static_cast<int64_t>(static_cast<double>(whole) * (1 - options_.jitter * drawn));
    }

  private:
    BackoffOptions options_;
};

}  // namespace lunaria::federated::client
