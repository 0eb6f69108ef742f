// A population of devices at the level of messages: which ask when, which are taken, whose updates come, are late,
// lost, repeated or old. Each request goes through Rounds, as on a server; no weights travel. Devices keep nothing from
// iteration to iteration.
//
// Whatever is drawn is a function of (seed, purpose, iteration, device), so that a run repeats to the bit. Requests are
// handled in the order of their times, those of the same millisecond in an order that the seed fixes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/federated/rounds.h"

namespace lunaria::federated {

struct PopulationSettings {
    int64_t devices = 1000;
    uint64_t seed = 0;
    // Milliseconds, from the begin of an iteration, within which devices ask to take part, each at a time of its own.
    Time arrival = 1000;
    double availability = 1.0;  // share of the devices that ask in an iteration
    // Milliseconds of a training of the median device; times of devices have a log-normal distribution.
    Time training = 1000;
    double training_spread = 0.5;  // the deviation of the logarithm
    double stragglers = 0.0;       // share of the devices that take straggler_factor times as long
    double straggler_factor = 10.0;
    double dropout = 0.0;  // share of the devices taken that never send an update
    // Of every message, the chance that it is lost and sent again after `retry`, that it arrives twice, and that an
    // update is preceded by one of the iteration before.
    double lost = 0.0, duplicated = 0.0, replayed = 0.0;
    Time retry = 500;
    // The chance that, before a request is handled, the server is stopped and goes on from what it has stored.
    double restart = 0.0;
    // Whether reports list the updates that were taken.
    bool lists = false;

    // Throws value_error that names the first setting that is out of its range.
    void check() const;
};

// An update that was taken: its device, and the iteration in which it started.
struct Taken {
    uint32_t device = 0;
    int64_t started = 0;
};

// What happened in one iteration.
struct IterationReport {
    int64_t iteration = 0;
    bool valid = false;
    std::string reason;  // of one that is not valid
    Time began = 0, ended = 0;
    // Requests to take part; of them those that were taken and refused. Updates that were taken, and those that were
    // refused since their iteration had ended.
    int64_t asked = 0, started = 0, refused = 0, updates = 0, late = 0;
    int64_t lost = 0, repeated = 0, replays_refused = 0, restarts = 0;
    // A hash of the devices whose updates were taken; their order does not matter.
    uint64_t digest = 0;
    std::vector<Taken> taken;  // with PopulationSettings::lists, in the order in which they came
};

// Which devices have something to do in which millisecond. A device stands in it at most once. 4 bytes for each.
class Calendar {
  public:
    explicit Calendar(int64_t devices);
    // Times from now() on; those beyond the longest delay are put at its end.
    void add(Time time, uint32_t device);
    // The next time at which something is to be done; -1: never.
    Time next() const;
    // Takes out the last device that was added for a time; false: there is none.
    bool take(Time time, uint32_t& device);
    // The calendar shows times from here on; nothing is left before.
    void go_to(Time now) { now_ = now; }
    bool has(uint32_t device) const { return next_[device] != kAbsent; }
    int64_t size() const { return size_; }

  private:
    static constexpr int64_t kSlots = 1 << 20;  // milliseconds, a quarter of an hour
    static constexpr uint32_t kEnd = 0xffffffffu, kAbsent = 0xfffffffeu;
    std::vector<uint32_t> next_, first_;
    std::vector<uint64_t> marks_, groups_;  // a bit for each slot that is not empty, and for each word of these
    Time now_ = 0;
    int64_t size_ = 0;

    int64_t first_slot(int64_t from, int64_t to) const;
};

class Population {
  public:
    Population(PopulationSettings settings, JobSettings job);
    Population(const Population&) = delete;
    Population& operator=(const Population&) = delete;

    // From now on: milliseconds of a training of each device, in the place of what settings say.
    void set_times(std::vector<Time> times);
    // From now on: the devices that do not ask, whatever is drawn; a byte for each device, or none.
    void set_away(std::vector<uint8_t> away);
    // Goes on until an iteration has ended.
    IterationReport iteration();
    bool finished() const { return rounds_->phase() == Phase::finished; }
    const Rounds& rounds() const { return *rounds_; }
    Time now() const { return now_; }

  private:
    enum class Purpose : uint32_t { asking, speed, message, iteration };
    enum class State : uint8_t { idle, asking, training };

    std::array<uint32_t, 4> draw(Purpose purpose, int64_t iteration, uint32_t device, uint32_t part = 0) const;
    static bool happens(double chance, uint32_t word) { return word < chance * 0x1p32; }
    Time training_time(uint32_t device) const;
    void gather(int64_t iteration, uint32_t attempt);
    Time next_asking();
    bool has_ended() const { return rounds_->iteration() != iteration_ || finished(); }
    // Goes on to the next time at which something happens; false: there is none.
    bool advance(IterationReport& report);
    void handle(uint32_t device, State state, IterationReport& report);
    void ask(uint32_t device, IterationReport& report);
    void send(uint32_t device, int64_t iteration, IterationReport& report);
    void restart(IterationReport& report);
    void settle();
    void later(Time time, uint32_t device, State state);

    // The devices that ask in an iteration: when it began, the next of them, and the millisecond in which that one
    // asks.
    struct Asking {
        Time began = 0;
        size_t place = 0, slot = 0;
    };
    PopulationSettings settings_;
    JobSettings job_;
    std::function<std::unique_ptr<Members>()> make_members_;  // the same marks at each call
    std::unique_ptr<Rounds> rounds_;
    Calendar calendar_;
    std::vector<State> states_;
    std::vector<Time> times_;
    std::vector<uint8_t> away_;
    std::vector<uint32_t> started_;  // the iteration in which a device that trains has started, modulo 2^32
    std::vector<uint32_t> order_,
        slots_;  // the devices that ask, by their times; where the devices of each millisecond end
    Asking asking_;
    int64_t iteration_ = 0;
    uint32_t messages_ = 0;  // handled in this iteration
    Time now_ = 0;
};

}  // namespace lunaria::federated
