// The module behind lunaria/federated/client.lua: a client's part in a job, one request at a time.
#include <poll.h>

#include <algorithm>
#include <chrono>

#include "core/base/interrupt.h"
#include "core/federated/client/job.h"
#include "core/io/secure_random.h"
#include "interpreter/bindings/federated_features.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/serve/http.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

namespace client = federated::client;
namespace messages = federated::messages;

constexpr std::string_view kWhere = "federated.Client";
constexpr const char* kJobHandle = "lunaria.federated.job";
using JobHandle = std::unique_ptr<client::Job>;

client::Job& job_at(lua_State* L) {
    JobHandle& job = handle_at<JobHandle>(L, 1, kJobHandle);
    if (!job) throw state_error(kWhere, "the client is closed");
    return *job;
}

// Fields of the table at 1, which lunaria/federated/client.lua has checked; what is missing stays as it is.
void take(lua_State* L, const char* name, std::string& value) {
    lua_getfield(L, 1, name);
    size_t size = 0;
    if (const char* text = lua_tolstring(L, -1, &size)) value.assign(text, size);
    lua_pop(L, 1);
}
template <class Integer>
void take(lua_State* L, const char* name, Integer& value) {
    lua_getfield(L, 1, name);
    if (!lua_isnil(L, -1)) value = static_cast<Integer>(luaL_checkinteger(L, -1));
    lua_pop(L, 1);
}
void take(lua_State* L, const char* name, bool& value) {
    lua_getfield(L, 1, name);
    if (!lua_isnil(L, -1)) value = lua_toboolean(L, -1);
    lua_pop(L, 1);
}
int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

// The keys by which other clients sign, of certificates that the authorities (PEM) have issued.
federated::SigningKeys keys_by(std::string authorities) {
    const auto verify = serve::verify_certificate();
    return [verify, authorities = std::move(authorities)](std::string_view client, std::string_view certificate) {
        serve::VerifiedCertificate verified;
        verify({certificate, authorities, {}}, verified);
        const bool is_fine = verified.problem.empty() && verified.name == client;
        return is_fine ? federated::array_of<32>(verified.key) : std::nullopt;
    };
}

// open{ url =, job =, client =, ... } -> a job
int open(lua_State* L) {
    client::JobOptions options;
    take(L, "job", options.job);
    take(L, "client", options.client);
    take(L, "samples", options.samples);
    take(L, "patience", options.patience_ms);
    take(L, "state", options.state_path);
    take(L, "identity", options.certificate);
    take(L, "signing_key", options.signing_key);
    take(L, "signs", options.signs);
    std::string peers;  // the authorities of the other clients' certificates
    take(L, "peer_authorities", peers);
    if (!peers.empty()) options.signing_keys = keys_by(std::move(peers));
    take(L, "iterations", options.iterations);
    take(L, "seed", options.backoff.seed);
    take(L, "backoff", options.backoff.first_ms);
    take(L, "most_backoff", options.backoff.most_ms);
    client::ConnectionOptions& connection = options.connection;
    take(L, "url", connection.url);
    take(L, "authorities", connection.authorities);
    take(L, "certificate", connection.certificate);
    take(L, "key", connection.key);
    take(L, "password", connection.password);
    take(L, "revoked", connection.revoked);
    take(L, "ciphers", connection.ciphers);
    take(L, "proxy", connection.proxy);
    take(L, "connect_timeout", connection.connect_ms);
    take(L, "idle_timeout", connection.idle_ms);
    take(L, "request_timeout", connection.request_ms);
    take(L, "upload_rate", connection.upload_rate);
    take(L, "download_rate", connection.download_rate);
    int64_t skew = 0;  // of the clock, for tests
    take(L, "clock_skew", skew);
    std::string problem;
    auto server = client::connect(connection, interrupt_requested, problem);
    if (!server)
        throw state_error(kWhere, problem)
            .hint("clients need libcurl (libcurl4-openssl-dev, libcurl4) and the target lunaria_http_client");
    auto job = std::make_unique<client::Job>(std::move(options), std::move(server), [skew] { return now_ms() + skew; });
    push_handle<JobHandle>(L, std::move(job), kJobHandle);
    return 1;
}

int close(lua_State* L) {
    handle_at<JobHandle>(L, 1, kJobHandle).reset();
    return 0;
}

int push_job_event(lua_State* L, const client::Event& event) {
    constexpr const char* kKinds[] = {"wait", "train", "model", "ended"};
    lua_pushstring(L, kKinds[static_cast<int>(event.kind)]);
    lua_pushinteger(L, event.wait_ms);
    push(L, std::string_view(event.reason));
    return 3;
}

// advance(job) -> "wait", "train", "model" or "ended", milliseconds to wait, a reason
int advance(lua_State* L) { return push_job_event(L, job_at(L).advance()); }

