#include "core/federated/server/job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/federated/payloads.h"
#include "core/io/json_text.h"
#include "core/io/question.h"

namespace lunaria::federated {

namespace {

using messages::Code;

// One field of a message, to be put before or after others: a message is the bytes of its fields.
std::string as_field(uint32_t number, std::string_view message) {
    ProtoWriter writer;
    writer.bytes(number, message);
    return writer.text();
}

template <class T>
Content read(std::string_view bytes, std::string_view endpoint) {
    return messages::parsed<T>(bytes, endpoint);
}

Content content_of(std::string_view endpoint, std::string_view bytes) {
    using Read = Content (*)(std::string_view, std::string_view);
    static const std::map<std::string_view, Read> kReaders = {
        {messages::kStartFLJob, read<messages::StartFLJob>},
        {messages::kExchangeKeys, read<messages::ClientKeys>},
        {messages::kShareSecrets, read<messages::ShareList>},
        {messages::kUpdateModel, read<messages::UpdateModel>},
        {messages::kPushListSign, read<messages::ListSignature>},
        {messages::kReconstructSecrets, read<messages::ShareList>},
        {messages::kPushMetrics, read<messages::PushMetrics>},
        {messages::kPushWeights, read<messages::FeatureMap>}};
    const auto reader = kReaders.find(endpoint);
    if (reader != kReaders.end()) return reader->second(bytes, endpoint);
    if (!bytes.empty()) throw Refusal{400, str(endpoint, " has no content")};
    return {};
}

template <class T>
std::vector<float> floats(const std::string& data) {
    std::vector<float> values(data.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
        T x;
        std::memcpy(&x, data.data() + i * sizeof(T), sizeof(T));
        values[i] = static_cast<float>(x);
    }
    return values;
}

}  // namespace

uint64_t digest_of(std::string_view bytes) {
    // Eight bytes at a time; the finalizer of splitmix64 after each, so that no two near texts have one digest.
    uint64_t hash = 0x9e3779b97f4a7c15 ^ bytes.size();
    const auto mixed = [](uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    };
    size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
        uint64_t word;
        std::memcpy(&word, bytes.data() + i, sizeof word);
        hash = mixed(hash ^ word) + 0x9e3779b97f4a7c15;
    }
    uint64_t last = 0;
    std::memcpy(&last, bytes.data() + i, bytes.size() - i);
    return mixed(hash ^ last);
}

messages::FeatureMap quantised(const messages::FeatureMap& model) {
    messages::FeatureMap small = model;
    for (messages::Feature& feature : small.features) {
        std::vector<float> values;
        if (feature.type == messages::ElementType::float32)
            values = floats<float>(feature.data);
        else if (feature.type == messages::ElementType::float64)
            values = floats<double>(feature.data);
        else
            continue;
        if (values.empty()) continue;
        const auto [low, high] = std::ranges::minmax(values);
        const float step = (high - low) / 255;
        feature.type = messages::ElementType::quantised;
        feature.low = low;
        feature.high = high;
        feature.data.resize(values.size());
        for (size_t i = 0; i < values.size(); ++i) {
            const float place = step > 0 ? std::nearbyint((values[i] - low) / step) : 0.0f;
            feature.data[i] = static_cast<char>(static_cast<uint8_t>(std::clamp(place, 0.0f, 255.0f)));
        }
    }
    return small;
}

Request Job::taken(std::string_view endpoint, messages::Envelope envelope, const JobOptions& options) {
    const auto known = std::ranges::find(messages::kEndpoints, endpoint);
    if (known == messages::kEndpoints.end()) throw Refusal{404, "there is no such endpoint"};
    Request request{*known, std::move(envelope), {}, {}};
    if (endpoint == messages::kUpdateModel) request.digest = digest_of(request.envelope.content);
    request.content = content_of(endpoint, request.envelope.content);
    if (options.verifies && (endpoint == messages::kStartFLJob || !request.envelope.certificate.empty())) {
        if (!options.certificate) throw Refusal{500, "clients cannot be verified: the libraries for it are missing"};
        request.certificate = options.certificate(request.envelope.certificate);
    }
    return request;
}

Job::Job(Store& store, std::string name, JobOptions options)
    : store_(store), name_(std::move(name)), options_(std::move(options)) {
    number_ = store_.job(name_);
    refresh();
}

