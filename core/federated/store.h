// The state of federated jobs in one file of SQLite. Whatever a server has accepted is in it, in the transaction after
// which it answers: a server that is killed at any moment goes on where it was, and several servers may share the file.
// Updates are read one by one in the order of clients' names, so that an aggregation takes no more memory for more
// clients, and the order in which they arrived changes nothing.
#pragma once

#include <functional>
#include <vector>

#include "core/federated/database.h"
#include "core/federated/rounds.h"

namespace lunaria::federated {

// The row of a job.
struct JobRow {
    int64_t sequence =
        0;          // the number of changes: another server has changed the job where it differs from what one knows
    Time time = 0;  // of the job's clock at the last change; it stands still while no server runs
    bool is_enabled = true;
    std::string instance;  // changes with every newInstance
    std::string rounds;    // Rounds::bytes()
    int64_t plan_iteration = 0;
    std::string plan;  // for clients, of plan_iteration
    int64_t model_version = -1;
    std::string strategy;   // what the strategy keeps between iterations
    std::string overrides;  // hyper-parameters of the last newInstance, as JSON
};

struct UpdateRow {
    std::string client;
    int64_t samples = 0, staleness = 0;
    Time duration = 0;  // since the client started
};

// An iteration that ended.
struct HistoryRow {
    int64_t number = 0;  // of the row, from 1
    int64_t iteration = 0;
    bool is_valid = false;
    std::string reason;
    int64_t clients = 0;
    Time began = 0, ended = 0;
    std::string metrics;  // JSON
};

// What clients say in the phases of secure aggregation: keys, shares, signatures, and shares that were opened.
struct PartRow {
    std::string from, to, content;
};

class Store {
  public:
    // Throws a file_error where the file is no store of this version.
    explicit Store(const std::string& path, int64_t most_bytes = 0);
    Database& database() { return database_; }
    const std::string& path() const { return database_.path(); }

    // The number of a job by its name; a new one where there is none.
    int64_t job(std::string_view name);
    std::vector<std::pair<int64_t, std::string>> jobs();
    JobRow row(int64_t job);
    int64_t sequence(int64_t job);
    void put(int64_t job, const JobRow& row);

    // Names of devices that take part. False: another name has the same number.
    struct Device {
        std::string name, key;
        int64_t samples = 0;
        Time started = 0;
    };
    bool put_device(int64_t job, DeviceId device, const Device& values);
    std::optional<Device> device(int64_t job, DeviceId device);

    // `content`: the message UpdateModel, which has passed its checks.
    void put_update(int64_t job, int64_t iteration, const UpdateRow& update, std::string_view content);
    // By client.
    std::vector<UpdateRow> updates(int64_t job, int64_t iteration);
    std::string update(int64_t job, int64_t iteration, std::string_view client);
    int64_t bytes_of_updates(int64_t job, int64_t iteration);

    void put_part(int64_t job, int64_t iteration, Phase phase, const PartRow& part);
    // Those of a phase by sender and receiver; `to`: only those for one client.
    std::vector<PartRow> parts(int64_t job, int64_t iteration, Phase phase, std::optional<std::string_view> to = {});
    // Forgets updates and parts of iterations before one.
    void forget_before(int64_t job, int64_t iteration);

    void put_model(int64_t job, int64_t version, std::string_view content);
    std::string model(int64_t job, int64_t version);

    // False where the signature was seen within the time for which they are kept.
    bool put_signature(int64_t job, std::string_view signature, Time until);
    void forget_signatures(int64_t job, Time before);

    void put_metric(int64_t job, int64_t iteration, std::string_view client, std::string_view name, double value);
    // Means over clients, as JSON.
    std::string metrics(int64_t job, int64_t iteration);

    void put_history(int64_t job, const HistoryRow& row);
    std::vector<HistoryRow> history(int64_t job, int64_t after, int64_t most);

    // Which server computes for a job; empty: none.
    std::string owner(int64_t job);
    void put_owner(int64_t job, std::string_view server);

  private:
    Database database_;
};

// The marks of a job's devices in the store.
std::unique_ptr<Members> members_in(Store& store, int64_t job);

// The number of a device: 64 bits of a hash of its name.
DeviceId device_of(std::string_view name);

}  // namespace lunaria::federated
