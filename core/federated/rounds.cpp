#include "core/federated/rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/federated/draws.h"
#include "core/io/proto_fields.h"

namespace lunaria::federated {

namespace {

constexpr int64_t kMostIterations = INT32_MAX;
constexpr Time kLongest = INT64_C(1) << 50;  // of a window, in milliseconds: sums of times do not overflow
constexpr int64_t kMostDevices = INT64_C(1) << 40;
constexpr int64_t kMostStaleness = 100'000;

constexpr std::string_view kOver = "the job is over";
constexpr std::string_view kNotTaken = "the device was not taken in this iteration";
constexpr std::string_view kFailed = "the iteration failed, and the weights are those before it";

void check_range(std::string_view name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
        throw value_error("federated job", str(name, " must be ", least, " to ", most, ", got ", value));
}
void check_share(std::string_view name, double value) {
    if (!(value > 0 && value <= 1))
        throw value_error("federated job", str(name, " must be above 0 and at most 1, got ", value));
}

// A share of a number of devices: at least one, rounded up, where a product that lies on a whole number stays there.
int64_t share_of(double share, int64_t count) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(count) - 1e-9)));
}

size_t index_of(Phase phase) { return static_cast<size_t>(phase); }

bool is_of_encryption(Phase phase) {
    return phase == Phase::exchanging_keys || phase == Phase::sharing_secrets || phase == Phase::signing_lists ||
           phase == Phase::reconstructing;
}

}  // namespace

std::string_view name_of(Phase phase) {
    constexpr std::string_view kNames[kPhases] = {"starting",      "exchanging keys", "sharing secrets", "updating",
                                                  "signing lists", "reconstructing",  "aggregating",     "finished"};
    return kNames[index_of(phase)];
}

void JobSettings::check() const {
    check_range("iterations", iterations, 1, kMostIterations);
    check_range("start_threshold", start_threshold, 1, kMostDevices);
    check_range("start_window", start_window, 1, kLongest);
    check_range("update_window", update_window, 1, kLongest);
    check_range("global_window", global_window, 1, kLongest);
    check_range("cipher_window", cipher_window, 1, kLongest);
    check_share("update_ratio", update_ratio);
    check_share("share_ratio", share_ratio);
    check_share("selection", selection);
    check_range("reconstruct_threshold", reconstruct_threshold, 1, kMostDevices);
    check_range("poll", poll, 1, kLongest);
    check_range("spread", spread, 0, kLongest);
    if (encryption == Encryption::pairwise && reconstruct_threshold > start_threshold)
        throw value_error("federated job", str("reconstruct_threshold is ", reconstruct_threshold, ", and only ",
                                               start_threshold, " devices take part (start_threshold)"));
    if (!asynchronous) return;
    if (encryption != Encryption::none)
        throw value_error("federated job",
                          "an asynchronous job cannot be encrypted: its updates do not belong together");
    check_range("buffer", buffer, 1, kMostDevices);
    check_range("concurrency", concurrency, 0, kMostDevices);
    check_range("max_staleness", max_staleness, 0, kMostStaleness);
    if (concurrency > 0 && buffer > concurrency)
        throw value_error("federated job", str("buffer is ", buffer, ", and only ", concurrency,
                                               " devices train at a time (concurrency)"));
}

Rounds::Rounds(JobSettings settings, std::unique_ptr<Members> members)
    : settings_(std::move(settings)), members_(std::move(members)) {
    settings_.check();
    if (settings_.asynchronous) state_.training.resize(static_cast<size_t>(settings_.max_staleness) + 1);
    begin_iteration();
}

Rounds::Rounds(JobSettings settings, std::string_view bytes, std::unique_ptr<Members> members)
    : settings_(std::move(settings)), members_(std::move(members)) {
    settings_.check();
    read(bytes);
}

// The phase whose devices may take part in this one.
Phase Rounds::before(Phase phase) const {
    switch (phase) {
        case Phase::exchanging_keys:
            return Phase::starting;
        case Phase::sharing_secrets:
            return Phase::exchanging_keys;
        case Phase::updating:
            if (settings_.encryption == Encryption::pairwise) return Phase::sharing_secrets;
            return settings_.encryption == Encryption::stable ? Phase::exchanging_keys : Phase::starting;
        case Phase::signing_lists:
            return Phase::updating;
        default:
            return settings_.signed_lists ? Phase::signing_lists : Phase::updating;
    }
}

