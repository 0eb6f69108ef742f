// The way from operators to other ranks. The core has no communicator: the library of ranks (core/parallel) lends one
// when the program starts. Without it there is one rank, which works alone.
#pragma once

#include <string_view>

#include "core/tensor/device.h"

namespace lunaria {

namespace parallel {
class DeviceLinks;
}

class Ranks {
  public:
    struct Place {
        int rank = 0, size = 1;
    };
    virtual ~Ranks() = default;
    // The place of this rank in a group, which has a name; the empty name is all ranks. Throws argument_error in the
    // name of `where` if there is no such group.
    virtual Place place(std::string_view where, std::string_view group) = 0;
    // Carries out an operator of core/ops/communication.cpp.
    virtual void run(const KernelCall& call) = 0;
    // The same for operands and results of a device, by the library of that device (device_link.h).
    // False: this request goes by way of the host; all ranks of the group decide the same.
    virtual bool run_on(parallel::DeviceLinks&, const KernelCall&) { return false; }
    // The number of this rank among those of its host.
    virtual int local_rank() { return 0; }
};

// The ranks of this program; never null.
Ranks& ranks();
// Null: one rank again.
void set_ranks(Ranks* ranks);

}  // namespace lunaria
