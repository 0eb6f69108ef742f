#include "core/parallel/environment.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/io/file.h"

namespace lunaria::parallel {

namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int kMeetingPort = 8118;

// Variables with their names in what is thrown.
class Variables {
  public:
    explicit Variables(const Lookup& lookup) : lookup_(lookup) {}

    std::optional<std::string> text(const std::string& name) const {
        auto value = lookup_(name);
        if (value && value->empty()) value.reset();
        return value;
    }
    bool has(const std::string& name) const { return text(name).has_value(); }
    std::string text_or(const std::string& name, std::string_view otherwise) const {
        return text(name).value_or(std::string(otherwise));
    }
    std::optional<int64_t> number(const std::string& name) const {
        const auto value = text(name);
        if (!value) return std::nullopt;
        int64_t result = 0;
        const auto [end, problem] = std::from_chars(value->data(), value->data() + value->size(), result);
        if (problem != std::errc() || end != value->data() + value->size() || result < 0 || result > kMostRanks << 20)
            throw value_error(name, str("'", *value, "' is no number that counts or names ranks"))
                .hint("the program that starts the ranks sets this variable; unset it to run as one process");
        return result;
    }
    int64_t number_or(const std::string& name, int64_t otherwise) const { return number(name).value_or(otherwise); }
    // A variable without which the others mean nothing.
    int64_t need(const std::string& name, std::string_view because) const {
        const auto value = number(name);
        if (!value)
            throw value_error(name, str("is not set, but ", because, " is"))
                .hint("set both, or neither to run as one process");
        return *value;
    }

  private:
    const Lookup& lookup_;
};

// What may stand in a file's name.
std::string as_job(std::string_view text) {
    constexpr size_t kLongest = 120;
    std::string job;
    for (const char c : text.substr(0, kLongest)) {
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
        job += plain ? c : '_';
    }
    return job;
}

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

// The fields that variables of one launcher name.
struct Names {
    const char *rank, *ranks, *local_rank, *local_ranks;
};

void read_places(const Variables& variables, const Names& names, Environment& e) {
    e.rank = variables.need(names.rank, names.ranks);
    e.ranks = variables.need(names.ranks, names.rank);
    if (e.ranks < 1 || e.ranks > kMostRanks || e.rank >= e.ranks)
        throw value_error(names.rank, str("is ", e.rank, ", but ", names.ranks, " is ", e.ranks,
                                          ": ranks count from 0 to ", names.ranks, " - 1"));
    const auto local_rank = names.local_rank ? variables.number(names.local_rank) : std::nullopt;
    const auto local_ranks = names.local_ranks ? variables.number(names.local_ranks) : std::nullopt;
    e.local_rank = local_rank.value_or(e.rank);
    e.local_ranks = local_ranks.value_or(e.ranks);
    if (e.local_rank >= e.local_ranks || e.local_ranks > e.ranks)
        throw value_error(local_rank ? names.local_rank : names.rank,
                          str("is ", e.local_rank, ", but this host has ", e.local_ranks, " of ", e.ranks, " ranks"));
    e.one_host = e.local_ranks == e.ranks;
}

void read_lunaria(const Variables& variables, Environment& e) {
    read_places(variables, {"LUNARIA_RANK", "LUNARIA_RANKS", "LUNARIA_LOCAL_RANK", "LUNARIA_LOCAL_RANKS"}, e);
    e.launcher = Launcher::lunaria;
    e.node = variables.number_or("LUNARIA_NODE", 0);
    e.attempt = variables.number_or("LUNARIA_ATTEMPT", 0);
    e.phantom = variables.has("LUNARIA_PHANTOM");
    e.address = variables.text_or("LUNARIA_ADDRESS", "");
    e.job = as_job(variables.text_or("LUNARIA_JOB", ""));
    if (e.job.empty() && e.ranks > 1 && !e.phantom)
        throw value_error("LUNARIA_JOB", "is not set, but LUNARIA_RANK is")
            .hint("give all ranks of the job the same text that no other job has");
}

// msrun and processes started by hand for MindSpore's "dynamic cluster".
void read_msrun(const Variables& variables, Environment& e) {
    e.launcher = Launcher::msrun;
    const std::string role = variables.text_or("MS_ROLE", "MS_WORKER");
    const std::string host = variables.text_or("MS_SCHED_HOST", "127.0.0.1");
    e.address = str(host, ":", variables.number_or("MS_SCHED_PORT", kMeetingPort));
    if (role == "MS_SCHED") {
        e.scheduler = true;
        return;
    }
    if (role != "MS_WORKER")
        throw value_error("MS_ROLE", str("'", role, "' is not supported; there are MS_WORKER and MS_SCHED"));
    if (!variables.has("MS_NODE_ID") && variables.has("MS_WORKER_NUM") && !variables.has("RANK_ID"))
        throw value_error("MS_NODE_ID", "is not set: ranks of this job have no fixed numbers")
            .hint("give msrun --node_rank on every machine");
    const char* rank = variables.has("MS_NODE_ID") ? "MS_NODE_ID" : "RANK_ID";
    read_places(variables, {rank, variables.has("MS_WORKER_NUM") ? "MS_WORKER_NUM" : "RANK_SIZE", nullptr, nullptr}, e);
    e.one_host = is_loopback(host);
    e.job = as_job(str("msrun-", e.address));
}

void read_torchrun(const Variables& variables, Environment& e) {
    e.launcher = Launcher::torchrun;
    read_places(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}, e);
    const std::string host = variables.text_or("MASTER_ADDR", "127.0.0.1");
    e.address = str(host, ":", variables.text_or("MASTER_PORT", "29500"));
    if (!variables.has("LOCAL_WORLD_SIZE")) e.one_host = is_loopback(host);
    e.node = variables.number_or("GROUP_RANK", 0);
    e.attempt = variables.number_or("TORCHELASTIC_RESTART_COUNT", 0);
    e.job = as_job(str("torchrun-", e.address, "-", variables.text_or("TORCHELASTIC_RUN_ID", "none"), "-", e.attempt));
}

