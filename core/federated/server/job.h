// One job of a server: what each request of a client does to the rounds and to the store, and what is answered. All of
// it runs in a transaction of the store, on one thread; nothing here waits, and nothing knows sockets.
#pragma once

#include <functional>
#include <variant>

#include "core/federated/messages.h"
#include "core/federated/server/door.h"
#include "core/federated/server/secure_round.h"
#include "core/federated/store.h"

namespace lunaria::federated {

// Of what a client has shown: the name in a certificate, and its key; or why it is refused.
struct ClientCertificate {
    std::string problem, name, key;
};
using CertificateCheck = std::function<ClientCertificate(std::string_view pem)>;
// Whether `signature` is the key's over the text.
using SignatureCheck = std::function<bool(std::string_view key, std::string_view text, std::string_view signature)>;

struct JobOptions {
    JobSettings rounds;
    messages::Encoding upload = messages::Encoding::plain;
    bool quantises_download = false;
    double largest_weight = 1e10;
    int64_t payload_bytes = 0;  // of an update that is a payload; 0: any number
    // Of jobs with secure aggregation: the code of their sums, the shares that restore a secret, and the neighbours of
    // each client in the graph of masks.
    FixedPoint code;
    int64_t further = 0;  // elements of a sum behind those of the weights
    int64_t share_threshold = 2;
    int64_t neighbours = 0;
    // Clients sign what they send, with a key that a certificate of the authorities names.
    bool verifies = false;
    int64_t replay_window = 600'000;  // ms by which clocks may differ, and for which signatures are remembered
    // In hybrid training: a worker trains with every new model, and pushes its weights before the next iteration
    // begins, which waits for it as long as for its first phase.
    bool takes_weights = false;
    int64_t retry = 200;    // ms after which a client asks again for what is not ready
    std::string overrides;  // by the last newInstance, as JSON; the store's are the caller's business

    CertificateCheck certificate;
    SignatureCheck signature;
};

using Content =
    std::variant<std::monostate, messages::StartFLJob, messages::ClientKeys, messages::ShareList,
                 messages::ListSignature, messages::UpdateModel, messages::PushMetrics, messages::FeatureMap>;

// A request that has passed every check that needs no state.
struct Request {
    std::string_view endpoint;  // one of kEndpoints
    messages::Envelope envelope;
    Content content;
    ClientCertificate certificate;
    uint64_t digest = 0;  // of the content of an update
};

// What is answered. The content of many answers is the same bytes, which are not copied for each.
struct Reaction {
    messages::Reply reply;
    std::shared_ptr<const std::string> content = {};
};

// What the owner of a job has to compute.
struct Work {
    enum class Kind { none, plan, aggregate };
    Kind kind = Kind::none;
    std::string job;
    int64_t iteration = 0;
    bool operator==(const Work&) const = default;
};

class Job {
  public:
    // The job's row must be in the store, or a model is given.
    Job(Store& store, std::string name, JobOptions options);

    const std::string& name() const { return name_; }
    int64_t number() const { return number_; }
    const JobOptions& options() const { return options_; }
    const JobRow& row() const { return row_; }
    const Rounds& rounds() const { return *rounds_; }
    const ModelShape& shape() const { return shape_; }
    bool has_model() const { return model_ != nullptr; }

    // Reads what another server has changed. `clock`: the time of the job's clock, which never goes back.
    void refresh();
    void forget() { row_.sequence = -1; }  // after a transaction that failed
    Time now() const { return now_; }
    void set_time(Time now) { now_ = std::max(now_, now); }

    // The checks of a request that take time and no state; throws a Refusal.
    static Request taken(std::string_view endpoint, messages::Envelope envelope, const JobOptions& options);
    // `wall`: ms since 1970.
    Reaction answer(Request& request, int64_t wall);
    void tick();
    // Writes the row where something has changed.
    void save();

    Work work() const;
    // The weighted mean of an iteration of secure aggregation: its clients, the sum of their weights, its elements.
    struct Mean {
        std::vector<std::string> clients;
        int64_t samples = 0;
        std::vector<double> values;
    };
    // Throws where the iteration has none.
    Mean secure_mean();
    // The change of the weights that a payload of an iteration stands for (payloads.h).
    std::vector<double> change(int64_t iteration, std::string_view payload) const;
    void plan(int64_t iteration, std::string plan);
    // `model`: empty where the iteration failed, for the reason.
    void finish(int64_t iteration, std::string model, std::string strategy, std::string plan, std::string_view reason,
                std::string_view metrics);
    void put_model(std::string_view model, std::string_view strategy);
    void enable(bool is_enabled);
    // New settings from iteration 1 on; the model stays.
    void begin_instance(JobSettings settings, std::string name, std::string overrides);
    void stop(std::string_view reason);

    // JSON.
    std::string state() const;

  private:
    using Handler = Reaction (Job::*)(Request&, DeviceId);
    static Handler handler_of(std::string_view endpoint);
    Reaction start(Request& request, DeviceId device);
    template <size_t phase>
    Reaction brought(Request& request, DeviceId device) {
        return bring(request, device, static_cast<Phase>(phase));
    }
    template <size_t phase>
    Reaction looked(Request& request, DeviceId device) {
        return look(request, device, static_cast<Phase>(phase));
    }
    Reaction bring(Request& request, DeviceId device, Phase phase);
    Reaction look(Request& request, DeviceId device, Phase phase);
    Reaction update(Request& request, DeviceId device);
    Reaction model(Request& request, DeviceId device);
    Reaction metrics(Request& request, DeviceId device);
    Reaction pull(Request& request, DeviceId device);
    Reaction push(Request& request, DeviceId device);
    Time awaits_weights();

    Reaction refused(messages::Code code, std::string_view reason, Time next = 0) const;
    Reaction as(const Answer& answer, std::shared_ptr<const std::string> content = {});
    std::optional<Reaction> stranger(const Request& request, DeviceId device, int64_t wall);
    // Secure aggregation of this iteration.
    SecureRound& secure();
    // Whether the phase is on and waits for this client, so that what it sends is looked at.
    bool is_awaited(const Request& request, DeviceId device, Phase phase) const;
    // What secure aggregation has against the client's content; empty where it has taken it.
    std::string secure_refusal(const Request& request, Phase phase);
    void follow();
    void load_model();
    void note_end();
    int64_t to_wall(Time time) const { return time > 0 ? time - now_ + wall_ : 0; }
    std::shared_ptr<const std::string> invitation();

    Store& store_;
    const std::string name_;
    int64_t number_ = 0;
    JobOptions options_;
    JobRow row_;
    std::optional<Rounds> rounds_;
    bool has_changed_ = false;
    Time now_ = 0, began_ = 0;
    int64_t wall_ = 0;
    int64_t noted_ = 0;  // the last iteration whose end is in the history
    std::unique_ptr<SecureRound> secure_;
    ModelShape shape_;
    std::shared_ptr<const std::string> model_, sent_model_;  // FeatureMap as kept, and as sent to clients
    int64_t loaded_version_ = -1;
    // startFLJob's content for clients without the model, and for those that hold it.
    std::shared_ptr<const std::string> invitation_, short_invitation_;
    int64_t invitation_version_ = -1, invitation_iteration_ = -1;
};

// The model as clients get it: tensors of floats as bytes between their least and largest element.
messages::FeatureMap quantised(const messages::FeatureMap& model);

// A hash of bytes, by which repeated requests are known.
uint64_t digest_of(std::string_view bytes);

}  // namespace lunaria::federated
