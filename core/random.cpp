#include "core/random.h"

#include <random>

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

Generator& default_generator() {
    static Generator generator([] {
        std::random_device entropy;
        return (static_cast<uint64_t>(entropy()) << 32) | entropy();
    }());
    return generator;
}

}  // namespace lunaria
