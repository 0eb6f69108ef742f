// The state machine of a federated job: which devices take part in an iteration, until when requests are taken, when an
// iteration has failed. Requests and the time go in, answers come out; there are no clocks, sockets and threads here,
// so that a server, several servers over one store, and a simulation run the same code.
//
// An iteration goes through phases. `starting` ends when start_threshold devices were taken; then, with secure
// aggregation, the phases of keys and shares; `updating` ends when enough of the devices taken have sent an update;
// then, with secure aggregation, lists are signed and masks are taken off; in `aggregating` the owner computes, and
// calls finish(). A phase that does not get enough requests within its window ends the iteration: weights stay, and the
// next iteration begins.
//
// What is kept of a device is a mark of 24 bytes, and of a device that was refused nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::federated {

// Milliseconds of a clock that never goes back.
using Time = int64_t;
// A device: 64 bits of a hash of its name, of which the store keeps the name as well.
using DeviceId = uint64_t;

enum class Code : int { succeed = 200, not_ready = 201, out_of_time = 300, request_error = 400, system_error = 500 };

enum class Phase : uint8_t {
    starting,
    exchanging_keys,
    sharing_secrets,
    updating,
    signing_lists,
    reconstructing,
    aggregating,
    finished,  // all iterations are over, or the job was stopped
};
std::string_view name_of(Phase phase);

enum class Cipher : uint8_t {
    none,
    pairwise,  // keys and shares in every iteration, dropouts are made good
    stable,    // keys alone; all that were taken must send updates
};

struct JobSettings {
    std::string name;
    int64_t iterations = 1;
    // Devices of an iteration, and how long it waits for them after the first one.
    int64_t start_threshold = 1;
    Time start_window = 3000;
    // The share of them whose updates are enough, and how long it waits.
    double update_ratio = 1.0;
    Time update_window = 3000;
    // The longest time of an iteration from its first request to the end of `reconstructing`.
    Time global_window = 3'000'000;
    Cipher cipher = Cipher::none;
    double share_ratio = 1.0;  // of the devices of the phase before, in the phases of keys and shares
    Time cipher_window = 3000;
    int64_t reconstruct_threshold = 1;
    bool signed_lists = false;
    // The share of the devices that ask that are taken, drawn by (seed, iteration, device).
    double selection = 1.0;
    uint64_t seed = 0;
    // Refused devices come back within so many milliseconds after the time when the next iteration can begin, each at a
    // time of its own.
    Time spread = 0;
    // Asynchronous aggregation: each device starts and ends when it likes, and every `buffer` updates are an iteration.
    bool asynchronous = false;
    int64_t buffer = 1;
    int64_t concurrency = 0;     // devices that train at a time; 0: any number
    int64_t max_staleness = 10;  // iterations since a device started, beyond which its update is refused

    // Throws value_error that names the first setting that is out of its range.
    void check() const;
};

// What is kept of a device that takes part.
struct Mark {
    uint64_t digest = 0;    // of the update that was taken
    int64_t iteration = 0;  // in which it started
    uint32_t done = 0;      // a bit for each phase in which its request was taken
    bool has(Phase phase) const { return done >> static_cast<int>(phase) & 1; }
    bool operator==(const Mark&) const = default;
};

// The marks of devices: of a table in memory, or of a store that several servers share.
class Members {
  public:
    virtual ~Members() = default;
    virtual std::optional<Mark> find(DeviceId device) const = 0;
    virtual void put(DeviceId device, const Mark& mark) = 0;
    // Forgets the devices that started before an iteration.
    virtual void forget_before(int64_t iteration) = 0;
    virtual int64_t size() const = 0;
    // All devices with their marks, by id.
    virtual std::vector<std::pair<DeviceId, Mark>> all() const = 0;
};
std::unique_ptr<Members> members_in_memory();

struct Answer {
    Code code = Code::succeed;
    int64_t iteration = 0;    // the current one
    Time next_request = 0;    // when to ask again, where the request was refused or not ready
    std::string_view reason;  // in words, where it was refused; of static storage
    bool repeated = false;    // the same request was taken before
    bool changed = false;     // there is something new to be stored
    int64_t staleness = 0;    // of an update: iterations since its device started
};

// How an iteration ended.
struct Ended {
    int64_t iteration = 0;
    bool valid = false;
    std::string reason;  // of one that is not valid
    Time at = 0;
};

class Rounds {
  public:
    explicit Rounds(JobSettings settings, std::unique_ptr<Members> members = members_in_memory());
    // Goes on where bytes() was taken. Throws file_error for bytes that are damaged or belong to another job.
    Rounds(JobSettings settings, std::string_view bytes, std::unique_ptr<Members> members = members_in_memory());

    const JobSettings& settings() const { return settings_; }
    int64_t iteration() const { return head_.iteration; }  // from 1
    Phase phase() const { return head_.phase; }
    int64_t taken(Phase phase) const { return head_.taken[static_cast<int>(phase)]; }
    // How many requests the phase needs.
    int64_t needed(Phase phase) const;
    // The time at which tick() would change something; nothing where only requests do.
    std::optional<Time> deadline() const;
    const Members& members() const { return *members_; }
    // The last iteration that ended.
    const Ended& last() const { return last_; }

    // A device wants to take part.
    Answer start(Time now, DeviceId device);
    // A request of a phase of secure aggregation. `digest`: of what it brings; the same request may be repeated.
    Answer cipher(Time now, DeviceId device, int64_t iteration, Phase phase, uint64_t digest = 0);
    // A device asks for what a phase has brought together, which is ready when the phase has ended.
    Answer look(Time now, DeviceId device, int64_t iteration, Phase phase);
    // An update. In an asynchronous job `iteration` is the one in which the device started.
    Answer update(Time now, DeviceId device, int64_t iteration, uint64_t digest);
    // A device asks for the weights after an iteration.
    Answer model(Time now, int64_t iteration);
    // Time goes by.
    bool tick(Time now);
    // The owner has what a phase needs, and does not wait for more requests.
    bool close(Time now, Phase phase);
    // The owner has aggregated, or could not: the next iteration begins.
    void finish(Time now, bool valid, std::string_view reason = {});
    void stop(Time now, std::string_view reason);

    // All of the state without the marks; those of a table in memory with `members`.
    std::string bytes(bool members = true) const;

  private:
    static constexpr int kPhases = static_cast<int>(Phase::finished) + 1;
    struct Head {
        int64_t iteration = 1;
        Phase phase = Phase::starting;
        int64_t taken[kPhases] = {};
        Time phase_end = -1, iteration_end = -1;  // -1: none yet
        int64_t training = 0;                     // of an asynchronous job: devices that have started and sent nothing
    };
    JobSettings settings_;
    std::unique_ptr<Members> members_;
    Head head_;
    Ended last_;
};

}  // namespace lunaria::federated
