// The operators of core/ops/communication.cpp, carried out by the communicator of the program.
#pragma once

#include "core/parallel/communicator.h"
#include "core/run/communication.h"

namespace lunaria::parallel {

// The communicator of the program, or one of a single rank where it has none.
Communicator& own_world();

// From now on operators that ask other ranks ask those of world(). Called once when a program starts.
void serve_operators();

}  // namespace lunaria::parallel