Phase Rounds::after(Phase phase) const {
    const Encryption encryption = settings_.encryption;
    switch (phase) {
        case Phase::starting:
            return encryption == Encryption::none ? Phase::updating : Phase::exchanging_keys;
        case Phase::exchanging_keys:
            return encryption == Encryption::stable ? Phase::updating : Phase::sharing_secrets;
        case Phase::sharing_secrets:
            return Phase::updating;
        case Phase::updating:
            if (encryption != Encryption::pairwise) return Phase::aggregating;
            return settings_.signed_lists ? Phase::signing_lists : Phase::reconstructing;
        case Phase::signing_lists:
            return Phase::reconstructing;
        default:
            return Phase::aggregating;
    }
}

int64_t Rounds::needed(Phase phase) const {
    switch (phase) {
        case Phase::starting:
            return settings_.start_threshold;
        case Phase::exchanging_keys:
        case Phase::sharing_secrets:
            return share_of(settings_.share_ratio, taken(before(phase)));
        case Phase::updating:
            if (settings_.asynchronous) return settings_.buffer;
            if (settings_.encryption == Encryption::stable) return std::max<int64_t>(1, taken(before(phase)));
            if (settings_.encryption == Encryption::pairwise)
                return std::max(settings_.reconstruct_threshold,
                                share_of(settings_.update_ratio, taken(before(phase))));
            return share_of(settings_.update_ratio, taken(before(phase)));
        case Phase::signing_lists:
        case Phase::reconstructing:
            return settings_.reconstruct_threshold;
        default:
            return 0;
    }
}

// Whether the phase waits for no more requests. The phases of keys and shares, and those that take masks off, wait for
// all that may take part: each that is missing costs work, or an iteration, later.
bool Rounds::is_full(Phase phase) const {
    if (phase == Phase::starting || phase == Phase::updating) return taken(phase) >= needed(phase);
    return is_of_encryption(phase) && taken(phase) == taken(before(phase));
}

int64_t Rounds::training() const {
    int64_t sum = 0;
    for (const int64_t count : state_.training) sum += count;
    return sum;
}

std::optional<Time> Rounds::deadline() const {
    if (state_.phase == Phase::aggregating || state_.phase == Phase::finished) return std::nullopt;
    if (!state_.phase_end) return state_.iteration_end;
    return state_.iteration_end ? std::min(*state_.phase_end, *state_.iteration_end) : *state_.phase_end;
}

void Rounds::begin_iteration() {
    state_.phase = settings_.asynchronous ? Phase::updating : Phase::starting;
    state_.taken = {};
    state_.phase_end = state_.iteration_end = std::nullopt;
    if (state_.iteration > settings_.iterations) {
        state_.phase = Phase::finished;
        state_.iteration = settings_.iterations;
    }
}

void Rounds::begin_phase(Phase phase) {
    state_.phase = phase;
    state_.phase_end = std::nullopt;
    if (phase != Phase::aggregating)
        state_.phase_end = state_.now + (phase == Phase::updating ? settings_.update_window : settings_.cipher_window);
}

void Rounds::end_phase() { begin_phase(after(state_.phase)); }

void Rounds::end_iteration(bool valid, std::string_view reason) {
    last_ = {state_.iteration, valid, std::string(reason), state_.now};
    ++state_.iteration;
    begin_iteration();
    if (!settings_.asynchronous) {
        if (state_.phase != Phase::finished) members_->forget_before(state_.iteration);
        return;
    }
    // Each count is of one iteration more ago; those that are now too stale are given up.
    std::ranges::rotate(state_.training, state_.training.end() - 1);
    state_.training.front() = 0;
    members_->forget_before(std::max<int64_t>(1, state_.iteration - settings_.max_staleness));
    if (training() > 0) state_.iteration_end = state_.now + settings_.global_window;
}

void Rounds::fail(std::string_view reason) { end_iteration(false, reason); }