void Job::refresh() {
    const bool is_new = !rounds_ || row_.sequence < 0;
    if (!is_new && store_.sequence(number_) == row_.sequence) return;
    row_ = store_.row(number_);
    now_ = is_new ? row_.time : std::max(now_, row_.time);
    rounds_.reset();
    secure_.reset();
    if (row_.rounds.empty()) {
        rounds_.emplace(options_.rounds, members_in(store_, number_));
        has_changed_ = true;
    } else {
        rounds_.emplace(options_.rounds, row_.rounds, members_in(store_, number_));
    }
    noted_ = rounds_->last().iteration;
    load_model();
}

void Job::load_model() {
    if (row_.model_version < 0 || row_.model_version == loaded_version_) return;
    model_ = std::make_shared<const std::string>(store_.model(number_, row_.model_version));
    const auto map = messages::parsed<messages::FeatureMap>(*model_, "the model");
    shape_ = ModelShape(map, options_.largest_weight);
    sent_model_ =
        options_.quantises_download ? std::make_shared<const std::string>(messages::written(quantised(map))) : model_;
    loaded_version_ = row_.model_version;
}

void Job::save() {
    if (!has_changed_) return;
    row_.rounds = rounds_->bytes(false);
    row_.time = now_;
    ++row_.sequence;
    store_.put(number_, row_);
    has_changed_ = false;
}

Reaction Job::refused(Code code, std::string_view reason, Time next) const {
    messages::Reply reply;
    reply.code = code;
    reply.reason = reason;
    reply.iteration = rounds_->iteration();
    reply.next_request_time = to_wall(next);
    reply.timestamp = wall_;
    return {std::move(reply)};
}

Reaction Job::as(const Answer& answer, std::shared_ptr<const std::string> content) {
    has_changed_ |= answer.changed;
    Reaction reaction = refused(answer.code, answer.reason, answer.next_request);
    reaction.reply.iteration = answer.iteration;
    if (answer.code == Code::succeed) reaction.content = std::move(content);
    return reaction;
}

Job::Handler Job::handler_of(std::string_view endpoint) {
    constexpr auto at = [](Phase phase) { return static_cast<size_t>(phase); };
    static const std::map<std::string_view, Handler> kHandlers = {
        {messages::kStartFLJob, &Job::start},
        {messages::kExchangeKeys, &Job::brought<at(Phase::exchanging_keys)>},
        {messages::kGetKeys, &Job::looked<at(Phase::exchanging_keys)>},
        {messages::kShareSecrets, &Job::brought<at(Phase::sharing_secrets)>},
        {messages::kGetSecrets, &Job::looked<at(Phase::sharing_secrets)>},
        {messages::kUpdateModel, &Job::update},
        {messages::kGetClientList, &Job::looked<at(Phase::updating)>},
        {messages::kPushListSign, &Job::brought<at(Phase::signing_lists)>},
        {messages::kGetListSign, &Job::looked<at(Phase::signing_lists)>},
        {messages::kReconstructSecrets, &Job::brought<at(Phase::reconstructing)>},
        {messages::kGetModel, &Job::model},
        {messages::kPushMetrics, &Job::metrics},
        {messages::kPullWeights, &Job::pull},
        {messages::kPushWeights, &Job::push}};
    return kHandlers.at(endpoint);
}

Reaction Job::answer(Request& request, int64_t wall) {
    wall_ = wall;
    if (!has_model()) return refused(Code::not_ready, "the job has no model yet", now_ + options_.retry);
    if (!row_.is_enabled)
        return refused(Code::out_of_time, "the job is disabled by its administrator",
                       now_ + options_.rounds.start_window);
    const DeviceId device = device_of(request.envelope.client);
    if (options_.verifies)
        if (auto refusal = stranger(request, device, wall)) return std::move(*refusal);
    Reaction reaction = (this->*handler_of(request.endpoint))(request, device);
    note_end();
    return reaction;
}

