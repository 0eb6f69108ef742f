#include "core/parallel/environment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
    return read_environment([&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    });
}

std::string problem_of(const Variables& variables) {
    try {
        read(variables);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

Variables with(Variables variables, const Variables& others) {
    variables.insert(others.begin(), others.end());
    return variables;
}

const Variables kLunaria = {
    {"LUNARIA_RANK", "2"}, {"LUNARIA_RANKS", "4"}, {"LUNARIA_JOB", "ab12"}, {"LUNARIA_ATTEMPT", "1"}};
const Variables kMsrun = {{"MS_ROLE", "MS_WORKER"},
                          {"MS_WORKER_NUM", "8"},
                          {"MS_NODE_ID", "3"},
                          {"MS_SCHED_HOST", "127.0.0.1"},
                          {"MS_SCHED_PORT", "8118"}};
const Variables kTorchrun = {
    {"RANK", "5"},       {"WORLD_SIZE", "8"},         {"LOCAL_RANK", "1"},      {"LOCAL_WORLD_SIZE", "4"},
    {"GROUP_RANK", "1"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29400"}, {"TORCHELASTIC_RUN_ID", "my job"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "123"}};
const Variables kMpich = {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "3"}};
const Variables kSlurm = {{"SLURM_PROCID", "9"},         {"SLURM_STEP_NUM_TASKS", "16"},
                          {"SLURM_LOCALID", "1"},        {"SLURM_NODEID", "1"},
                          {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_JOB_ID", "4711"},
                          {"SLURM_STEP_ID", "0"},        {"SLURM_STEP_NODELIST", "gpu[07-09,12],login"}};

TEST(Environment, OneProcessWithoutVariables) {
    const Environment e = read({});
    EXPECT_EQ(e.rank, 0);
    EXPECT_EQ(e.ranks, 1);
    EXPECT_EQ(e.launcher, Launcher::none);
    EXPECT_TRUE(e.job.empty());
}

TEST(Environment, EveryLauncherIsUnderstood) {
    const Environment own = read(kLunaria);
    EXPECT_EQ(own.rank, 2);
    EXPECT_EQ(own.ranks, 4);
    EXPECT_EQ(own.job, "ab12");
    EXPECT_EQ(own.attempt, 1);
    EXPECT_TRUE(own.one_host);

    const Environment msrun = read(kMsrun);
    EXPECT_EQ(msrun.rank, 3);
    EXPECT_EQ(msrun.ranks, 8);
    EXPECT_EQ(msrun.address, "127.0.0.1:8118");
    EXPECT_TRUE(msrun.one_host);
    EXPECT_FALSE(read(with({{"MS_SCHED_HOST", "10.1.1.1"}}, kMsrun)).one_host);
    EXPECT_TRUE(read({{"MS_ROLE", "MS_SCHED"}, {"MS_WORKER_NUM", "8"}}).scheduler);

    const Environment torchrun = read(kTorchrun);
    EXPECT_EQ(torchrun.rank, 5);
    EXPECT_EQ(torchrun.local_rank, 1);
    EXPECT_EQ(torchrun.local_ranks, 4);
    EXPECT_EQ(torchrun.node, 1);
    EXPECT_FALSE(torchrun.one_host);
    EXPECT_EQ(torchrun.address, "10.0.0.1:29400");
    EXPECT_EQ(torchrun.job, "torchrun-10.0.0.1_29400-my_job-0");

    const Environment openmpi = read(kOpenMpi);
    EXPECT_EQ(openmpi.launcher, Launcher::openmpi);
    EXPECT_EQ(openmpi.rank, 1);
    EXPECT_EQ(openmpi.job, "mpirun-123");
    EXPECT_EQ(read(kMpich).ranks, 3);
    EXPECT_EQ(read(kMpich).launcher, Launcher::mpich);

    const Environment slurm = read(kSlurm);
    EXPECT_EQ(slurm.rank, 9);
    EXPECT_EQ(slurm.ranks, 16);
    EXPECT_EQ(slurm.local_rank, 1);
    EXPECT_EQ(slurm.local_ranks, 8);
    EXPECT_EQ(slurm.address, "gpu07:24711");
    EXPECT_EQ(slurm.job, "slurm-4711-0-0");
    EXPECT_FALSE(slurm.one_host);
}

TEST(Environment, OrderOfLaunchers) {
    // All at once; then without the first, and so on.
    Variables all = with(with(with(kLunaria, kMsrun), with(kTorchrun, kOpenMpi)), with(kMpich, kSlurm));
    const std::pair<const char*, Launcher> order[] = {
        {"LUNARIA_RANK", Launcher::lunaria},         {"MS_ROLE", Launcher::msrun},  {"RANK", Launcher::torchrun},
        {"OMPI_COMM_WORLD_RANK", Launcher::openmpi}, {"PMI_RANK", Launcher::mpich}, {"SLURM_PROCID", Launcher::slurm}};
    all.erase("LUNARIA_RANKS");
    all["LUNARIA_RANKS"] = "4";
    for (const auto& [name, launcher] : order) {
        EXPECT_EQ(read(all).launcher, launcher);
        all.erase(name);
        if (launcher == Launcher::lunaria) all.erase("LUNARIA_RANKS");
    }
    EXPECT_EQ(read(all).launcher, Launcher::none);
}

TEST(Environment, BatchScriptOfSlurmIsOneProcess) {
    EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "7"}}).ranks, 1);
}