// Whether the time changes something.
bool Rounds::pass(Time now) {
    state_.now = std::max(state_.now, now);
    const std::optional<Time> end = deadline();
    if (!end || state_.now < *end) return false;
    if (settings_.asynchronous) return pass_asynchronous();
    if (state_.phase_end && *end == *state_.phase_end) {
        const Phase phase = state_.phase;
        if (taken(phase) < needed(phase)) {
            fail(phase == Phase::starting   ? "too few devices started within their window"
                 : phase == Phase::updating ? "too few devices sent an update within their window"
                                            : "too few devices took part in a phase of the encryption");
            return true;
        }
        end_phase();
        if (state_.phase == Phase::aggregating || state_.now < *state_.iteration_end) return true;
    }
    fail("the iteration did not end within its window");
    return true;
}

// No update came for too long: those that are there are aggregated; without any, the devices that train are given up.
bool Rounds::pass_asynchronous() {
    if (taken(Phase::updating) > 0) {
        begin_phase(Phase::aggregating);
        return true;
    }
    std::ranges::fill(state_.training, 0);
    fail("no device sent an update within the iteration's window");
    members_->forget_before(state_.iteration);
    return true;
}

bool Rounds::tick(Time now) { return pass(now); }

Answer Rounds::answer(Code code, std::string_view reason) const {
    Answer a;
    a.code = code;
    a.iteration = state_.iteration;
    a.reason = reason;
    return a;
}

// It may ask again soon.
Answer Rounds::early() const {
    Answer a = answer(Code::not_ready);
    a.next_request = state_.now + settings_.poll;
    if (const auto end = deadline()) a.next_request = std::clamp(*end, state_.now + 1, a.next_request);
    return a;
}

// Too late for this iteration, or not taken: it may ask again when the next one can begin. That may be well before this
// phase's window ends, and the next iteration waits for its devices no longer than its own first window: a device that
// comes back within that time finds it.
Answer Rounds::late(DeviceId device, std::string_view reason) const {
    Answer a = answer(Code::out_of_time, reason);
    if (state_.phase == Phase::finished) return a;
    a.next_request = state_.now + settings_.poll;
    if (state_.phase_end)
        a.next_request = std::max(a.next_request, std::min(*state_.phase_end, state_.now + settings_.start_window));
    if (settings_.spread > 0)
        a.next_request += static_cast<Time>(
            uniform(settings_.seed, static_cast<uint64_t>(state_.iteration), device, Purpose::next_request) *
            static_cast<double>(settings_.spread));
    return a;
}

Answer Rounds::take(DeviceId device, Mark mark, Phase phase) {
    mark.add(phase);
    members_->put(device, mark);
    ++state_.taken[index_of(phase)];
    if (is_full(phase)) end_phase();
    Answer a = answer(Code::succeed);
    a.changed = true;
    return a;
}

// The mark of a device that takes part, whatever a store still has.
std::optional<Mark> Rounds::find(DeviceId device) const {
    auto mark = members_->find(device);
    const int64_t most = settings_.asynchronous ? settings_.max_staleness : 0;
    if (mark && (mark->iteration > state_.iteration || state_.iteration - mark->iteration > most)) mark.reset();
    return mark;
}

void Rounds::ends_training(const Mark& mark) {
    int64_t& count = state_.training[static_cast<size_t>(state_.iteration - mark.iteration)];
    count = std::max<int64_t>(0, count - 1);
}

bool Rounds::is_selected(DeviceId device) const {
    if (settings_.selection >= 1) return true;
    const auto round = static_cast<uint64_t>(state_.iteration);
    return uniform(settings_.seed, round, device, Purpose::selection) < settings_.selection;
}

Answer Rounds::start(Time now, DeviceId device) {
    const bool passed = pass(now);
    const auto with = [&](Answer a) {
        a.changed |= passed;
        return a;
    };
    if (state_.phase == Phase::finished) return with(late(device, kOver));
    if (settings_.asynchronous) return with(start_asynchronous(device));
    const auto mark = find(device);
    if (mark && mark->iteration == state_.iteration) {
        if (state_.phase == Phase::aggregating) return with(late(device, "the iteration takes no more requests"));
        Answer a = answer(Code::succeed);
        a.repeated = true;
        return with(a);
    }
    if (state_.phase != Phase::starting) return with(late(device, "the iteration has begun without the device"));
    if (settings_.selection < 1 && uniform(settings_.seed, static_cast<uint64_t>(state_.iteration), device,
                                           Purpose::selection) >= settings_.selection)
        return with(late(device, "the device was not selected"));
    if (taken(Phase::starting) == 0) {
        state_.phase_end = state_.now + settings_.start_window;
        state_.iteration_end = state_.now + settings_.global_window;
    }
    Mark fresh;
    fresh.iteration = static_cast<uint32_t>(state_.iteration);
    return take(device, fresh, Phase::starting);
}