// A client that is not the one that it says, or a request that was heard before.
std::optional<Reaction> Job::stranger(const Request& request, DeviceId device, int64_t wall) {
    const messages::Envelope& envelope = request.envelope;
    std::string key;
    if (request.endpoint == messages::kStartFLJob || !envelope.certificate.empty()) {
        const ClientCertificate& shown = request.certificate;
        if (!shown.problem.empty())
            return refused(Code::request_error, str("the client's certificate is refused: ", shown.problem));
        if (shown.name != envelope.client)
            return refused(Code::request_error, "the client's certificate has another name");
        if (shown.key.size() != messages::kKeyBytes)
            return refused(Code::request_error, "the client's certificate has no Ed25519 key");
        key = shown.key;
    } else {
        const auto known = store_.device(number_, device);
        if (!known || known->name != envelope.client) {
            // Of an iteration that is over no keys are left, and nothing is done for it: it is only told that it is.
            if (rounds_->phase() == Phase::finished) return refused(Code::out_of_time, "the job is over");
            if (envelope.iteration > 0 && envelope.iteration < rounds_->iteration())
                return refused(Code::out_of_time, "the iteration is over", now_ + options_.retry);
            return refused(Code::request_error, "the client has not started in this iteration: it has no key here");
        }
        key = known->key;
    }
    const int64_t apart = wall - envelope.timestamp;
    if (apart > options_.replay_window || apart < -options_.replay_window)
        return refused(Code::request_error, str("the request's timestamp is ", apart > 0 ? apart : -apart, " ms ",
                                                apart > 0 ? "behind" : "ahead of", " the server's clock; at most ",
                                                options_.replay_window, " ms are allowed"));
    if (!options_.signature || !options_.signature(key, envelope.signed_bytes(request.endpoint), envelope.signature))
        return refused(Code::request_error, "the request's signature is not the client's");
    // Requests later than that are refused by their timestamp.
    if (!store_.put_signature(number_, envelope.signature, envelope.timestamp + 2 * options_.replay_window))
        return refused(Code::request_error,
                       "replayed: the request was sent before, and a repeated one needs a new timestamp");
    return std::nullopt;
}

// The plan and the model, as the content of startFLJob's answer.
std::shared_ptr<const std::string> Job::invitation() {
    if (invitation_version_ != loaded_version_ || invitation_iteration_ != row_.plan_iteration || !invitation_) {
        ProtoWriter selected;
        selected.integer(1, 1);
        const std::string head = selected.text() + as_field(2, row_.plan);
        messages::FeatureMap none;
        none.version = loaded_version_;
        invitation_ = std::make_shared<const std::string>(head + as_field(3, *sent_model_));
        short_invitation_ = std::make_shared<const std::string>(head + as_field(3, messages::written(none)));
        invitation_version_ = loaded_version_;
        invitation_iteration_ = row_.plan_iteration;
    }
    return invitation_;
}

Reaction Job::start(Request& request, DeviceId device) {
    const auto& content = std::get<messages::StartFLJob>(request.content);
    if (content.samples < 1) return refused(Code::request_error, "a client without samples cannot take part");
    if (row_.plan_iteration != rounds_->iteration() && rounds_->phase() != Phase::finished)
        return refused(Code::not_ready, "the iteration is about to begin", now_ + options_.retry);
    if (const Time until = awaits_weights(); until > now_)
        return refused(Code::not_ready, "the weights of a worker on the server are awaited",
                       std::min(until, now_ + options_.retry));
    if (const auto known = store_.device(number_, device); known && known->name != request.envelope.client)
        return refused(Code::request_error, "another client's name has the same number: use another name");
    const Answer answer = rounds_->start(now_, device);
    if (answer.code != Code::succeed) return as(answer);
    if (began_ == 0) began_ = now_;
    if (answer.changed)
        store_.put_device(number_, device,
                          {request.envelope.client, options_.verifies ? request.certificate.key : content.public_key,
                           content.samples, now_});
    invitation();
    return as(answer,
              content.model_version == loaded_version_ && loaded_version_ > 0 ? short_invitation_ : invitation_);
}

