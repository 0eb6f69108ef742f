// The C interface of clients.
#include <poll.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "core/federated/client/job.h"
#include "core/federated/device/lunaria_fl.h"

namespace client = lunaria::federated::client;
namespace messages = lunaria::federated::messages;
using lunaria::str;
using messages::ElementType;

struct lunaria_fl_client {
    client::JobOptions options;
    std::unique_ptr<client::Job> job;  // from the first event on
    client::Event event;
    std::vector<messages::Metric> metrics;
    std::atomic<bool> is_stopped = false;
};

namespace {

thread_local std::string last_error;

int fail(std::string_view message) {
    last_error = message;
    return -1;
}

// Runs what may throw.
template <class F>
int guarded(F f) {
    try {
        return f();
    } catch (const std::exception& error) {
        return fail(error.what());
    }
}

int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

bool number(std::string_view text, double& value) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0 &&
           value <= 9e15;
}

bool seed_of(std::string_view digits, std::string& seed) {
    constexpr size_t kDigits = 64;
    seed.clear();
    if (digits.size() != kDigits) return false;
    for (size_t i = 0; i < kDigits; i += 2) {
        unsigned byte = 0;
        const auto [end, problem] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
        if (problem != std::errc() || end != digits.data() + i + 2) return false;
        seed.push_back(static_cast<char>(byte));
    }
    return true;
}

int set_signing(client::JobOptions& options, std::string_view value) {
    options.signs = value != "0";
    if (value == "0" || value == "1" || seed_of(value, options.signing_key)) return 0;
    return fail("signing is 0, 1, or a seed of 64 hexadecimal digits");
}

int set(client::JobOptions& options, std::string_view name, std::string_view value) {
    client::ConnectionOptions& connection = options.connection;
    const std::map<std::string_view, std::string*> texts = {{"state", &options.state_path},
                                                            {"ca_cert_path", &connection.authorities},
                                                            {"client_cert_path", &connection.certificate},
                                                            {"client_key_path", &connection.key},
                                                            {"client_password", &connection.password},
                                                            {"crl_path", &connection.revoked},
                                                            {"cipher_list", &connection.ciphers},
                                                            {"signing_certificate", &options.certificate},
                                                            {"proxy", &connection.proxy}};
    const std::map<std::string_view, int64_t*> seconds = {
        {"patience", &options.patience_ms},     {"connect_timeout", &connection.connect_ms},
        {"idle_timeout", &connection.idle_ms},  {"timeout", &connection.request_ms},
        {"backoff", &options.backoff.first_ms}, {"most_backoff", &options.backoff.most_ms}};
    const std::map<std::string_view, int64_t*> integers = {{"samples", &options.samples},
                                                           {"iterations", &options.iterations},
                                                           {"seed", &options.backoff.seed},
                                                           {"upload_limit", &connection.upload_rate},
                                                           {"download_limit", &connection.download_rate}};
    if (name == "signing") return set_signing(options, value);
    if (const auto found = texts.find(name); found != texts.end()) {
        *found->second = value;
        return 0;
    }
    double given = 0;
    const auto second = seconds.find(name);
    const auto integer = integers.find(name);
    if (second == seconds.end() && integer == integers.end()) return fail(str("there is no option '", name, "'"));
    if (!number(value, given)) return fail(str(name, " must be a number that is not negative, got '", value, "'"));
    if (second != seconds.end())
        *second->second = static_cast<int64_t>(given * 1000);
    else
        *integer->second = static_cast<int64_t>(given);
    return 0;
}

client::Job& job_of(lunaria_fl_client& c) {
    if (c.job) return *c.job;
    std::string problem;
    auto connection = client::connect(
        c.options.connection, [&c] { return c.is_stopped.load(); }, problem);
    if (!connection) throw lunaria::state_error("lunaria_fl", problem);
    c.job = std::make_unique<client::Job>(c.options, std::move(connection), now_ms);
    return *c.job;
}