// What stands against a request of a phase, if something does.
std::optional<Answer> Rounds::refused(DeviceId device, int64_t iteration, const std::optional<Mark>& mark,
                                      Phase phase) const {
    if (iteration > state_.iteration || iteration < 1)
        return answer(Code::request_error, "there is no such iteration yet");
    if (iteration < state_.iteration) return late(device, "the iteration is over");
    if (!mark || mark->iteration != state_.iteration) return answer(Code::request_error, kNotTaken);
    if (mark->has(phase)) return std::nullopt;
    if (state_.phase == Phase::finished) return late(device, kOver);
    if (state_.phase > phase) return late(device, "the phase is over");
    if (!mark->has(before(phase))) {
        if (state_.phase <= before(phase)) return early();
        return answer(Code::request_error, "the device did not take part in the phase before");
    }
    if (state_.phase < phase) return early();
    return std::nullopt;
}

Answer Rounds::cipher(Time now, DeviceId device, int64_t iteration, Phase phase) {
    const bool passed = pass(now);
    const bool has_phase = settings_.encryption == Encryption::pairwise
                               ? is_of_encryption(phase) && (settings_.signed_lists || phase != Phase::signing_lists)
                               : settings_.encryption == Encryption::stable && phase == Phase::exchanging_keys;
    const auto mark = find(device);
    Answer a;
    if (!has_phase)
        a = answer(Code::request_error, "the job has no such phase");
    else if (auto r = refused(device, iteration, mark, phase))
        a = *r;
    else if (mark->has(phase))
        a = answer(Code::succeed), a.repeated = true;
    else
        a = take(device, *mark, phase);
    a.changed |= passed;
    return a;
}

Answer Rounds::look(Time now, DeviceId device, int64_t iteration, Phase phase) {
    const bool passed = pass(now);
    const auto mark = find(device);
    Answer a;
    if (settings_.asynchronous || (!is_of_encryption(phase) && phase != Phase::updating))
        a = answer(Code::request_error, "the job has no such phase");
    else if (auto r = refused(device, iteration, mark, phase))
        a = *r;
    else if (!mark->has(phase))
        a = answer(Code::request_error, "the device did not take part in the phase");
    else
        a = state_.phase > phase ? answer(Code::succeed) : early();
    a.changed |= passed;
    return a;
}

Answer Rounds::update(Time now, DeviceId device, int64_t iteration, uint64_t digest) {
    const bool passed = pass(now);
    Answer a;
    if (settings_.asynchronous) {
        a = update_asynchronous(device, iteration, digest);
    } else {
        auto mark = find(device);
        if (auto r = refused(device, iteration, mark, Phase::updating)) {
            a = *r;
        } else if (mark->has(Phase::updating)) {
            a = mark->digest == digest ? answer(Code::succeed)
                                       : answer(Code::request_error, "another update of the device was taken");
            a.repeated = mark->digest == digest;
        } else {
            mark->digest = digest;
            a = take(device, *mark, Phase::updating);
        }
    }
    a.changed |= passed;
    return a;
}

Answer Rounds::start_asynchronous(DeviceId device) {
    if (state_.phase == Phase::aggregating) return early();
    Mark mark = find(device).value_or(Mark());
    const bool trains = mark.iteration > 0 && !mark.has(Phase::updating);
    if (trains && mark.iteration == state_.iteration) {
        Answer a = answer(Code::succeed);
        a.repeated = true;
        return a;
    }
    if (trains) {
        // It begins anew, with newer weights.
        ends_training(mark);
    } else {
        if (mark.iteration == state_.iteration)
            return late(device, "an update of the device is in this iteration already");
        if (settings_.concurrency > 0 && training() >= settings_.concurrency)
            return late(device, "enough devices train");
        if (!is_selected(device)) return late(device, "the device was not selected");
    }
    ++state_.training.front();
    ++state_.taken[index_of(Phase::starting)];
    if (!state_.iteration_end) state_.iteration_end = state_.now + settings_.global_window;
    mark = {};
    mark.iteration = static_cast<uint32_t>(state_.iteration);
    mark.add(Phase::starting);
    members_->put(device, mark);
    Answer a = answer(Code::succeed);
    a.changed = true;
    return a;
}

