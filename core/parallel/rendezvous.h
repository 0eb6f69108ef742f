// The first meeting of the ranks of a job that is spread over several machines: each tells all others a text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/parallel/environment.h"

namespace lunaria::parallel {

struct Meeting {
    std::string address;  // where rank 0 listens
    std::string job, secret;
    int rank = 0, ranks = 1;
    double seconds = 600;  // for all to come
};

// The texts of all ranks by rank. `text` gives that of this rank; it gets the address of this machine by which rank 0
// is reached, "10.0.0.2". Where the port is taken (torchrun keeps its own) the next ones are tried. Throws state_error
// that names the ranks that did not come.
std::vector<std::string> meet(const Meeting& meeting, const std::function<std::string(const std::string& host)>& text);

}  // namespace lunaria::parallel
