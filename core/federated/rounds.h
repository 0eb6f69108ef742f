// The state machine of a federated job: which devices take part in an iteration, until when requests are taken, when an
// iteration has failed. Requests and the time go in, answers come out; there are no clocks, sockets and threads here,
// so that a server, several servers over one store, and a simulation run the same code.
//
// An iteration goes through phases. `starting` ends when start_threshold devices were taken; then, with secure
// aggregation, the phases of keys and shares; `updating` ends when enough of the devices have sent an update; then,
// with secure aggregation, lists are signed and masks are taken off; in `aggregating` the owner computes and calls
// finish(). A phase that does not get enough requests within its window ends the iteration: weights stay, and the next
// iteration begins. An asynchronous job has no windows: devices start and send when they like, and so many updates are
// an iteration.
//
// Nothing is kept of a device that was refused.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/federated/members.h"
#include "core/federated/messages.h"

namespace lunaria::federated {

using messages::Code;

// Milliseconds of a clock; a time before the latest one counts as that.
using Time = int64_t;

std::string_view name_of(Phase phase);

enum class Encryption : uint8_t {
    none,
    pairwise,  // keys and shares in every iteration, dropouts are made good
    stable,    // keys alone; all that have sent keys must send updates
};

struct JobSettings {
    std::string name;
    int64_t iterations = 1;
    // Devices of an iteration, and how long it waits for them after the first one.
    int64_t start_threshold = 1;
    Time start_window = 3000;
    // The share of the devices of the phase before whose updates are enough, and how long it waits.
    double update_ratio = 1.0;
    Time update_window = 3000;
    // The longest time of an iteration from its first device to its last request.
    Time global_window = 3'000'000;
    Encryption encryption = Encryption::none;
    // The share of the devices of the phase before that is enough in the phases of keys and shares, and how long each
    // of the phases of the encryption waits.
    double share_ratio = 1.0;
    Time cipher_window = 3000;
    int64_t reconstruct_threshold = 1;  // devices that can take masks off; also the least number of updates then
    bool signed_lists = false;
    // The share of the devices that ask that is taken, drawn by (seed, iteration, device).
    double selection = 1.0;
    uint64_t seed = 0;
    // A device that asks too early asks again after so long; one that was refused within so long after the iteration's
    // end, at a time of its own, so that millions do not come at once.
    Time poll = 500;
    Time spread = 0;
    bool asynchronous = false;
    int64_t buffer = 1;          // updates, each of another device, that are an iteration of an asynchronous job
    int64_t concurrency = 0;     // devices that train at a time; 0: any number
    int64_t max_staleness = 10;  // iterations since a device started, beyond which its update is refused

    // Throws value_error that names the first setting that is out of its range.
    void check() const;
};

struct Answer {
    Code code = Code::succeed;
    int64_t iteration = 0;    // the current one
    Time next_request = 0;    // when to ask again, where the request was refused or is not ready
    std::string_view reason;  // in words, where it was refused; of static storage
    bool repeated = false;    // the same request was taken before
    bool changed = false;     // there is something new to be stored
    int64_t staleness = 0;    // of an update: iterations since its device started
};

// How an iteration ended.
struct Ended {
    int64_t iteration = 0;  // 0: none has ended
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
    int64_t iteration() const { return state_.iteration; }  // from 1
    Phase phase() const { return state_.phase; }
    // Requests that were taken in a phase of this iteration, and how many it needs.
    int64_t taken(Phase phase) const { return state_.taken[static_cast<size_t>(phase)]; }
    int64_t needed(Phase phase) const;
    // Devices of an asynchronous job that have started and not sent an update.
    int64_t training() const;
    // The time at which tick() changes something; nothing where only requests do.
    std::optional<Time> deadline() const;
    const Members& members() const { return *members_; }
    const Ended& last() const { return last_; }

    // A device wants to take part.
    Answer start(Time now, DeviceId device);
    // A request that belongs to a phase of the encryption.
    Answer cipher(Time now, DeviceId device, int64_t iteration, Phase phase);
    // A device asks for what a phase of the encryption, or `updating`, has brought together: ready when it has ended.
    Answer look(Time now, DeviceId device, int64_t iteration, Phase phase);
    // An update. In an asynchronous job `iteration` is the one in which the device started. digest: of the update, so
    // that it is told from another one.
    Answer update(Time now, DeviceId device, int64_t iteration, uint64_t digest);
    // Asks for the weights after an iteration.
    Answer model(Time now, int64_t iteration);
    // Time has gone by; whether that changed something.
    bool tick(Time now);
    // The owner has what the phase needs and waits for no more requests; false where there are not enough of them.
    bool close(Time now, Phase phase);
    // The owner has aggregated, or could not: the next iteration begins. Throws state_error in another phase.
    void finish(Time now, bool valid, std::string_view reason = {});
    void stop(Time now, std::string_view reason);

    // The state; that of the devices, too, unless they lie in a store.
    std::string bytes(bool with_members = true) const;

  private:
    struct State {
        int64_t iteration = 1;
        Phase phase = Phase::starting;
        std::array<int64_t, kPhases> taken{};
        Time now = 0;                                  // the latest time that was seen
        std::optional<Time> phase_end, iteration_end;  // nothing before the first device
        // Of an asynchronous job: how many devices train, by the iterations in which they started, the current one
        // first.
        std::vector<int64_t> training;
    };
    void begin_iteration();
    void begin_phase(Phase phase);
    void end_phase();
    void fail(std::string_view reason);
    void end_iteration(bool valid, std::string_view reason);
    bool pass(Time now);
    bool pass_asynchronous();
    Phase before(Phase phase) const;
    Phase after(Phase phase) const;
    bool is_full(Phase phase) const;
    std::optional<Mark> find(DeviceId device) const;
    void ends_training(const Mark& mark);
    bool is_selected(DeviceId device) const;
    Answer answer(Code code, std::string_view reason = {}) const;
    Answer early() const;
    Answer late(DeviceId device, std::string_view reason) const;
    Answer take(DeviceId device, Mark mark, Phase phase);
    std::optional<Answer> refused(DeviceId device, int64_t iteration, const std::optional<Mark>& mark,
                                  Phase phase) const;
    Answer start_asynchronous(DeviceId device);
    Answer update_asynchronous(DeviceId device, int64_t iteration, uint64_t digest);
    void read(std::string_view bytes);

    JobSettings settings_;
    std::unique_ptr<Members> members_;
    State state_;
    Ended last_;
};

}  // namespace lunaria::federated