Answer Rounds::update_asynchronous(DeviceId device, int64_t iteration, uint64_t digest) {
    if (iteration > state_.iteration || iteration < 1)
        return answer(Code::request_error, "there is no such iteration yet");
    auto mark = find(device);
    if (mark && mark->has(Phase::updating)) {
        Answer a = mark->digest == digest ? answer(Code::succeed)
                                          : answer(Code::request_error, "another update of the device was taken");
        a.repeated = mark->digest == digest;
        return a;
    }
    if (!mark && state_.iteration - iteration > settings_.max_staleness) return late(device, "the update is too stale");
    if (!mark || mark->iteration != iteration) return answer(Code::request_error, "the device did not start there");
    if (state_.phase == Phase::finished) return late(device, kOver);
    if (state_.phase == Phase::aggregating) return early();
    const int64_t staleness = state_.iteration - iteration;
    ends_training(*mark);
    state_.iteration_end = state_.now + settings_.global_window;
    mark->digest = digest;
    mark->iteration = static_cast<uint32_t>(state_.iteration);
    mark->add(Phase::updating);
    members_->put(device, *mark);
    ++state_.taken[index_of(Phase::updating)];
    if (is_full(Phase::updating)) begin_phase(Phase::aggregating);
    Answer a = answer(Code::succeed);
    a.changed = true;
    a.staleness = staleness;
    return a;
}

Answer Rounds::model(Time now, int64_t iteration) {
    const bool passed = pass(now);
    Answer a;
    if (iteration < 1 || iteration > state_.iteration)
        a = answer(Code::request_error, "there is no such iteration yet");
    else if (iteration < state_.iteration || state_.phase == Phase::finished)
        a = answer(Code::succeed, iteration == last_.iteration && !last_.valid ? kFailed : std::string_view());
    else
        a = early();
    a.changed = passed;
    return a;
}

bool Rounds::close(Time now, Phase phase) {
    pass(now);
    if (state_.phase != phase || phase == Phase::aggregating || phase == Phase::finished) return false;
    if (taken(phase) < (settings_.asynchronous ? 1 : needed(phase))) return false;
    if (settings_.asynchronous)
        begin_phase(Phase::aggregating);
    else
        end_phase();
    return true;
}

void Rounds::finish(Time now, bool valid, std::string_view reason) {
    if (state_.phase != Phase::aggregating)
        throw state_error("finish", str("the iteration is ", name_of(state_.phase), ", and only aggregating ends"));
    state_.now = std::max(state_.now, now);
    end_iteration(valid, reason);
}

void Rounds::stop(Time now, std::string_view reason) {
    state_.now = std::max(state_.now, now);
    if (state_.phase == Phase::finished) return;
    last_ = {state_.iteration, false, std::string(reason), state_.now};
    state_.phase = Phase::finished;
    state_.phase_end = state_.iteration_end = std::nullopt;
}

namespace {

// The state as it is stored.
struct Saved {
    std::string job;
    int64_t iteration = 1, now = 0;
    Phase phase = Phase::starting;
    std::vector<int64_t> taken, training;
    std::optional<int64_t> phase_end, iteration_end;
    int64_t last_iteration = 0, last_at = 0;
    bool last_valid = false;
    std::string last_reason, marks;

    static proto::Fields<Saved> fields();
};

constexpr proto::Field<Saved> marks_field(uint32_t number) {
    return {number, [](Saved& m, const ProtoReader& p) { m.marks = p.bytes(); },
            [](const Saved& m, uint32_t n, ProtoWriter& w) { w.bytes(n, m.marks); }};
}

proto::Fields<Saved> Saved::fields() {
    using proto::field;
    static constexpr proto::Field<Saved> list[] = {field<&Saved::job>(1),
                                                   field<&Saved::iteration>(2),
                                                   field<&Saved::phase>(3),
                                                   field<&Saved::taken>(4),
                                                   field<&Saved::now>(5),
                                                   field<&Saved::phase_end>(6),
                                                   field<&Saved::iteration_end>(7),
                                                   field<&Saved::training>(8),
                                                   field<&Saved::last_iteration>(9),
                                                   field<&Saved::last_valid>(10),
                                                   field<&Saved::last_reason>(11),
                                                   field<&Saved::last_at>(12),
                                                   marks_field(13)};
    return list;
}

constexpr size_t kMarkBytes = 24;

template <class T>
void add(std::string& text, T value) {
    for (size_t i = 0; i < sizeof(T); ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}
template <class T>
T number_at(std::string_view bytes, size_t at) {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
        value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i));
    return value;
}

