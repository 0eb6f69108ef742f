// The random numbers that a call of an operator draws.
#pragma once

#include "core/operator/op.h"
#include "core/random/random.h"

namespace lunaria {

// Those of the seed among its arguments, which leaves the session's generator as it is, or else that generator's next.
inline void set_stream(KernelCall& call) {
    const int seed = call.op.signature.find("seed");
    const bool has_seed = seed >= 0 && call.has(static_cast<size_t>(seed));
    const RandomStream stream =
        has_seed ? RandomStream{static_cast<uint64_t>(call.args[static_cast<size_t>(seed)].integer()), 0}
                 : default_generator().next_stream();
    call.seed = stream.seed;
    call.counter = stream.counter;
}

}  // namespace lunaria
