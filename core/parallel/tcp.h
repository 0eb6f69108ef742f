// Ranks of several machines, connected by TCP, each with each.
#pragma once

#include <memory>

#include "core/parallel/communicator.h"
#include "core/parallel/environment.h"

namespace lunaria::parallel {

// Meets the other ranks at the environment's address and connects to them. `seconds`: for all to come.
std::unique_ptr<Communicator> make_tcp(const Environment& environment, double seconds = 600);

}  // namespace lunaria::parallel