void read_slurm_address(const Variables& variables, Environment& e) {
    const auto nodes =
        variables.text(variables.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST");
    const int64_t job = variables.number_or("SLURM_JOB_ID", 0);
    if (nodes) e.address = str(first_host(*nodes), ":", 20000 + job % 20000);
}

void read_openmpi(const Variables& variables, Environment& e) {
    e.launcher = Launcher::openmpi;
    read_places(
        variables,
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        e);
    e.node = variables.number_or("OMPI_COMM_WORLD_NODE_RANK", 0);
    e.job = as_job(str(
        "mpirun-", variables.text_or("PMIX_NAMESPACE", variables.text_or("OMPI_MCA_ess_base_jobid", str(getppid())))));
    read_slurm_address(variables, e);
}

void read_mpich(const Variables& variables, Environment& e) {
    e.launcher = Launcher::mpich;
    read_places(variables, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, e);
    // All ranks of a host have one parent, which names no job.
    e.job = as_job(str("mpiexec-", variables.text_or("PMI_JOBID", str(getppid()))));
    if (!variables.has("MPI_LOCALNRANKS")) e.one_host = !variables.has("SLURM_JOB_ID");
    read_slurm_address(variables, e);
}

void read_slurm(const Variables& variables, Environment& e) {
    e.launcher = Launcher::slurm;
    read_places(variables,
                {"SLURM_PROCID", variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                 nullptr, nullptr},
                e);
    const int64_t nodes = variables.number_or("SLURM_STEP_NUM_NODES", variables.number_or("SLURM_NNODES", 1));
    e.one_host = nodes <= 1;
    e.local_rank = variables.number_or("SLURM_LOCALID", e.local_rank);
    // "2(x3),1" where machines have different numbers; the division is right where they do not.
    if (nodes > 1) e.local_ranks = std::max((e.ranks + nodes - 1) / nodes, e.local_rank + 1);
    e.node = variables.number_or("SLURM_NODEID", 0);
    e.attempt = variables.number_or("SLURM_RESTART_COUNT", 0);
    e.job = as_job(str("slurm-", variables.text_or("SLURM_JOB_ID", "0"), "-", variables.text_or("SLURM_STEP_ID", "0"),
                       "-", e.attempt));
    read_slurm_address(variables, e);
}

// A number that tables write as a text or as a number.
int64_t number_of(const nlohmann::json& value) {
    if (value.is_number_integer()) return value.get<int64_t>();
    return std::stoll(value.get<std::string>());
}

struct TablePlace {
    std::string host;
    int64_t rank, local_rank, local_ranks, node;
};

std::vector<TablePlace> places_of(const std::string& path) {
    constexpr uint64_t kLongest = 64 << 20;
    std::vector<TablePlace> places;
    try {
        const auto table = nlohmann::json::parse(lunaria::read_file(path, kLongest));
        int64_t node = 0;
        for (const auto& server : table.at("server_list")) {
            const auto& devices = server.at("device");
            int64_t local_rank = 0;
            for (const auto& device : devices)
                places.push_back({server.at("server_id").get<std::string>(), number_of(device.at("rank_id")),
                                  local_rank++, static_cast<int64_t>(devices.size()), node});
            ++node;
        }
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        throw file_error(path, str("is no rank table: ", e.what()))
            .hint("RANK_TABLE_FILE names a JSON file with server_list, device and rank_id");
    }
    if (places.empty()) throw file_error(path, "the rank table has no device");
    return places;
}

void read_rank_table(const Variables& variables, Environment& e) {
    e.launcher = Launcher::rank_table;
    const std::string path = *variables.text("RANK_TABLE_FILE");
    const auto places = places_of(path);
    e.ranks = static_cast<int64_t>(places.size());
    e.rank = variables.need("RANK_ID", "RANK_TABLE_FILE");
    if (const auto size = variables.number("RANK_SIZE"); size && *size != e.ranks)
        throw value_error("RANK_SIZE", str("is ", *size, ", but ", path, " lists ", e.ranks, " ranks"));
    const auto own = std::find_if(places.begin(), places.end(), [&](const TablePlace& p) { return p.rank == e.rank; });
    const auto first = std::find_if(places.begin(), places.end(), [&](const TablePlace& p) { return p.rank == 0; });
    if (own == places.end() || first == places.end())
        throw value_error("RANK_ID", str("is ", e.rank, ", and ", path, " lists ", e.ranks, " ranks without ",
                                         own == places.end() ? e.rank : 0));
    e.local_rank = own->local_rank;
    e.local_ranks = own->local_ranks;
    e.node = own->node;
    e.one_host = e.local_ranks == e.ranks;
    e.address = str(first->host, ":", kMeetingPort);
    e.job = as_job(str("table-", std::hash<std::string>()(path)));
}

}  // namespace