struct Type {
    lunaria_lite_dtype lite;
    ElementType element;
};
constexpr Type kTypes[] = {{LUNARIA_LITE_FLOAT32, ElementType::float32}, {LUNARIA_LITE_FLOAT64, ElementType::float64},
                           {LUNARIA_LITE_FLOAT16, ElementType::float16}, {LUNARIA_LITE_BFLOAT16, ElementType::bfloat16},
                           {LUNARIA_LITE_INT32, ElementType::int32},     {LUNARIA_LITE_INT64, ElementType::int64},
                           {LUNARIA_LITE_INT8, ElementType::int8},       {LUNARIA_LITE_UINT8, ElementType::uint8},
                           {LUNARIA_LITE_BOOL, ElementType::boolean}};

// The weight of that name; false where there is none.
bool weight_of(lunaria_lite_model* model, const std::string& name, lunaria_lite_tensor& weight) {
    for (size_t i = 0; lunaria_lite_model_weight(model, i, &weight) == 0; ++i)
        if (name == weight.name) return true;
    return false;
}

bool fits(const lunaria_lite_tensor& weight, const messages::Feature& feature) {
    const bool same_shape = static_cast<size_t>(weight.rank) == feature.shape.size() &&
                            std::equal(feature.shape.begin(), feature.shape.end(), weight.shape);
    for (const Type& type : kTypes)
        if (type.lite == weight.dtype) return same_shape && type.element == feature.type;
    return false;
}

int check_weight(lunaria_lite_model* model, const messages::Feature& feature, lunaria_lite_tensor& weight) {
    if (!weight_of(model, feature.name, weight)) return fail(str("the model has no weight '", feature.name, "'"));
    if (!fits(weight, feature))
        return fail(str("the weight '", feature.name, "' has another shape or dtype than the job's"));
    return 0;
}

// Waits, but for as long as nothing stops the client.
int wait(const lunaria_fl_client& c, int64_t ms) {
    constexpr int64_t kTurnMs = 50;
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(ms);
    for (;;) {
        if (c.is_stopped) return fail("stopped");
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return 0;
        poll(nullptr, 0, static_cast<int>(std::min<int64_t>(left, kTurnMs)));
    }
}

}  // namespace

const char* lunaria_fl_error() { return last_error.c_str(); }

lunaria_fl_client* lunaria_fl_client_create(const char* url, const char* job, const char* name) {
    if (!url || !job || !name || !*job || !*name) return fail("url, job and client must be texts"), nullptr;
    const std::string_view address = url;
    if (!address.starts_with("http://") && !address.starts_with("https://"))
        return fail("url must begin with http:// or https://"), nullptr;
    auto made = std::make_unique<lunaria_fl_client>();
    made->options.connection.url = address.substr(0, address.find_last_not_of('/') + 1);
    made->options.job = job;
    made->options.client = name;
    return made.release();
}

void lunaria_fl_client_free(lunaria_fl_client* c) { delete c; }

int lunaria_fl_client_set(lunaria_fl_client* c, const char* name, const char* value) {
    if (!c || !name || !value) return fail("a client, a name and a value are expected");
    if (c->job) return fail(str(name, " must be set before the first event"));
    return guarded([&] { return set(c->options, name, value); });
}

int lunaria_fl_client_next(lunaria_fl_client* c, lunaria_fl_event* event) {
    if (!c || !event) return fail("a client and an event are expected");
    return guarded([&] {
        if (c->is_stopped) return fail("stopped");
        c->event = job_of(*c).advance();
        *event = {static_cast<lunaria_fl_kind>(c->event.kind), c->event.wait_ms, c->event.reason.c_str()};
        return 0;
    });
}

int lunaria_fl_client_plan(lunaria_fl_client* c, lunaria_fl_plan* plan) {
    if (!c || !plan || !c->job) return fail("there is no plan before LUNARIA_FL_TRAIN");
    const messages::Plan& given = c->job->plan();
    *plan = {c->job->iteration(), given.iterations,    given.epochs,       given.batch_size,
             given.learning_rate, c->job->draw_seed(), given.rule.c_str(), given.settings.c_str()};
    return 0;
}

