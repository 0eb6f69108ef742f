// A random generator of one thread, independent of the draws of other threads.
#pragma once

#include "core/random/random.h"

namespace lunaria {

// While it lives, default_generator() returns, on this thread, a generator that begins at `stream`.
class OwnGenerator {
  public:
    explicit OwnGenerator(RandomStream stream);
    ~OwnGenerator();
    OwnGenerator(const OwnGenerator&) = delete;
    OwnGenerator& operator=(const OwnGenerator&) = delete;

  private:
    Generator generator_;
    Generator* before_;
};

}  // namespace lunaria
