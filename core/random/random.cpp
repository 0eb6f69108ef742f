#include "core/random/random.h"

#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>
#include <utility>

#include "core/random/own_generator.h"

namespace lunaria {

void Generator::set_seed(uint64_t seed) { set_state({seed, 0}); }

uint64_t Generator::seed() const { return state().seed; }

RandomStream Generator::next_stream() {
    std::lock_guard lock(mutex_);
    return {seed_, calls_++};
}

RandomStream Generator::state() const {
    std::lock_guard lock(mutex_);
    return {seed_, calls_};
}

void Generator::set_state(RandomStream state) {
    std::lock_guard lock(mutex_);
    seed_ = state.seed;
    calls_ = state.counter;
}

namespace {
thread_local Generator* own = nullptr;
}

OwnGenerator::OwnGenerator(RandomStream stream) : generator_(stream.seed), before_(std::exchange(own, &generator_)) {
    generator_.set_state(stream);
}

OwnGenerator::~OwnGenerator() { own = before_; }

Generator& default_generator() {
    if (own) return *own;
    static Generator generator([] {
        // All ranks of a job begin with the same numbers, so that their networks are the same.
        if (const char* job = std::getenv("LUNARIA_JOB"); job && *job)
            return uint64_t{std::hash<std::string_view>{}(job)};
        std::random_device entropy;
        return (static_cast<uint64_t>(entropy()) << 32) | entropy();
    }());
    return generator;
}

}  // namespace lunaria
