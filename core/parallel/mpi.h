// MPI as it is installed: a library that is opened at run time, OpenMPI or one with the binary interface of MPICH.
#pragma once

#include <memory>

#include "core/parallel/communicator.h"

namespace lunaria::parallel {

// Joins the job in which mpirun, mpiexec or srun has started this process, once in its life. Throws state_error where
// no library of MPI is there. LUNARIA_MPI names one by its path.
std::unique_ptr<Communicator> make_mpi();

}  // namespace lunaria::parallel
