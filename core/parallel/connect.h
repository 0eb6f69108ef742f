// The engine that connects this process with the other ranks of its job.
#pragma once

#include <memory>

#include "core/parallel/communicator.h"
#include "core/parallel/environment.h"

namespace lunaria::parallel {

// Null for a job of one rank. The variable LUNARIA_ENGINE asks for an engine (shared, tcp, mpi); otherwise ranks that
// an MPI has started use it, those of one host share its memory, and others talk by TCP.
std::unique_ptr<Communicator> connect(const Environment& environment);

}  // namespace lunaria::parallel