Reaction Job::update(Request& request, DeviceId device) {
    auto& content = std::get<messages::UpdateModel>(request.content);
    if (std::string problem = shape_.problem(content, options_.upload); !problem.empty())
        return refused(Code::request_error, problem);
    if (options_.payload_bytes > 0 && !content.payload.empty() &&
        static_cast<int64_t>(content.payload.size()) != options_.payload_bytes)
        return refused(Code::request_error,
                       str("the payload has ", content.payload.size(), " bytes, not ", options_.payload_bytes));
    if (has_change(options_.upload)) {
        try {
            (void)change(request.envelope.iteration, content.payload);
        } catch (const Error& error) {
            return refused(Code::request_error, str("the payload is refused: ", error.message()));
        }
    }
    tick();
    const int64_t iteration = rounds_->iteration();
    if (options_.upload == messages::Encoding::masked && is_awaited(request, device, Phase::updating))
        if (std::string problem = secure_refusal(request, Phase::updating); !problem.empty())
            return refused(Code::request_error, problem);
    const Answer answer = rounds_->update(now_, device, request.envelope.iteration, request.digest);
    if (answer.code == Code::succeed && !answer.repeated) {
        const auto client = store_.device(number_, device);
        store_.put_update(
            number_, iteration,
            {request.envelope.client, content.samples, answer.staleness, client ? now_ - client->started : 0},
            request.envelope.content);
        for (const messages::Metric& metric : content.metrics)
            store_.put_metric(number_, iteration, request.envelope.client, metric.name, metric.value);
    } else if (answer.code != Code::succeed) {
        secure_.reset();
    }
    follow();
    return as(answer);
}

std::vector<double> Job::change(int64_t iteration, std::string_view payload) const {
    const auto plan = messages::parsed<messages::Plan>(row_.plan, "the plan");
    return change_of(plan, iteration, static_cast<int64_t>(shape_.aggregated()), payload);
}

SecureRound& Job::secure() {
    if (!secure_ || secure_->iteration() != rounds_->iteration()) {
        SecureSettings settings;
        settings.job = name_;
        settings.iteration = rounds_->iteration();
        settings.ring = options_.code.ring;
        settings.size = shape_.aggregated() + static_cast<size_t>(options_.further) + 1;
        settings.threshold = static_cast<size_t>(options_.share_threshold);
        settings.neighbours = static_cast<size_t>(options_.neighbours);
        settings.is_signed = options_.verifies;
        const auto key = [this](std::string_view client, std::string_view) -> std::optional<Bytes32> {
            const auto known = store_.device(number_, device_of(client));
            return known && known->name == client ? array_of<32>(known->key) : std::nullopt;
        };
        secure_ = std::make_unique<SecureRound>(store_, number_, options_.rounds.encryption == Encryption::stable,
                                                std::move(settings), key, rounds_->phase());
    }
    return *secure_;
}

bool Job::is_awaited(const Request& request, DeviceId device, Phase phase) const {
    const auto mark = rounds_->members().find(device);
    return rounds_->phase() == phase && request.envelope.iteration == rounds_->iteration() && mark &&
           mark->iteration == rounds_->iteration();
}

std::string Job::secure_refusal(const Request& request, Phase phase) {
    try {
        secure().accept(phase, request.envelope.client, request.envelope.content);
    } catch (const Error& error) {
        return error.message();
    }
    return {};
}

// The sum goes through the phases of the iteration.
void Job::follow() {
    if (!secure_) return;
    if (secure_->iteration() != rounds_->iteration())
        secure_.reset();
    else
        secure_->follow(rounds_->phase());
}

Reaction Job::bring(Request& request, DeviceId device, Phase phase) {
    tick();
    const int64_t iteration = rounds_->iteration();
    if (options_.rounds.encryption != Encryption::none && is_awaited(request, device, phase))
        if (std::string problem = secure_refusal(request, phase); !problem.empty())
            return refused(Code::request_error, problem);
    const Answer answer = rounds_->cipher(now_, device, request.envelope.iteration, phase);
    if (answer.code == Code::succeed && !answer.repeated)
        store_.put_part(number_, iteration, phase, {request.envelope.client, "", request.envelope.content});
    else if (answer.code != Code::succeed)
        secure_.reset();
    follow();
    return as(answer);
}

Reaction Job::look(Request& request, DeviceId device, Phase phase) {
    const Answer answer = rounds_->look(now_, device, request.envelope.iteration, phase);
    follow();
    if (answer.code != Code::succeed) return as(answer);
    try {
        return as(answer, std::make_shared<const std::string>(secure().looked(phase, request.envelope.client)));
    } catch (const Error& error) {
        has_changed_ |= answer.changed;
        return refused(Code::out_of_time, error.message(), now_ + options_.rounds.cipher_window);
    }
}