void check_numbers(const ProtoReader& p, const Saved& m) {
    if (m.phase < Phase::starting || m.phase > Phase::finished) p.fail("there is no such phase");
    if (m.iteration < 1 || m.iteration > kMostIterations) p.fail("the iteration is out of range");
    if (m.taken.size() != kPhases) p.fail("the counts of the phases are not all there");
    const auto is_count = [](int64_t count) { return count >= 0 && count <= kMostDevices; };
    if (!std::ranges::all_of(m.taken, is_count) || !std::ranges::all_of(m.training, is_count))
        p.fail("a count of devices is out of range");
    const auto is_time = [](Time time) { return time >= -4 * kLongest && time <= 4 * kLongest; };
    if (!is_time(m.now) || !is_time(m.phase_end.value_or(0)) || !is_time(m.iteration_end.value_or(0)))
        p.fail("a time is out of range");
    if (m.marks.size() % kMarkBytes != 0) p.fail("the marks of the devices are cut off");
}

void check_job(const ProtoReader& p, const Saved& m, const JobSettings& settings) {
    if (m.job != settings.name) p.fail(str("it is that of the job '", m.job, "', and not of '", settings.name, "'"));
    const bool of_both = m.phase == Phase::updating || m.phase == Phase::aggregating || m.phase == Phase::finished;
    if (settings.asynchronous ? !of_both : !m.training.empty())
        p.fail("the job was asynchronous, and is not, or the other way round");
    const bool waits = m.phase > Phase::starting && m.phase < Phase::aggregating;
    const bool begun = waits || (m.phase == Phase::starting && m.taken[0] > 0);
    if (!settings.asynchronous && (begun != m.phase_end.has_value() || (begun && !m.iteration_end)))
        p.fail("a window has no end");
}

}  // namespace

std::string Rounds::bytes(bool with_members) const {
    Saved m;
    m.job = settings_.name;
    m.iteration = state_.iteration;
    m.now = state_.now;
    m.phase = state_.phase;
    m.taken.assign(state_.taken.begin(), state_.taken.end());
    m.training = state_.training;
    m.phase_end = state_.phase_end;
    m.iteration_end = state_.iteration_end;
    m.last_iteration = last_.iteration;
    m.last_at = last_.at;
    m.last_valid = last_.valid;
    m.last_reason = last_.reason;
    if (with_members) {
        const auto all = members_->all();
        m.marks.reserve(all.size() * kMarkBytes);
        for (const auto& [device, mark] : all) {
            add(m.marks, device);
            add(m.marks, mark.digest);
            add(m.marks, mark.iteration);
            add(m.marks, mark.done);
        }
    }
    return proto::message_of(m).text();
}

void Rounds::read(std::string_view bytes) {
    const ProtoReader p(bytes, "the state of a federated job");
    const auto m = proto::read_message<Saved>(p);
    check_numbers(p, m);
    check_job(p, m, settings_);
    state_.iteration = m.iteration;
    state_.phase = m.phase;
    state_.now = m.now;
    std::ranges::copy(m.taken, state_.taken.begin());
    state_.phase_end = m.phase_end;
    state_.iteration_end = m.iteration_end;
    state_.training = m.training;
    if (settings_.asynchronous) state_.training.resize(static_cast<size_t>(settings_.max_staleness) + 1);
    last_ = {m.last_iteration, m.last_valid, m.last_reason, m.last_at};
    for (size_t at = 0; at < m.marks.size(); at += kMarkBytes) {
        Mark mark;
        mark.digest = number_at<uint64_t>(m.marks, at + 8);
        mark.iteration = number_at<uint32_t>(m.marks, at + 16);
        mark.done = number_at<uint32_t>(m.marks, at + 20);
        if (mark.iteration < 1 || mark.iteration > state_.iteration) p.fail("a device started in no iteration");
        members_->put(number_at<uint64_t>(m.marks, at), mark);
    }
    members_->forget_before(settings_.asynchronous ? std::max<int64_t>(1, state_.iteration - settings_.max_staleness)
                                                   : state_.iteration);
}

}  // namespace lunaria::federated