void set(lua_State* L, const char* name, std::string_view text) {
    push(L, text);
    lua_setfield(L, -2, name);
}
void set(lua_State* L, const char* name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}
void set(lua_State* L, const char* name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

// plan(job) -> the plan of the iteration
int plan(lua_State* L) {
    const client::Job& job = job_at(L);
    const messages::Plan& plan = job.plan();
    lua_newtable(L);
    set(L, "iteration", job.iteration());
    set(L, "aggregation", plan.aggregation);
    set(L, "rule", plan.rule);
    set(L, "iterations", plan.iterations);
    set(L, "epochs", plan.epochs);
    set(L, "batch_size", plan.batch_size);
    set(L, "learning_rate", plan.learning_rate);
    set(L, "seed", plan.seed);
    set(L, "settings", plan.settings);
    set(L, "encryption", plan.cipher.type);
    push_features(L, plan.extra);
    lua_setfield(L, -2, "extra");
    lua_newtable(L);
    for (size_t i = 0; i < plan.metrics.size(); ++i) {
        push(L, std::string_view(plan.metrics[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, -2, "metrics");
    return 1;
}

// model(job) -> features, version
int model(lua_State* L) {
    const messages::FeatureMap& map = job_at(L).model();
    push_features(L, map.features);
    lua_pushinteger(L, map.version);
    return 2;
}

int rule_state(lua_State* L) {
    push(L, std::string_view(job_at(L).rule_state()));
    return 1;
}

// Numbers by name at an absolute index, in the order of the names.
std::vector<messages::Metric> metrics_at(lua_State* L, int index) {
    std::vector<messages::Metric> metrics;
    if (lua_isnoneornil(L, index)) return metrics;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && lua_isnumber(L, -1))
            metrics.push_back({lua_tostring(L, -2), lua_tonumber(L, -1)});
    std::ranges::sort(metrics, {}, &messages::Metric::name);
    return metrics;
}

// give(job, samples, features, extra, metrics, rule's state, whether the features are differences)
int give(lua_State* L) {
    client::LocalUpdate update;
    update.samples = luaL_checkinteger(L, 2);
    update.features = features_at(L, 3, kWhere);
    update.extra = features_at(L, 4, kWhere);
    update.metrics = metrics_at(L, 5);
    size_t size = 0;
    const char* state = luaL_checklstring(L, 6, &size);
    update.rule_state.assign(state, size);
    update.is_difference = lua_toboolean(L, 7);
    job_at(L).give(std::move(update));
    return 0;
}

// pull(job) -> features, version; or nil and an event
int pull(lua_State* L) {
    client::Event event;
    const auto map = job_at(L).pull(event);
    if (!map) {
        lua_pushnil(L);
        return 1 + push_job_event(L, event);
    }
    push_features(L, map->features);
    lua_pushinteger(L, map->version);
    return 2;
}

int done(lua_State* L, bool is_done, const client::Event& event) {
    lua_pushboolean(L, is_done);
    return is_done ? 1 : 1 + push_job_event(L, event);
}

// push(job, features, version) -> true; or false and an event
int push_weights(lua_State* L) {
    client::Event event;
    messages::FeatureMap map;
    map.features = features_at(L, 2, kWhere);
    map.version = luaL_checkinteger(L, 3);
    return done(L, job_at(L).push(map, event), event);
}

// push_metrics(job, { name = number }) -> as push
int push_metrics(lua_State* L) {
    client::Event event;
    return done(L, job_at(L).push_metrics(metrics_at(L, 2), event), event);
}

// counts(job) -> the iteration, updates that were taken, requests that were repeated
int counts(lua_State* L) {
    const client::Job& job = job_at(L);
    for (const int64_t count : {job.iteration(), job.updates(), job.repeats()}) lua_pushinteger(L, count);
    return 3;
}

// seed(job) -> a number for what the client draws in this iteration
int seed(lua_State* L) {
    lua_pushinteger(L, static_cast<lua_Integer>(job_at(L).draw_seed() >> 1));
    return 1;
}

// random(n) -> n bytes that cannot be foretold
int random(lua_State* L) {
    std::string bytes(static_cast<size_t>(luaL_checkinteger(L, 1)), '\0');
    secure_random(kWhere, bytes.data(), bytes.size());
    push(L, std::string_view(bytes));
    return 1;
}

// wait(milliseconds): ends early with an error after Ctrl-C.
int wait_for_job(lua_State* L) {
    constexpr int64_t kTurnMs = 50;
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(luaL_checkinteger(L, 1));
    for (;;) {
        poll_interrupt();
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        if (left <= 0) return 0;
        poll(nullptr, 0, static_cast<int>(std::min<int64_t>(left, kTurnMs)));
    }
}

}  // namespace

int open_federated_client(lua_State* L) {
    make_handle_type(L, kJobHandle, protect<release_handle<JobHandle>>);
    constexpr luaL_Reg functions[] = {{"open", protect<open>},
                                      {"close", protect<close>},
                                      {"advance", protect<advance>},
                                      {"plan", protect<plan>},
                                      {"model", protect<model>},
                                      {"rule_state", protect<rule_state>},
                                      {"give", protect<give>},
                                      {"pull", protect<pull>},
                                      {"push", protect<push_weights>},
                                      {"push_metrics", protect<push_metrics>},
                                      {"counts", protect<counts>},
                                      {"seed", protect<seed>},
                                      {"random", protect<random>},
                                      {"wait", protect<wait_for_job>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