Job::Mean Job::secure_mean() {
    const SecureSum sum = secure().finish();
    secure_.reset();
    Mean mean;
    mean.clients = sum.clients;
    mean.samples = options_.code.ring.number(sum.elements.back());
    mean.values = options_.code.mean("secure aggregation", sum.elements);
    return mean;
}

Reaction Job::model(Request& request, DeviceId) {
    Reaction reaction = as(rounds_->model(now_, request.envelope.iteration), sent_model_);
    const Ended& last = rounds_->last();
    if (last.iteration == request.envelope.iteration && !last.valid)
        reaction.reply.reason = str(reaction.reply.reason, ": ", last.reason);
    return reaction;
}

Reaction Job::metrics(Request& request, DeviceId) {
    const auto& content = std::get<messages::PushMetrics>(request.content);
    constexpr size_t kMost = 100;
    if (content.metrics.size() > kMost)
        return refused(Code::request_error, str(content.metrics.size(), " metrics; at most ", kMost, " are kept"));
    for (const messages::Metric& metric : content.metrics)
        store_.put_metric(number_, rounds_->iteration(), request.envelope.client, metric.name, metric.value);
    return refused(Code::succeed, {});
}

Reaction Job::pull(Request&, DeviceId) {
    Reaction reaction = refused(Code::succeed, {});
    reaction.content = sent_model_;
    return reaction;
}

// Until when an iteration waits for a worker to train with the new model; 0: it does not.
Time Job::awaits_weights() {
    const Ended& last = rounds_->last();
    if (!options_.takes_weights || last.iteration == 0 || !last.valid || rounds_->taken(Phase::starting) > 0) return 0;
    return store_.parts(number_, rounds_->iteration(), Phase::starting).empty() ? last.at + options_.rounds.start_window
                                                                                : 0;
}

// A worker's weights, between two iterations; they become the model.
Reaction Job::push(Request& request, DeviceId) {
    if (!options_.takes_weights)
        return refused(Code::request_error,
                       "this job takes no weights but clients' updates: server_mode is FEDERATED_LEARNING, or the "
                       "strategy trains on the server itself");
    auto& weights = std::get<messages::FeatureMap>(request.content);
    if (std::string problem = shape_.problem(weights); !problem.empty()) return refused(Code::request_error, problem);
    if (rounds_->phase() == Phase::finished) return refused(Code::out_of_time, "the job is over");
    // Clients that have started train with the model that they were given.
    if (rounds_->phase() != Phase::starting || rounds_->taken(Phase::starting) > 0)
        return refused(Code::not_ready, "an iteration is on its way", now_ + options_.retry);
    if (weights.version != row_.model_version)
        return refused(Code::out_of_time, str("the weights go on from the model of iteration ", weights.version,
                                              ", and the job has that of iteration ", row_.model_version));
    auto model = messages::parsed<messages::FeatureMap>(*model_, "the model");
    for (messages::Feature& feature : model.features)
        if (const auto sent = std::ranges::find(weights.features, feature.name, &messages::Feature::name);
            sent != weights.features.end())
            feature.data = sent->data;
    store_.put_model(number_, row_.model_version, messages::written(model));
    store_.put_part(number_, rounds_->iteration(), Phase::starting, {request.envelope.client, "", ""});
    loaded_version_ = -1;
    has_changed_ = true;
    load_model();
    invitation_.reset();
    return refused(Code::succeed, {});
}

void Job::tick() {
    if (!row_.is_enabled || !has_model()) return;
    has_changed_ |= rounds_->tick(now_);
    note_end();
}

// An iteration that has ended without the owner's doing.
void Job::note_end() {
    const Ended& last = rounds_->last();
    if (last.iteration == noted_) return;
    noted_ = last.iteration;
    if (!last.valid) {
        HistoryRow row;
        row.iteration = last.iteration;
        row.reason = last.reason;
        row.clients = static_cast<int64_t>(store_.updates(number_, last.iteration).size());
        row.began = began_;
        row.ended = now_;
        row.metrics = store_.metrics(number_, last.iteration);
        store_.put_history(number_, row);
    }
    began_ = 0;
    store_.forget_before(number_, rounds_->iteration());
    store_.forget_signatures(number_, wall_);
    has_changed_ = true;
}