std::string_view name_of(Launcher launcher) {
    constexpr std::array<std::string_view, 8> kNames = {"none",    "lunaria launch", "msrun", "torchrun",
                                                        "OpenMPI", "MPICH",          "Slurm", "rank table"};
    return kNames[static_cast<size_t>(launcher)];
}

std::string first_host(std::string_view list) {
    // The end of the first host: the first comma outside brackets.
    size_t end = 0;
    for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end) {
        if (list[end] == '[') inside = true;
        if (list[end] == ']') inside = false;
    }
    std::string host;
    for (size_t at = 0; at < end;) {
        if (list[at] != '[') {
            host += list[at++];
            continue;
        }
        // Of a range its first number.
        for (++at; at < end && list[at] != '-' && list[at] != ',' && list[at] != ']'; ++at) host += list[at];
        while (at < end && list[at] != ']') ++at;
        ++at;
    }
    return host;
}

Environment read_environment(const Lookup& lookup) {
    const Variables variables(lookup);
    const bool table = variables.has("RANK_TABLE_FILE");
    // A batch script has the variables of its job, too, but only what srun starts is a rank.
    const bool step =
        variables.has("SLURM_PROCID") && (variables.has("SLURM_STEP_NUM_TASKS") || variables.has("SLURM_STEP_ID"));
    const std::pair<bool, void (*)(const Variables&, Environment&)> readers[] = {
        {variables.has("LUNARIA_RANK") || variables.has("LUNARIA_RANKS"), read_lunaria},
        {variables.has("MS_ROLE") || (variables.has("RANK_ID") && !table), read_msrun},
        {variables.has("RANK") && variables.has("WORLD_SIZE"), read_torchrun},
        {variables.has("OMPI_COMM_WORLD_RANK"), read_openmpi},
        {variables.has("PMI_RANK") && variables.has("PMI_SIZE"), read_mpich},
        {step, read_slurm},
        {table && variables.has("RANK_ID"), read_rank_table}};
    Environment e;
    for (const auto& [applies, read] : readers)
        if (applies) {
            read(variables, e);
            break;
        }
    e.secret = variables.text_or("LUNARIA_SECRET", "");
    if (e.ranks == 1) e.job.clear();
    return e;
}

Environment environment() {
    return read_environment([](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        if (!value) return std::nullopt;
        return value;
    });
}

}  // namespace lunaria::parallel
