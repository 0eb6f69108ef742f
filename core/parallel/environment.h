// The place of this process in its job, from the variables that the program that started it has set: `lunaria launch`,
// msrun, torchrun, mpirun of OpenMPI and MPICH, srun, or a rank table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lunaria::parallel {

enum class Launcher { none, lunaria, msrun, torchrun, openmpi, mpich, slurm, rank_table };
std::string_view name_of(Launcher launcher);

struct Environment {
    int64_t rank = 0, ranks = 1;
    int64_t local_rank = 0,
            local_ranks = 1;  // among those of this host; rank and ranks where the launcher tells nothing
    int64_t node = 0;
    bool one_host = true;  // all ranks are known to be on this host
    // The same text in all ranks of a job and in no other job that runs: letters, digits, '-', '_' and '.', so that it
    // may be part of a file's name. Empty for one rank.
    std::string job;
    // Only ranks of the job know it, where one was given: what connects over a network says it.
    std::string secret;
    std::string address;     // "host:port" where ranks of several hosts meet; empty: none was told
    int64_t attempt = 0;     // how often the launcher has started the job anew
    bool phantom = false;    // the other ranks do not exist: `lunaria launch --simulate R/N`
    bool scheduler = false;  // the process that msrun starts for the meeting of its workers, which is no rank
    Launcher launcher = Launcher::none;
};

using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

// Asks for variables by `variable`. Where several launchers have left theirs the order is that of `Launcher`. Throws
// value_error with the variables' names and values where they contradict one another.
Environment read_environment(const Lookup& variable);

// That of this process. Read anew by each call.
Environment environment();

// The first host of a list as Slurm writes it: "gpu[07-09,12],login" is "gpu07".
std::string first_host(std::string_view list);

}  // namespace lunaria::parallel