Work Job::work() const {
    Work work;
    work.job = name_;
    work.iteration = rounds_->iteration();
    if (!row_.is_enabled || !has_model()) return work;
    if (rounds_->phase() == Phase::aggregating)
        work.kind = Work::Kind::aggregate;
    else if (rounds_->phase() != Phase::finished && row_.plan_iteration != rounds_->iteration())
        work.kind = Work::Kind::plan;
    return work;
}

void Job::plan(int64_t iteration, std::string plan) {
    if (iteration != rounds_->iteration()) return;
    row_.plan_iteration = iteration;
    row_.plan = std::move(plan);
    invitation_.reset();
    has_changed_ = true;
}

void Job::finish(int64_t iteration, std::string model, std::string strategy, std::string plan, std::string_view reason,
                 std::string_view metrics) {
    // The iteration may have been finished by another server, or by the administrator.
    if (iteration != rounds_->iteration() || rounds_->phase() != Phase::aggregating) return;
    const bool is_valid = !model.empty();
    HistoryRow row;
    row.iteration = iteration;
    row.is_valid = is_valid;
    row.reason = reason;
    row.clients = static_cast<int64_t>(store_.updates(number_, iteration).size());
    row.began = began_;
    row.ended = now_;
    row.metrics = metrics;
    secure_.reset();
    if (is_valid) {
        put_model(model, strategy);
        store_.put_history(number_, row);
        began_ = 0;
    }
    rounds_->finish(now_, is_valid, reason);
    if (is_valid) {
        noted_ = rounds_->last().iteration;
        store_.forget_before(number_, rounds_->iteration());
        this->plan(rounds_->iteration(), std::move(plan));
    }
    has_changed_ = true;
    note_end();
}

void Job::put_model(std::string_view model, std::string_view strategy) {
    const int64_t version = messages::parsed<messages::FeatureMap>(model, "the model").version;
    store_.put_model(number_, version, model);
    row_.model_version = version;
    row_.strategy = strategy;
    loaded_version_ = -1;
    load_model();
    invitation_.reset();
    has_changed_ = true;
}

void Job::enable(bool is_enabled) {
    has_changed_ |= is_enabled != row_.is_enabled;
    row_.is_enabled = is_enabled;
}

void Job::begin_instance(JobSettings settings, std::string name, std::string overrides) {
    settings.name = name_;
    settings.check();
    secure_.reset();
    store_.forget_before(number_, std::numeric_limits<int64_t>::max());
    members_in(store_, number_)->forget_before(std::numeric_limits<int64_t>::max());
    options_.rounds = std::move(settings);
    rounds_.emplace(options_.rounds, members_in(store_, number_));
    noted_ = rounds_->last().iteration;
    began_ = 0;
    row_.instance = std::move(name);
    row_.overrides = std::move(overrides);
    row_.plan_iteration = 0;
    row_.is_enabled = true;
    has_changed_ = true;
}

void Job::stop(std::string_view reason) {
    rounds_->stop(now_, reason);
    note_end();
    has_changed_ = true;
}

std::string Job::state() const {
    JsonText json;
    json.open('{');
    json.key("fl_name").string(name_).key("instance_name").string(row_.instance);
    json.key("state").string(!row_.is_enabled                      ? "disabled"
                             : rounds_->phase() == Phase::finished ? "finished"
                                                                   : "running");
    json.key("phase").string(federated::name_of(rounds_->phase())).key("iteration_num").number(rounds_->iteration());
    json.key("iterations").number(options_.rounds.iterations).key("model_version").number(row_.model_version);
    json.key("started").number(rounds_->taken(Phase::starting)).key("updated").number(rounds_->taken(Phase::updating));
    json.key("start_fl_job_threshold").number(options_.rounds.start_threshold);
    const Ended& last = rounds_->last();
    json.key("last").open('{').key("iteration_num").number(last.iteration).key("valid").boolean(last.valid);
    json.key("reason").string(last.reason).close('}').close('}');
    return json.text();
}

}  // namespace lunaria::federated
