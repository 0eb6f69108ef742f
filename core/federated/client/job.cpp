#include "core/federated/client/job.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/federated/primitives.h"

namespace lunaria::federated::client {

namespace {

using messages::Code;

constexpr std::string_view kWhere = "federated.Client";
constexpr std::string_view kType = "application/x-protobuf";
// The server says when to ask again. Where it does not, or it is now, a client does not ask as fast as it can.
constexpr int64_t kLeastWaitMs = 20, kMostWaitMs = 3'600'000;
constexpr uint32_t kMostOfTheWay = 5;
// A clock that is off by less than that needs no second try.
constexpr int64_t kCloseMs = 1'000;

// Whether a request was refused for what has happened to it on its way.
bool is_of_the_way(std::string_view reason) {
    return reason.starts_with("corrupt: ") || reason.starts_with("replayed: ");
}

bool is_outside(std::string_view endpoint) {
    return endpoint == messages::kPullWeights || endpoint == messages::kPushWeights ||
           endpoint == messages::kPushMetrics;
}

bool is_masked(const messages::Plan& plan) {
    return plan.cipher.type == "PW_ENCRYPT" || plan.cipher.type == "STABLE_PW_ENCRYPT";
}

}  // namespace

Job::Job(JobOptions options, std::unique_ptr<Connection> connection, NowMs now)
    : options_(std::move(options)),
      connection_(std::move(connection)),
      now_(std::move(now)),
      backoff_(options_.backoff),
      file_(options_.state_path) {
    if (auto kept = file_.load(options_.job, options_.client)) state_ = std::move(*kept);
    state_.job = options_.job;
    state_.client = options_.client;
    if (options_.signs) {
        if (!options_.signing_key.empty()) state_.identity = options_.signing_key;
        if (state_.identity.empty()) {
            const Secret made = Secret::random(kWhere);
            state_.identity = made.view();
            save();
        }
    }
    // What was on its way when the client crashed.
    const auto kept = static_cast<Phase>(state_.phase);
    if (!state_.update.empty())
        phase_ = Phase::update;
    else if (kept >= Phase::client_list && kept <= Phase::model)
        phase_ = kept;
    if (phase_ != Phase::start && !state_.secrets.empty()) restore_steps();
}

// The phases before the update are gone through again with the same answers; what was sealed stays as it is.
void Job::restore_steps() {
    const bool has_sealed = static_cast<Phase>(state_.phase) >= Phase::update;
    steps_ = SecureSteps::restored(state_.secrets, has_sealed, identity(), options_.signing_keys);
}

// Of signed sums.
std::optional<Identity> Job::identity() const {
    if (!options_.signs || !options_.signing_keys) return std::nullopt;
    return Identity{Secret::of(state_.identity), options_.certificate};
}

Event Job::wait(int64_t ms, std::string reason) const {
    return {Event::Kind::wait, std::clamp(ms, kLeastWaitMs, kMostWaitMs), std::move(reason)};
}

Event Job::advance() {
    switch (phase_) {
        case Phase::start:
            return start();
        case Phase::train:
            return {Event::Kind::train, 0, {}};
        case Phase::update:
            return send_update();
        case Phase::model:
            return fetch_model();
        case Phase::ended:
            return {Event::Kind::ended, 0, end_reason_};
        default:
            return secure();
    }
}

void Job::go_to(Phase phase) {
    phase_ = phase;
    attempt_ = 0;
    ++requests_;
}

// What belongs to one iteration only.
void Job::forget_iteration() {
    state_.update.clear();
    state_.secrets.clear();
    state_.phase = 0;
    state_.next_rule.clear();
    state_.next_residual.clear();
    steps_.reset();
    go_to(Phase::start);
}

Event Job::over(const messages::Reply& reply) {
    const bool had_update = !state_.update.empty() || !state_.secrets.empty();
    // The server is in another iteration, which may be waiting for this client: the next request is told when to come.
    const bool has_moved_on = phase_ != Phase::start && reply.iteration > state_.iteration;
    forget_iteration();
    if (had_update) save();
    // A server whose job is over names no time to come back.
    if (reply.next_request_time == 0) {
        phase_ = Phase::ended;
        end_reason_ = reply.reason;
        return {Event::Kind::ended, 0, end_reason_};
    }
    return wait(has_moved_on ? 0 : reply.next_request_time - reply.timestamp, reply.reason);
}

std::string Job::envelope(std::string_view endpoint, const std::string& content) {
    messages::Envelope envelope;
    envelope.job = options_.job;
    envelope.client = options_.client;
    envelope.iteration = phase_ == Phase::start ? 0 : state_.iteration;
    // No two requests have the same time, so that none is taken for a replay.
    state_.timestamp = std::max(now_() + offset_ms_, state_.timestamp + 1);
    envelope.timestamp = state_.timestamp;
    envelope.content = content;
    if (options_.signs) {
        const Bytes64 signature = primitives(kWhere).sign(Secret::of(state_.identity), envelope.signed_bytes(endpoint));
        envelope.signature = view_of(signature);
        // Within an iteration the server knows the client's key.
        const bool is_outside = phase_ == Phase::start || phase_ >= Phase::model;
        if (is_outside) envelope.certificate = options_.certificate;
    }
    return messages::written(envelope);
}

Event Job::repeated(std::string_view endpoint, std::string_view problem, int64_t retry_after_ms) {
    const int64_t now = now_();
    if (attempt_ == 0) first_failure_ms_ = now;
    if (now - first_failure_ms_ > options_.patience_ms)
        throw state_error(kWhere, str(options_.connection.url, ": ", problem, "; ", endpoint, " was tried ",
                                      attempt_ + 1, " times in ", (now - first_failure_ms_) / 1000, " s"))
            .hint("patience says for how many seconds a request is repeated");
    ++repeats_;
    const int64_t drawn = backoff_.wait_ms(attempt_++, requests_);
    return wait(std::max(drawn, retry_after_ms), std::string(problem));
}

std::optional<messages::Reply> Job::ask(std::string_view endpoint, const std::string& content, Event& event) {
    Reply reply = connection_->post(str('/', endpoint), envelope(endpoint, content), kType);
    if (reply.fault == Fault::interrupted) throw Error(ErrorKind::interrupt, kWhere, "interrupted");
    if (reply.fault != Fault::none) {
        const std::string problem = str(words_of(reply.fault), reply.problem.empty() ? "" : ": ", reply.problem);
        if (!may_pass(reply.fault)) throw state_error(kWhere, str(options_.connection.url, ": ", problem));
        event = repeated(endpoint, problem, -1);
        return std::nullopt;
    }
    return answered(endpoint, std::move(reply), event);
}

std::optional<messages::Reply> Job::answered(std::string_view endpoint, Reply reply, Event& event) {
    // What was altered on its way is sent again, like what was lost.
    if (reply.status != 200) {
        event = repeated(endpoint, str("the server answers with the HTTP status ", reply.status), reply.retry_after_ms);
        return std::nullopt;
    }
    messages::Reply read;
    try {
        read = messages::parsed<messages::Reply>(reply.body, "the reply");
    } catch (const Error& error) {
        event = repeated(endpoint, str("the reply is no message of the job: ", error.message()), -1);
        return std::nullopt;
    }
    const int64_t offset = read.timestamp - now_(), moved = std::abs(offset - offset_ms_);
    if (read.timestamp > 0) offset_ms_ = offset;
    // Times of a clock that was ahead are forgotten, or those that follow would be ahead as well.
    if (moved >= kCloseMs) state_.timestamp = 0;
    const bool was_unknown = !std::exchange(knows_offset_, true);
    switch (read.code) {
        case Code::succeed:
            return read;
        case Code::not_ready:
            attempt_ = 0;
            event = wait(read.next_request_time - read.timestamp, read.reason);
            return std::nullopt;
        case Code::out_of_time:
            // What is asked outside of the iterations does not end the client's own.
            if (!is_outside(endpoint))
                event = over(read);
            else if (read.next_request_time == 0)
                event = {Event::Kind::ended, 0, read.reason};
            else
                event = wait(read.next_request_time - read.timestamp, read.reason);
            return std::nullopt;
        case Code::request_error:
            // The server could not read what was sent, or has it twice: altered, cut or doubled on its way, unless it
            // happens each time.
            if (is_of_the_way(read.reason) && attempt_ < kMostOfTheWay) {
                event = repeated(endpoint, read.reason, -1);
                return std::nullopt;
            }
            // Refused for its time by a server whose clock is another one: the next request has the server's time.
            if (!was_unknown || moved < kCloseMs) throw state_error(kWhere, str(endpoint, ": ", read.reason));
            event = wait(0, read.reason);
            return std::nullopt;
        default:
            event = repeated(endpoint, str("the server has a problem: ", read.reason),
                             read.next_request_time - read.timestamp);
            return std::nullopt;
    }
}

Event Job::start() {
    if (options_.iterations > 0 && updates_ >= options_.iterations) {
        phase_ = Phase::ended;
        end_reason_ = str(updates_, " iterations are done");
        return {Event::Kind::ended, 0, end_reason_};
    }
    messages::StartFLJob request;
    request.samples = options_.samples;
    request.model_version = model_.features.empty() ? 0 : model_.version;
    if (options_.signs) request.public_key = view_of(primitives(kWhere).signing_key(Secret::of(state_.identity)));
    Event event;
    const auto reply = ask(messages::kStartFLJob, messages::written(request), event);
    if (!reply) return event;
    auto started = messages::parsed<messages::StartedFLJob>(reply->content, "startFLJob");
    if (!started.is_selected) return wait(reply->next_request_time - reply->timestamp, "not selected");
    if (!started.model.features.empty()) model_ = plain(std::move(started.model));
    plan_ = std::move(started.plan);
    const bool resumes = state_.iteration == reply->iteration && !state_.secrets.empty();
    state_.iteration = reply->iteration;
    if (!is_masked(plan_)) {
        go_to(Phase::train);
    } else if (resumes) {
        restore_steps();
        go_to(static_cast<Phase>(state_.phase));
    } else {
        steps_.emplace(plan_, options_.job, options_.client, state_.iteration, size_of(model_), identity(),
                       options_.signing_keys);
        keep_phase(Phase::exchange_keys);
    }
    return phase_ == Phase::train ? advance() : Event();
}

// Goes on after the phase is in the state file.
void Job::keep_phase(Phase phase) {
    state_.phase = static_cast<int64_t>(phase);
    if (steps_) state_.secrets = steps_->saved();
    save();
    go_to(phase);
}

// A phase of secure aggregation either sends what the machine has to say, or asks for an answer that it takes.
Event Job::secure() {
    struct Step {
        Phase phase;
        std::string_view endpoint;
        bool sends;
        Phase next;
    };
    static constexpr Step kSteps[] = {
        {Phase::exchange_keys, messages::kExchangeKeys, true, Phase::get_keys},
        {Phase::get_keys, messages::kGetKeys, false, Phase::share_secrets},
        {Phase::share_secrets, messages::kShareSecrets, true, Phase::get_secrets},
        {Phase::get_secrets, messages::kGetSecrets, false, Phase::train},
        {Phase::client_list, messages::kGetClientList, false, Phase::push_sign},
        {Phase::push_sign, messages::kPushListSign, true, Phase::list_signs},
        {Phase::list_signs, messages::kGetListSign, false, Phase::reconstruct},
        {Phase::reconstruct, messages::kReconstructSecrets, true, Phase::model},
    };
    const Step& step = *std::ranges::find(kSteps, phase_, &Step::phase);
    Event event;
    const auto reply = ask(step.endpoint, step.sends ? steps_->content() : std::string(), event);
    if (!reply) return event;
    if (!step.sends) steps_->take(reply->content);
    Phase next = step.next;
    // Silos share no secrets, and lists that are not signed are not shown around.
    if (next == Phase::share_secrets && steps_->is_stable()) next = Phase::train;
    if (next == Phase::push_sign && !steps_->is_signed()) next = Phase::reconstruct;
    keep_phase(next);
    return event;
}

void Job::give(LocalUpdate update) {
    if (phase_ != Phase::train) throw state_error(kWhere, "an update is given where none was asked for");
    state_.next_rule = std::move(update.rule_state);
    state_.next_residual = state_.residual;
    state_.base_version = model_.version;
    state_.update = messages::written(
        encoded(plan_, model_, std::move(update), state_.iteration, state_.next_residual, steps_ ? &*steps_ : nullptr));
    keep_phase(Phase::update);
}

Event Job::send_update() {
    Event event;
    if (!ask(messages::kUpdateModel, state_.update, event)) return event;
    ++updates_;
    state_.update.clear();
    keep_phase(steps_ && !steps_->is_stable() ? Phase::client_list : Phase::model);
    return event;
}

// What the client keeps for the next iteration is that of its update, if the iteration has made a new model.
Event Job::fetch_model() {
    Event event;
    const auto reply = ask(messages::kGetModel, {}, event);
    if (!reply) return event;
    model_ = plain(messages::parsed<messages::FeatureMap>(reply->content, "getModel"));
    const bool is_new = model_.version > state_.base_version;
    if (is_new) {
        state_.rule = std::move(state_.next_rule);
        state_.residual = std::move(state_.next_residual);
    }
    forget_iteration();
    save();
    std::string reason = is_new ? "" : reply->reason.empty() ? "the iteration failed" : reply->reason;
    return {Event::Kind::model, 0, std::move(reason)};
}

std::optional<messages::FeatureMap> Job::pull(Event& event) {
    const auto reply = ask(messages::kPullWeights, {}, event);
    if (!reply) return std::nullopt;
    ++requests_;
    return plain(messages::parsed<messages::FeatureMap>(reply->content, "pullWeights"));
}

bool Job::push(const messages::FeatureMap& weights, Event& event) {
    return settled(ask(messages::kPushWeights, messages::written(weights), event).has_value());
}

bool Job::push_metrics(const std::vector<messages::Metric>& metrics, Event& event) {
    return settled(ask(messages::kPushMetrics, messages::written(messages::PushMetrics{metrics}), event).has_value());
}

uint64_t Job::draw_seed() const {
    uint64_t name = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : options_.client) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    const auto words = philox(static_cast<uint64_t>(plan_.seed), static_cast<uint64_t>(state_.iteration), name);
    return uint64_t{words[0]} << 32 | words[1];
}

bool Job::settled(bool done) {
    if (done) {
        ++requests_;
        attempt_ = 0;
    }
    return done;
}

}  // namespace lunaria::federated::client