int lunaria_fl_client_load(lunaria_fl_client* c, lunaria_lite_model* model) {
    if (!c || !model || !c->job) return fail("a client after an event and a model are expected");
    return guarded([&] {
        std::vector<lunaria_lite_tensor> weights;
        std::vector<const messages::Feature*> features;
        for (const messages::Feature& feature : c->job->model().features) {
            lunaria_lite_tensor weight{};
            if (!feature.is_aggregated && !weight_of(model, feature.name, weight)) continue;
            if (check_weight(model, feature, weight) != 0) return -1;
            weight.data = const_cast<char*>(feature.data.data());
            weight.bytes = feature.data.size();
            weights.push_back(weight);
        }
        if (lunaria_lite_model_update_weights(model, weights.data(), weights.size()) != 0)
            return fail(lunaria_lite_error());
        return 0;
    });
}

int lunaria_fl_client_metric(lunaria_fl_client* c, const char* name, double value) {
    if (!c || !name || !*name || !std::isfinite(value))
        return fail("a client, a name and a finite number are expected");
    return guarded([&] {
        c->metrics.push_back({name, value});
        return 0;
    });
}

int lunaria_fl_client_send(lunaria_fl_client* c, lunaria_lite_model* model, int64_t samples) {
    if (!c || !model || !c->job) return fail("a client after LUNARIA_FL_TRAIN and a model are expected");
    if (samples < 1) return fail("an update has one sample or more");
    return guarded([&] {
        client::LocalUpdate update;
        update.samples = samples;
        for (const messages::Feature& feature : c->job->model().features) {
            if (!feature.is_aggregated) continue;
            lunaria_lite_tensor weight{};
            if (check_weight(model, feature, weight) != 0) return -1;
            messages::Feature sent = feature;
            sent.data.assign(static_cast<const char*>(weight.data), weight.bytes);
            update.features.push_back(std::move(sent));
        }
        update.metrics = std::exchange(c->metrics, {});
        c->job->give(std::move(update));
        return 0;
    });
}

int lunaria_fl_client_run(lunaria_fl_client* c, lunaria_lite_trainer* trainer, lunaria_fl_train* train,
                          lunaria_fl_evaluate* evaluate, void* user) {
    lunaria_lite_model* model = trainer ? lunaria_lite_trainer_model(trainer) : nullptr;
    if (!c || !model || !train) return fail("a client, a built trainer and a function that trains are expected");
    for (;;) {
        lunaria_fl_event event;
        lunaria_fl_plan plan;
        if (lunaria_fl_client_next(c, &event) != 0) return -1;
        switch (event.kind) {
            case LUNARIA_FL_ENDED:
                return 0;
            case LUNARIA_FL_WAIT:
                if (event.wait_ms > 0 && wait(*c, event.wait_ms) != 0) return -1;
                break;
            case LUNARIA_FL_TRAIN: {
                if (lunaria_fl_client_plan(c, &plan) != 0 || lunaria_fl_client_load(c, model) != 0) return -1;
                const int64_t samples = train(trainer, &plan, user);
                if (samples < 0) return fail("the training gave up");
                if (lunaria_fl_client_send(c, model, samples) != 0) return -1;
                break;
            }
            case LUNARIA_FL_MODEL:
                if (lunaria_fl_client_load(c, model) != 0) return -1;
                if (evaluate && lunaria_fl_client_plan(c, &plan) == 0) evaluate(trainer, &plan, user);
        }
    }
}

void lunaria_fl_client_stop(lunaria_fl_client* c) {
    if (c) c->is_stopped = true;
}

int64_t lunaria_fl_client_updates(const lunaria_fl_client* c) { return c && c->job ? c->job->updates() : 0; }
int64_t lunaria_fl_client_repeats(const lunaria_fl_client* c) { return c && c->job ? c->job->repeats() : 0; }
