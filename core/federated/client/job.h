// A client's part in a federated job, as a state machine without threads, sleep or clock of its own: advance() makes at
// most one request and says what comes next. The caller waits, trains and shows. Whatever happens to a request, it is
// repeated with the same content until the server has taken it, the patience ends or the server refuses it by name;
// what must survive a crash is in the state file before the request that relies on it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/federated/client/backoff.h"
#include "core/federated/client/client_state.h"
#include "core/federated/client/connection.h"
#include "core/federated/client/secure_steps.h"
#include "core/federated/client/upload.h"
#include "core/federated/messages.h"

namespace lunaria::federated::client {

struct JobOptions {
    std::string job, client;
    int64_t samples = 1;
    ConnectionOptions connection;
    BackoffOptions backoff;
    int64_t patience_ms = 120'000;  // of a request that is repeated
    std::string state_path;         // empty: a crash loses what the client has not sent
    std::string certificate;        // of the client's signing key, PEM; for jobs that verify clients
    std::string signing_key;        // its seed, 32 bytes; empty: the client makes one
    bool signs = false;
    // The keys by which other clients sign, by their certificates: where secure aggregation is signed as well.
    SigningKeys signing_keys;
    int64_t iterations = 0;  // after so many updates that were taken the client ends; 0: with the job
};

struct Event {
    enum class Kind {
        wait,   // advance() again after wait_ms
        train,  // give() an update of plan() and model(), then advance()
        model,  // model() is that of a finished iteration; `reason`: why it is no new one
        ended,  // there is nothing more to do
    };
    Kind kind = Kind::wait;
    int64_t wait_ms = 0;
    std::string reason;  // of a wait or the end
};

// Milliseconds since 1970.
using NowMs = std::function<int64_t()>;

class Job {
  public:
    Job(JobOptions options, std::unique_ptr<Connection> connection, NowMs now);

    // Throws where the server refuses the client, or does not answer as long as the patience lasts.
    Event advance();
    void give(LocalUpdate update);

    int64_t iteration() const { return state_.iteration; }
    const messages::Plan& plan() const { return plan_; }
    const messages::FeatureMap& model() const { return model_; }
    const std::string& rule_state() const { return state_.rule; }
    // Of what the client draws in this iteration: it depends on the plan's seed, the iteration and the client's name.
    uint64_t draw_seed() const;
    int64_t updates() const { return updates_; }
    int64_t repeats() const { return repeats_; }  // requests that were sent again
    const JobOptions& options() const { return options_; }

    // Requests outside of the iterations. Each returns once the request is through, or a wait.
    std::optional<messages::FeatureMap> pull(Event& event);
    bool push(const messages::FeatureMap& weights, Event& event);
    bool push_metrics(const std::vector<messages::Metric>& metrics, Event& event);

  private:
    enum class Phase : int64_t {
        start,
        exchange_keys,
        get_keys,
        share_secrets,
        get_secrets,
        train,
        update,
        client_list,
        push_sign,
        list_signs,
        reconstruct,
        model,
        ended
    };

    Event start();
    Event secure();
    Event send_update();
    Event fetch_model();
    Event wait(int64_t ms, std::string reason) const;

    // The reply with the code of success; nothing: `event` says what to wait for, or that the iteration is over.
    std::optional<messages::Reply> ask(std::string_view endpoint, const std::string& content, Event& event);
    std::optional<messages::Reply> answered(std::string_view endpoint, Reply reply, Event& event);
    Event repeated(std::string_view endpoint, std::string_view problem, int64_t retry_after_ms);
    std::string envelope(std::string_view endpoint, const std::string& content);
    Event over(const messages::Reply& reply);
    void forget_iteration();
    void restore_steps();
    std::optional<Identity> identity() const;
    void save() { file_.save(state_); }
    void go_to(Phase phase);
    void keep_phase(Phase phase);
    bool settled(bool done);

    JobOptions options_;
    std::unique_ptr<Connection> connection_;
    NowMs now_;
    Backoff backoff_;
    StateFile file_;
    ClientState state_;
    std::optional<SecureSteps> steps_;
    Phase phase_ = Phase::start;
    messages::Plan plan_;
    messages::FeatureMap model_;
    int64_t offset_ms_ = 0;  // of the server's clock against this one
    bool knows_offset_ = false;
    uint64_t requests_ = 0;
    uint32_t attempt_ = 0;
    int64_t first_failure_ms_ = 0;
    int64_t updates_ = 0, repeats_ = 0;
    std::string end_reason_;
};

}  // namespace lunaria::federated::client
