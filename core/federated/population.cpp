#include "core/federated/population.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/random/random.h"

namespace lunaria::federated {

namespace {

constexpr Time kNever = std::numeric_limits<Time>::max();
constexpr int kMostAttempts = 1000;

// Marks that stay when the machine that uses them is made anew, as those of a store do.
class Kept : public Members {
  public:
    explicit Kept(std::shared_ptr<Members> marks) : marks_(std::move(marks)) {}
    std::optional<Mark> find(DeviceId device) const override { return marks_->find(device); }
    void put(DeviceId device, const Mark& mark) override { marks_->put(device, mark); }
    void forget_before(int64_t iteration) override { marks_->forget_before(iteration); }
    int64_t size() const override { return marks_->size(); }
    std::vector<std::pair<DeviceId, Mark>> all() const override { return marks_->all(); }

  private:
    std::shared_ptr<Members> marks_;  // of this and of the machine that takes its place
};

// The finaliser of SplitMix64: a bijection of 64 bits in which each bit depends on all.
uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t digest_of(uint32_t device, int64_t iteration) {
    return mixed(static_cast<uint64_t>(device) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(iteration));
}

void need(bool holds, const char* setting, const char* what) {
    if (!holds) throw value_error("population", str(setting, " must be ", what));
}

bool is_share(double x) { return x >= 0 && x <= 1; }

}  // namespace

void PopulationSettings::check() const {
    need(devices >= 1 && devices <= 1'000'000'000, "devices", "from 1 to 1,000,000,000");
    need(arrival >= 1 && arrival <= 600'000, "arrival", "from 1 to 600000 milliseconds");
    need(training >= 1 && training <= 600'000, "training", "from 1 to 600000 milliseconds");
    need(retry >= 1 && retry <= 600'000, "retry", "from 1 to 600000 milliseconds");
    need(availability > 0 && availability <= 1, "availability", "above 0 and at most 1");
    need(training_spread >= 0 && training_spread <= 4, "training_spread", "from 0 to 4");
    need(straggler_factor >= 1 && straggler_factor <= 1000, "straggler_factor", "from 1 to 1000");
    need(is_share(stragglers), "stragglers", "from 0 to 1");
    need(is_share(dropout), "dropout", "from 0 to 1");
    need(lost >= 0 && lost < 1, "lost", "from 0 on and below 1");
    need(is_share(duplicated), "duplicated", "from 0 to 1");
    need(is_share(replayed), "replayed", "from 0 to 1");
    need(is_share(restart), "restart", "from 0 to 1");
}

Calendar::Calendar(int64_t devices)
    : next_(static_cast<size_t>(devices), kAbsent),
      first_(kSlots, kEnd),
      marks_(kSlots / 64),
      groups_(kSlots / 64 / 64) {}

void Calendar::add(Time time, uint32_t device) {
    const auto slot = static_cast<size_t>(std::clamp(time, now_, now_ + kSlots - 1) % kSlots);
    next_[device] = first_[slot];
    first_[slot] = device;
    marks_[slot / 64] |= uint64_t{1} << slot % 64;
    groups_[slot / 64 / 64] |= uint64_t{1} << slot / 64 % 64;
    ++size_;
}

// The first slot that is not empty from `from` on and below `to`; -1: none.
int64_t Calendar::first_slot(int64_t from, int64_t to) const {
    const auto begin = static_cast<size_t>(from), end = static_cast<size_t>(to);
    if (begin >= end) return -1;
    size_t word = begin / 64;
    uint64_t bits = marks_[word] & (~uint64_t{0} << begin % 64);
    if (!bits) {
        // From the next word on, by the bits of the groups.
        size_t group = (word + 1) / 64;
        if (group >= groups_.size()) return -1;
        uint64_t words = groups_[group] & (~uint64_t{0} << (word + 1) % 64);
        while (!words && ++group < groups_.size()) words = groups_[group];
        if (!words) return -1;
        word = group * 64 + static_cast<size_t>(std::countr_zero(words));
        bits = marks_[word];
    }
    const size_t slot = word * 64 + static_cast<size_t>(std::countr_zero(bits));
    return slot < end ? static_cast<int64_t>(slot) : -1;
}

Time Calendar::next() const {
    if (size_ == 0) return -1;
    const int64_t here = now_ % kSlots;
    const int64_t slot = first_slot(here, kSlots);
    if (slot >= 0) return now_ + slot - here;
    return now_ + first_slot(0, here) + kSlots - here;
}

bool Calendar::take(Time time, uint32_t& device) {
    const auto slot = static_cast<size_t>(time % kSlots);
    if (first_[slot] == kEnd) return false;
    device = first_[slot];
    first_[slot] = next_[device];
    next_[device] = kAbsent;
    --size_;
    if (first_[slot] == kEnd) {
        marks_[slot / 64] &= ~(uint64_t{1} << slot % 64);
        if (!marks_[slot / 64]) groups_[slot / 64 / 64] &= ~(uint64_t{1} << slot / 64 % 64);
    }
    return true;
}

Population::Population(PopulationSettings settings, JobSettings job)
    : settings_((settings.check(), std::move(settings))),
      job_(std::move(job)),
      calendar_(settings_.devices),
      states_(static_cast<size_t>(settings_.devices), State::idle),
      started_(static_cast<size_t>(settings_.devices)) {
    if (job_.encryption != Encryption::none)
        throw value_error("population", "a population has no keys: the job must not have secure aggregation");
    make_members_ = [marks = std::shared_ptr<Members>(members_in_memory())] { return std::make_unique<Kept>(marks); };
    rounds_ = std::make_unique<Rounds>(job_, make_members_());
}

std::array<uint32_t, 4> Population::draw(Purpose purpose, int64_t iteration, uint32_t device, uint32_t part) const {
    // 64 bits of the counter are the device and the part, 64 are the purpose and the iteration.
    return philox(settings_.seed, device | uint64_t{part} << 32,
                  static_cast<uint64_t>(purpose) << 56 | static_cast<uint64_t>(iteration));
}

void Population::set_times(std::vector<Time> times) {
    need(static_cast<int64_t>(times.size()) == settings_.devices, "times", "as many as there are devices");
    times_ = std::move(times);
}

void Population::set_away(std::vector<uint8_t> away) {
    need(away.empty() || static_cast<int64_t>(away.size()) == settings_.devices, "away",
         "as long as there are devices");
    away_ = std::move(away);
}

Time Population::training_time(uint32_t device) const {
    if (!times_.empty()) return std::max<Time>(1, times_[device]);
    const auto words = draw(Purpose::speed, 0, device);
    // Box and Muller's method.
    const double radius = std::sqrt(-2.0 * std::log((words[0] + 1.0) * 0x1p-32));
    const double normal = radius * std::cos(2.0 * std::numbers::pi * words[1] * 0x1p-32);
    double time = static_cast<double>(settings_.training) * std::exp(settings_.training_spread * normal);
    if (happens(settings_.stragglers, words[2])) time *= settings_.straggler_factor;
    return std::max<Time>(1, std::llround(std::min(time, 1e9)));
}

// The devices that ask in this iteration in the order of their times, by counting how many there are in each
// millisecond. Within one they are in the order of their numbers from a drawn one on.
void Population::gather(int64_t iteration, uint32_t attempt) {
    const auto count = static_cast<uint32_t>(settings_.devices);
    const uint32_t from =
        static_cast<uint32_t>((uint64_t{draw(Purpose::iteration, iteration, 0, attempt)[0]} * count) >> 32);
    const auto range = static_cast<uint64_t>(settings_.arrival);
    // The millisecond in which a device asks; `range` where it does not.
    const auto slot_of = [&](uint32_t device) {
        if (calendar_.has(device) || (!away_.empty() && away_[device])) return range;
        const auto words = draw(Purpose::asking, iteration, device, attempt);
        return happens(settings_.availability, words[0]) ? words[1] * range >> 32 : range;
    };
    slots_.assign(range + 1, 0);
    for (uint32_t device = 0; device < count; ++device) {
        if (device % 65536 == 0) poll_interrupt();
        const uint64_t slot = slot_of(device);
        if (slot < range) ++slots_[slot + 1];
    }
    for (size_t i = 1; i <= range; ++i) slots_[i] += slots_[i - 1];
    order_.resize(slots_[range]);
    for (uint32_t i = 0; i < count; ++i) {
        if (i % 65536 == 0) poll_interrupt();
        const uint32_t device = i < count - from ? from + i : i - (count - from);
        const uint64_t slot = slot_of(device);
        if (slot < range) order_[slots_[slot]++] = device;
    }
    // Each place is now where the next millisecond begins.
    asking_ = {now_, 0, 0};
}

Time Population::next_asking() {
    if (asking_.place == order_.size()) return kNever;
    while (slots_[asking_.slot] <= asking_.place) ++asking_.slot;
    return asking_.began + static_cast<Time>(asking_.slot);
}

void Population::restart(IterationReport& report) {
    const std::string bytes = rounds_->bytes(false);
    rounds_ = std::make_unique<Rounds>(job_, bytes, make_members_());
    ++report.restarts;
}

void Population::later(Time time, uint32_t device, State state) {
    states_[device] = state;
    calendar_.add(std::max(time, now_ + 1), device);
}

void Population::ask(uint32_t device, IterationReport& report) {
    const Answer answer = rounds_->start(now_, device);
    ++report.asked;
    if (answer.code != Code::succeed) {
        ++report.refused;
        return;
    }
    if (answer.repeated) {
        ++report.repeated;
        return;
    }
    ++report.started;
    if (settings_.dropout > 0 && happens(settings_.dropout, draw(Purpose::asking, iteration_, device, 1u << 31)[2]))
        return;
    started_[device] = static_cast<uint32_t>(answer.iteration);
    later(now_ + training_time(device), device, State::training);
}

void Population::send(uint32_t device, int64_t iteration, IterationReport& report) {
    const Answer answer = rounds_->update(now_, device, iteration, digest_of(device, iteration));
    if (answer.code == Code::succeed) {
        if (answer.repeated) {
            ++report.repeated;
        } else {
            ++report.updates;
            report.digest ^= digest_of(device, iteration);
            if (settings_.lists) report.taken.push_back({device, iteration});
        }
    } else if (answer.code == Code::not_ready) {
        later(answer.next_request, device, State::training);
    } else {
        ++report.late;
        // It may still take part in the iteration that has begun meanwhile.
        if (rounds_->phase() == Phase::starting) later(now_ + 1, device, State::asking);
    }
}

// The message of a device arrives, or does not.
void Population::handle(uint32_t device, State state, IterationReport& report) {
    if ((messages_ & 4095) == 0) poll_interrupt();
    const bool faults =
        settings_.lost > 0 || settings_.duplicated > 0 || settings_.replayed > 0 || settings_.restart > 0;
    std::array<uint32_t, 4> words{};
    if (faults) words = draw(Purpose::message, iteration_, device, messages_);
    ++messages_;
    if (faults && happens(settings_.restart, words[3])) restart(report);
    if (faults && happens(settings_.lost, words[0])) {
        ++report.lost;
        return later(now_ + settings_.retry, device, state);
    }
    int64_t iteration = 0;
    const bool twice = faults && happens(settings_.duplicated, words[1]);
    if (state == State::asking) {
        ask(device, report);
    } else {
        if (faults && happens(settings_.replayed, words[2]) && iteration_ > 1) {
            const Answer answer = rounds_->update(now_, device, iteration_ - 1, digest_of(device, iteration_ - 1));
            if (answer.code != Code::succeed) ++report.replays_refused;
        }
        // The iteration that is nearest to the current one among those with these 32 bits.
        const int64_t current = rounds_->iteration();
        iteration = current - static_cast<int64_t>(static_cast<uint32_t>(current) - started_[device]);
        send(device, iteration, report);
        settle();
    }
    if (!twice) return;
    // The device has its answer: what it does next does not depend on the answer to a copy.
    const Answer copy = state == State::asking ? rounds_->start(now_, device)
                                               : rounds_->update(now_, device, iteration, digest_of(device, iteration));
    if (copy.code == Code::succeed && copy.repeated) ++report.repeated;
    settle();
}

// What the owner of the job does when all updates are there.
void Population::settle() {
    if (rounds_->phase() == Phase::aggregating) rounds_->finish(now_, true);
}

bool Population::advance(IterationReport& report) {
    const Time asking = next_asking(), due = calendar_.next();
    const Time next = std::min(asking, due < 0 ? kNever : due);
    const std::optional<Time> deadline = rounds_->deadline();
    if (deadline && *deadline <= next) {
        now_ = std::max(now_, *deadline);
        calendar_.go_to(now_);
        rounds_->tick(now_);
        settle();
        return true;
    }
    if (next == kNever) return false;
    now_ = std::max(now_, next);
    calendar_.go_to(now_);
    uint32_t device = 0;
    if (due >= 0 && due <= asking) {
        while (!has_ended() && calendar_.take(due, device)) {
            const State state = states_[device];
            states_[device] = State::idle;
            handle(device, state, report);
        }
    } else {
        while (!has_ended() && asking_.place < slots_[asking_.slot])
            handle(order_[asking_.place++], State::asking, report);
    }
    return true;
}

IterationReport Population::iteration() {
    IterationReport report;
    iteration_ = rounds_->iteration();
    messages_ = 0;
    report.iteration = iteration_;
    report.began = now_;
    if (finished()) throw value_error("population", "all iterations are over");
    uint32_t attempt = 0;
    gather(iteration_, attempt);
    while (!has_ended()) {
        if (advance(report)) continue;
        // No device asks, and nothing runs out: the devices come again.
        if (++attempt == kMostAttempts)
            throw value_error("population",
                              str("no device was taken in ", kMostAttempts, " attempts of iteration ", iteration_))
                .hint("a larger availability, or more devices");
        now_ += settings_.arrival;
        calendar_.go_to(now_);
        gather(iteration_, attempt);
    }
    report.valid = rounds_->last().valid;
    report.reason = rounds_->last().reason;
    report.ended = now_;
    return report;
}

}  // namespace lunaria::federated