TEST(Environment, RankTable) {
    const std::string path = std::filesystem::temp_directory_path() / "rank_table_test.json";
    std::ofstream(path) << R"({"version": "1.0", "server_count": "2", "status": "completed", "server_list": [
        {"server_id": "10.0.0.1", "device": [{"device_id": "0", "rank_id": "0"}, {"device_id": "1", "rank_id": "1"}]},
        {"server_id": "10.0.0.2", "device": [{"device_id": "0", "rank_id": "2"}]}]})";
    const Environment e = read({{"RANK_TABLE_FILE", path}, {"RANK_ID", "2"}, {"RANK_SIZE", "3"}});
    EXPECT_EQ(e.launcher, Launcher::rank_table);
    EXPECT_EQ(e.rank, 2);
    EXPECT_EQ(e.ranks, 3);
    EXPECT_EQ(e.local_rank, 0);
    EXPECT_EQ(e.local_ranks, 1);
    EXPECT_EQ(e.node, 1);
    EXPECT_EQ(e.address, "10.0.0.1:8118");
    EXPECT_NE(problem_of({{"RANK_TABLE_FILE", path}, {"RANK_ID", "3"}}).find("RANK_ID: is 3"), std::string::npos);
    EXPECT_NE(problem_of({{"RANK_TABLE_FILE", path}, {"RANK_ID", "0"}, {"RANK_SIZE", "8"}}).find("RANK_SIZE: is 8"),
              std::string::npos);
    std::ofstream(path) << "{}";
    EXPECT_NE(problem_of({{"RANK_TABLE_FILE", path}, {"RANK_ID", "0"}}).find("is no rank table"), std::string::npos);
    std::filesystem::remove(path);
}

TEST(Environment, ContradictionsNameTheVariables) {
    EXPECT_EQ(problem_of({{"LUNARIA_RANK", "4"}, {"LUNARIA_RANKS", "4"}, {"LUNARIA_JOB", "a"}}),
              "LUNARIA_RANK: is 4, but LUNARIA_RANKS is 4: ranks count from 0 to LUNARIA_RANKS - 1");
    EXPECT_NE(problem_of({{"LUNARIA_RANK", "1"}}).find("LUNARIA_RANKS: is not set, but LUNARIA_RANK is"),
              std::string::npos);
    EXPECT_NE(problem_of({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).find("RANK: 'x' is no number"), std::string::npos);
    EXPECT_NE(problem_of({{"MS_ROLE", "MS_PSERVER"}}).find("MS_PSERVER"), std::string::npos);
    EXPECT_NE(problem_of({{"MS_ROLE", "MS_WORKER"}, {"MS_WORKER_NUM", "2"}}).find("--node_rank"), std::string::npos);
}

TEST(Environment, JobsMayNameFiles) {
    const Environment e = read(with({{"LUNARIA_JOB", "../a b"}}, {{"LUNARIA_RANK", "0"}, {"LUNARIA_RANKS", "2"}}));
    EXPECT_EQ(e.job, ".._a_b");
}

TEST(Environment, FirstHostOfSlurmsLists) {
    EXPECT_EQ(first_host("a,b"), "a");
    EXPECT_EQ(first_host("n[3,7-9]-ib,b"), "n3-ib");
    EXPECT_EQ(first_host("r[1-2]n[05-06]"), "r1n05");
    EXPECT_EQ(first_host(""), "");
    EXPECT_EQ(first_host("x["), "x");
}

}  // namespace
}  // namespace lunaria::parallel
