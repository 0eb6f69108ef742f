// The module behind lunaria/federated/server.lua: a desk of jobs (core/federated/server/desk.h) and its socket. Lua
// computes what the desk gives it to compute; requests of clients never come to Lua.
#include <fstream>

#include "core/federated/primitives.h"
#include "core/federated/server/desk.h"
#include "core/io/json_text.h"
#include "core/io/yaml.h"
#include "interpreter/bindings/federated_features.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/serve/server.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

namespace messages = federated::messages;
using federated::Desk;
using federated::Job;

constexpr std::string_view kWhere = "federated server";
constexpr const char* kDeskHandle = "lunaria.federated.desk";

// The threads of the server wait for the desk: it ends after them.
struct Office {
    Desk desk;
    std::unique_ptr<serve::Server> server;
    explicit Office(federated::DeskOptions options) : desk(std::move(options)) {}
};
using OfficeHandle = std::unique_ptr<Office>;

Office& office_at(lua_State* L) {
    const OfficeHandle& office = handle_at<OfficeHandle>(L, 1, kDeskHandle);
    if (!office) throw state_error(kWhere, "it is closed");
    return *office;
}

// Fields of the table at an index, which lunaria/federated/server.lua has made.
class Fields {
  public:
    Fields(lua_State* L, int index) : L_(L), index_(index) { luaL_checktype(L, index, LUA_TTABLE); }
    std::string text(const char* name) const {
        lua_getfield(L_, index_, name);
        size_t size = 0;
        const char* text = lua_tolstring(L_, -1, &size);
        std::string result(text ? text : "", text ? size : 0);
        lua_pop(L_, 1);
        return result;
    }
    int64_t integer(const char* name, int64_t missing = 0) const {
        lua_getfield(L_, index_, name);
        const int64_t value = lua_isnil(L_, -1) ? missing : luaL_checkinteger(L_, -1);
        lua_pop(L_, 1);
        return value;
    }
    double number(const char* name, double missing = 0) const {
        lua_getfield(L_, index_, name);
        const double value = lua_isnil(L_, -1) ? missing : luaL_checknumber(L_, -1);
        lua_pop(L_, 1);
        return value;
    }
    bool boolean(const char* name) const {
        lua_getfield(L_, index_, name);
        const bool value = lua_toboolean(L_, -1);
        lua_pop(L_, 1);
        return value;
    }
    std::vector<std::string> texts(const char* name) const {
        std::vector<std::string> list;
        const int top = lua_gettop(L_);
        lua_getfield(L_, index_, name);
        for (lua_Integer i = 1; lua_istable(L_, -1) && lua_rawgeti(L_, -1, i) != LUA_TNIL; ++i, lua_pop(L_, 1))
            list.emplace_back(text_at(L_, -1));
        lua_settop(L_, top);
        return list;
    }
    // The field on the stack.
    int push(const char* name) const {
        lua_getfield(L_, index_, name);
        return lua_gettop(L_);
    }

  private:
    lua_State* L_;
    int index_;
};

void set(lua_State* L, const char* name, std::string_view text) {
    push(L, text);
    lua_setfield(L, -2, name);
}
void set(lua_State* L, const char* name, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

class JsonOfEvents final : public JsonEvents {
  public:
    void null() override { json.raw("null"); }
    void boolean(bool value) override { json.boolean(value); }
    void integer(int64_t value) override { json.number(value); }
    void number(double value) override { json.number(value); }
    void string(const std::string& value) override { json.string(value); }
    void begin_object() override { json.open('{'); }
    void key(const std::string& name) override { json.key(name); }
    void end_object() override { json.close('}'); }
    void begin_array() override { json.open('['); }
    void end_array() override { json.close(']'); }
    JsonText json;
};
class LinesOfKeys final : public YamlLines {
  public:
    explicit LinesOfKeys(lua_State* L) : L_(L) {}
    void at(const std::string& path, size_t line) override {
        push(L_, std::string_view(path));
        lua_pushinteger(L_, static_cast<lua_Integer>(line));
        lua_rawset(L_, -3);
    }

  private:
    lua_State* L_;
};

// yaml(text, name) -> JSON, a table from paths of keys to lines
int yaml(lua_State* L) {
    const std::string text = text_at(L, 1), name = text_at(L, 2);
    lua_newtable(L);
    JsonOfEvents events;
    LinesOfKeys lines(L);
    read_yaml(text, name, events, &lines);
    push(L, std::string_view(events.json.text()));
    lua_insert(L, -2);
    return 2;
}

// open{ store =, most_store_bytes =, names_clients = } -> a desk
int open(lua_State* L) {
    const Fields fields(L, 1);
    federated::DeskOptions options;
    options.store = fields.text("store");
    options.most_store_bytes = fields.integer("most_store_bytes");
    options.names_clients = fields.boolean("names_clients");
    push_handle<OfficeHandle>(L, std::make_unique<Office>(std::move(options)), kDeskHandle);
    return 1;
}

int close(lua_State* L) {
    OfficeHandle& office = handle_at<OfficeHandle>(L, 1, kDeskHandle);
    if (office) office->server.reset();
    office.reset();
    return 0;
}

federated::JobSettings settings_of(const Fields& fields) {
    federated::JobSettings settings;
    settings.iterations = fields.integer("iterations", settings.iterations);
    settings.start_threshold = fields.integer("start_threshold", settings.start_threshold);
    settings.start_window = fields.integer("start_window", settings.start_window);
    settings.update_ratio = fields.number("update_ratio", settings.update_ratio);
    settings.update_window = fields.integer("update_window", settings.update_window);
    settings.global_window = fields.integer("global_window", settings.global_window);
    const std::string encryption = fields.text("encryption");
    settings.encryption = encryption == "pairwise" ? federated::Encryption::pairwise
                          : encryption == "stable" ? federated::Encryption::stable
                                                   : federated::Encryption::none;
    settings.share_ratio = fields.number("share_ratio", settings.share_ratio);
    settings.cipher_window = fields.integer("cipher_window", settings.cipher_window);
    settings.reconstruct_threshold = fields.integer("reconstruct_threshold", settings.reconstruct_threshold);
    settings.signed_lists = fields.boolean("signed_lists");
    settings.selection = fields.number("selection", settings.selection);
    settings.seed = static_cast<uint64_t>(fields.integer("seed"));
    settings.poll = fields.integer("poll", settings.poll);
    settings.spread = fields.integer("spread", settings.spread);
    settings.asynchronous = fields.boolean("asynchronous");
    settings.buffer = fields.integer("buffer", settings.buffer);
    settings.concurrency = fields.integer("concurrency", settings.concurrency);
    settings.max_staleness = fields.integer("max_staleness", settings.max_staleness);
    return settings;
}

std::string contents_of(const std::string& path) {
    if (path.empty()) return {};
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file || text.empty()) throw file_error(path, "cannot be read");
    return text;
}

// Clients by their certificates: the libraries for it are opened here, so that a job that cannot verify fails at once.
void add_checks(federated::JobOptions& options, const std::vector<std::string>& authorities,
                const std::string& revoked) {
    std::string roots;
    for (const std::string& path : authorities) roots += contents_of(path) + "\n";
    const auto verify = serve::verify_certificate();
    options.certificate = [verify, roots, list = contents_of(revoked)](std::string_view pem) {
        serve::VerifiedCertificate verified;
        verify({pem, roots, list}, verified);
        return federated::ClientCertificate{verified.problem, verified.name, verified.key};
    };
    const federated::Primitives& primitives = federated::primitives(kWhere);
    options.signature = [&primitives](std::string_view key, std::string_view text, std::string_view signature) {
        const auto its_key = federated::array_of<32>(key);
        const auto its_signature = federated::array_of<64>(signature);
        return its_key && its_signature && primitives.verify(*its_key, text, *its_signature);
    };
}

messages::Encoding encoding_of(const std::string& name) {
    using messages::Encoding;
    for (const Encoding encoding : {Encoding::plain, Encoding::masked, Encoding::sparse_quantised, Encoding::signds,
                                    Encoding::top_k, Encoding::quantised})
        if (messages::name_of(encoding) == name) return encoding;
    throw argument_error(kWhere, str("there is no encoding '", name, "'"));
}

// add(desk, job, { iterations =, start_threshold =, ..., upload =, verifies =, authorities =, ... })
int add(lua_State* L) {
    const Fields fields(L, 3);
    federated::JobOptions options;
    options.rounds = settings_of(fields);
    options.upload = encoding_of(fields.text("upload"));
    options.quantises_download = fields.boolean("quantises_download");
    options.largest_weight = fields.number("largest_weight", options.largest_weight);
    options.payload_bytes = fields.integer("payload_bytes");
    options.verifies = fields.boolean("verifies");
    options.replay_window = fields.integer("replay_window", options.replay_window);
    options.takes_weights = fields.boolean("takes_weights");
    options.retry = fields.integer("poll", options.retry);
    options.neighbours = fields.integer("neighbours");
    options.further = fields.integer("further");
    options.share_threshold = fields.integer("share_threshold", options.share_threshold);
    options.code.ring.bits = static_cast<int>(fields.integer("ring_bits", options.code.ring.bits));
    options.code.fraction_bits = static_cast<int>(fields.integer("fraction_bits", options.code.fraction_bits));
    options.code.clip = fields.number("clip", options.code.clip);
    if (options.verifies) add_checks(options, fields.texts("authorities"), fields.text("revoked"));
    office_at(L).desk.add(text_at(L, 2), std::move(options));
    return 0;
}

// serve(desk, { about =, host =, port =, prefix =, most_body =, most_connections =, tls = { certificate =, ... } }) ->
// the address, a warning
int serve_desk(lua_State* L) {
    Office& office = office_at(L);
    const Fields fields(L, 2);
    serve::ServerOptions options;
    options.about = fields.text("about");
    options.host = fields.text("host");
    options.port = static_cast<int>(fields.integer("port"));
    options.prefix = fields.text("prefix");
    options.types = {"application/x-protobuf", "application/octet-stream"};
    options.limits.most_body = static_cast<size_t>(fields.integer("most_body"));
    options.limits.most_connections = static_cast<size_t>(fields.integer("most_connections"));
    options.limits.most_seconds = static_cast<int>(fields.integer("most_seconds", options.limits.most_seconds));
    options.is_public = true;
    std::string warning;
    const int tls_at = fields.push("tls");
    if (lua_istable(L, tls_at)) {
        const Fields tls(L, tls_at);
        options.tls.certificate = tls.text("certificate");
        options.tls.key = tls.text("key");
        options.tls.password = tls.text("password");
        options.tls.authorities = tls.text("authorities");
        options.tls.revoked = tls.text("revoked");
        options.tls.ciphers = tls.text("ciphers");
        options.tls.warning_days = static_cast<int>(tls.integer("warning_days", options.tls.warning_days));
        options.tls.warning = &warning;
    }
    office.server =
        std::make_unique<serve::Server>([&office](const Question& q) { return office.desk.ask(q); }, options);
    push(L, std::string_view(office.server->url()));
    push(L, std::string_view(warning));
    return 2;
}

// drain(desk): answers what has come, and takes no more.
int drain(lua_State* L) {
    Office& office = office_at(L);
    if (office.server) office.server->drain();
    office.server.reset();
    return 0;
}

// has_ended(desk): whether another program has ended the server
int has_ended(lua_State* L) {
    const Office& office = office_at(L);
    lua_pushboolean(L, office.server && office.server->has_ended());
    return 1;
}

// next(desk, seconds) -> "plan" or "aggregate", job, iteration; or nil
int next(lua_State* L) {
    const federated::Work work = office_at(L).desk.next(luaL_checknumber(L, 2));
    if (work.kind == federated::Work::Kind::none) return 0;
    lua_pushstring(L, work.kind == federated::Work::Kind::plan ? "plan" : "aggregate");
    push(L, std::string_view(work.job));
    lua_pushinteger(L, work.iteration);
    return 3;
}

// row(desk, job) -> { iteration =, phase =, model_version =, strategy =, instance =, overrides =, state = JSON, time =
// }
int row(lua_State* L) {
    federated::JobRow row;
    std::string state;
    std::string_view phase;
    int64_t iteration = 0;
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) {
        row = job.row();
        state = job.state();
        phase = federated::name_of(job.rounds().phase());
        iteration = job.rounds().iteration();
    });
    lua_newtable(L);
    set(L, "iteration", iteration);
    set(L, "phase", phase);
    set(L, "model_version", row.model_version);
    set(L, "strategy", std::string_view(row.strategy));
    set(L, "instance", std::string_view(row.instance));
    set(L, "overrides", std::string_view(row.overrides));
    set(L, "state", std::string_view(state));
    set(L, "time", row.time);
    return 1;
}

// ask(desk, endpoint, body) -> the reply's bytes, as by HTTP
int ask(lua_State* L) {
    const std::string endpoint = text_at(L, 2), body = text_at(L, 3);
    push(L, std::string_view(messages::written(office_at(L).desk.ask(endpoint, body))));
    return 1;
}

// model(desk, job) -> features, version
int model(lua_State* L) {
    Office& office = office_at(L);
    std::string bytes;
    office.desk.in(text_at(L, 2),
                   [&](Job& job) { bytes = office.desk.store().model(job.number(), job.row().model_version); });
    const auto map = messages::parsed<messages::FeatureMap>(bytes, "the model");
    push_features(L, map.features);
    lua_pushinteger(L, map.version);
    return 2;
}

std::string model_at(lua_State* L, int index, int64_t version) {
    if (lua_isnoneornil(L, index)) return {};
    messages::FeatureMap map;
    map.features = features_at(L, index, kWhere);
    map.version = version;
    return messages::written(map);
}

// put_model(desk, job, features, version, strategy)
int put_model(lua_State* L) {
    const std::string bytes = model_at(L, 3, luaL_checkinteger(L, 4)), strategy = text_at(L, 5);
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) { job.put_model(bytes, strategy); });
    return 0;
}

// plan{ aggregation =, rule =, epochs =, ..., extra = features, cipher = {...} } -> bytes
int plan(lua_State* L) {
    const Fields fields(L, 1);
    messages::Plan plan;
    plan.aggregation = fields.text("aggregation");
    plan.rule = fields.text("rule");
    plan.iterations = fields.integer("iterations", 1);
    plan.epochs = fields.integer("epochs", 1);
    plan.batch_size = fields.integer("batch_size", 1);
    plan.learning_rate = fields.number("learning_rate");
    plan.metrics = fields.texts("metrics");
    plan.settings = fields.text("settings");
    plan.extra = features_at(L, fields.push("extra"), kWhere);
    plan.upload = encoding_of(fields.text("upload"));
    plan.sparse_rate = fields.number("sparse_rate");
    plan.seed = fields.integer("seed");
    const Fields cipher(L, fields.push("cipher"));
    plan.cipher.type = cipher.text("type");
    plan.cipher.share_threshold = cipher.integer("share_threshold");
    plan.cipher.neighbours = cipher.integer("neighbours");
    plan.cipher.ring_bits = cipher.integer("ring_bits");
    plan.cipher.fraction_bits = cipher.integer("fraction_bits");
    plan.cipher.clip = cipher.number("clip");
    plan.cipher.most_weight = cipher.integer("most_weight", plan.cipher.most_weight);
    plan.cipher.counts_alike = cipher.boolean("counts_alike");
    plan.cipher.further = cipher.integer("further");
    plan.cipher.dp_eps = cipher.number("dp_eps");
    plan.cipher.dp_delta = cipher.number("dp_delta");
    plan.cipher.dp_norm_clip = cipher.number("dp_norm_clip");
    plan.cipher.sign_k = cipher.number("sign_k");
    plan.cipher.sign_eps = cipher.number("sign_eps");
    plan.cipher.sign_thr_ratio = cipher.number("sign_thr_ratio");
    plan.cipher.sign_global_lr = cipher.number("sign_global_lr");
    plan.cipher.sign_dim_out = cipher.integer("sign_dim_out");
    const std::string bytes = messages::written(plan);
    // What a client would refuse is an error here.
    messages::parsed<messages::Plan>(bytes, kWhere);
    push(L, std::string_view(bytes));
    return 1;
}

// put_plan(desk, job, iteration, plan)
int put_plan(lua_State* L) {
    const int64_t iteration = luaL_checkinteger(L, 3);
    const std::string bytes = text_at(L, 4);
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) { job.plan(iteration, bytes); });
    return 0;
}

// updates(desk, job, iteration) -> a list of { id =, samples =, staleness =, seconds = } by id
int updates(lua_State* L) {
    Office& office = office_at(L);
    const int64_t iteration = luaL_checkinteger(L, 3);
    std::vector<federated::UpdateRow> rows;
    office.desk.in(text_at(L, 2), [&](Job& job) { rows = office.desk.store().updates(job.number(), iteration); });
    lua_createtable(L, static_cast<int>(rows.size()), 0);
    lua_Integer i = 0;
    for (const federated::UpdateRow& row : rows) {
        lua_createtable(L, 0, 4);
        set(L, "id", std::string_view(row.client));
        set(L, "samples", row.samples);
        set(L, "staleness", row.staleness);
        set(L, "milliseconds", row.duration);
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

// update(desk, job, iteration, client) -> features, extra features, metrics by name, payload
int update(lua_State* L) {
    Office& office = office_at(L);
    const int64_t iteration = luaL_checkinteger(L, 3);
    const std::string client = text_at(L, 4);
    std::string bytes;
    office.desk.in(text_at(L, 2),
                   [&](Job& job) { bytes = office.desk.store().update(job.number(), iteration, client); });
    const auto sent = messages::parsed<messages::UpdateModel>(bytes, client);
    push_features(L, sent.features);
    push_features(L, sent.extra);
    lua_newtable(L);
    for (const messages::Metric& metric : sent.metrics) {
        push(L, std::string_view(metric.name));
        lua_pushnumber(L, metric.value);
        lua_rawset(L, -3);
    }
    push(L, std::string_view(sent.payload));
    return 4;
}

// change(desk, job, iteration, client, iteration in which it started) -> the change of the weights as a vector
int change(lua_State* L) {
    Office& office = office_at(L);
    const int64_t iteration = luaL_checkinteger(L, 3), started = luaL_checkinteger(L, 5);
    const std::string client = text_at(L, 4);
    std::vector<double> values;
    office.desk.in(text_at(L, 2), [&](Job& job) {
        const std::string bytes = office.desk.store().update(job.number(), iteration, client);
        values = job.change(started, messages::parsed<messages::UpdateModel>(bytes, client).payload);
    });
    Tensor tensor = Tensor::empty(DType::f64, Shape({static_cast<int64_t>(values.size())}));
    std::ranges::copy(values, static_cast<double*>(tensor.raw()));
    push(L, tensor.to(current_place()));
    return 1;
}

// secure_mean(desk, job) -> the clients, the sum of their weights, the mean as a vector
int secure_mean(lua_State* L) {
    Job::Mean mean;
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) { mean = job.secure_mean(); });
    lua_createtable(L, static_cast<int>(mean.clients.size()), 0);
    for (size_t i = 0; i < mean.clients.size(); ++i) {
        push(L, std::string_view(mean.clients[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_pushinteger(L, mean.samples);
    Tensor values = Tensor::empty(DType::f64, Shape({static_cast<int64_t>(mean.values.size())}));
    std::ranges::copy(mean.values, static_cast<double*>(values.raw()));
    push(L, values.to(current_place()));
    return 3;
}

// finish(desk, job, iteration, features or nil, strategy, plan of the next iteration, reason, metrics as JSON)
int finish(lua_State* L) {
    const int64_t iteration = luaL_checkinteger(L, 3);
    const std::string model = model_at(L, 4, iteration), strategy = text_at(L, 5), plan = text_at(L, 6),
                      reason = text_at(L, 7), metrics = text_at(L, 8);
    office_at(L).desk.in(text_at(L, 2),
                         [&](Job& job) { job.finish(iteration, model, strategy, plan, reason, metrics); });
    return 0;
}

// overrides(desk, job) -> the settings of the last newInstance, as JSON; of a job that need not be open
int overrides(lua_State* L) {
    const std::string name = text_at(L, 2);
    std::string overrides;
    office_at(L).desk.with_store([&](federated::Store& store) { overrides = store.row(store.job(name)).overrides; });
    push(L, std::string_view(overrides));
    return 1;
}

// Tensors and a text as bytes, and back.
constexpr uint32_t kTensors = 1, kText = 2;

// pack(features, text) -> bytes
int pack(lua_State* L) {
    ProtoWriter w;
    messages::FeatureMap map;
    map.features = features_at(L, 1, kWhere);
    w.bytes(kTensors, messages::written(map)).bytes(kText, text_at(L, 2));
    push(L, std::string_view(w.text()));
    return 1;
}

// unpack(bytes) -> features, text
int unpack(lua_State* L) {
    const std::string bytes = text_at(L, 1);
    messages::FeatureMap map;
    std::string text;
    ProtoReader p(bytes, "the state");
    while (p.next()) {
        if (p.field() == kTensors) map = messages::parsed<messages::FeatureMap>(p.bytes(), p.file());
        if (p.field() == kText) text = p.bytes();
    }
    push_features(L, map.features);
    push(L, std::string_view(text));
    return 2;
}

// metrics(desk, job, iteration) -> the means of what clients have reported, as JSON
int metrics(lua_State* L) {
    Office& office = office_at(L);
    const int64_t iteration = luaL_checkinteger(L, 3);
    std::string json;
    office.desk.in(text_at(L, 2), [&](Job& job) { json = office.desk.store().metrics(job.number(), iteration); });
    push(L, std::string_view(json));
    return 1;
}

int enable(lua_State* L) {
    const bool is_enabled = lua_toboolean(L, 3);
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) { job.enable(is_enabled); });
    return 0;
}

// instance(desk, job, settings, name, overrides)
int instance(lua_State* L) {
    const federated::JobSettings settings = settings_of(Fields(L, 3));
    const std::string name = text_at(L, 4), overrides = text_at(L, 5);
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) { job.begin_instance(settings, name, overrides); });
    return 0;
}

int stop(lua_State* L) {
    const std::string reason = text_at(L, 3);
    office_at(L).desk.in(text_at(L, 2), [&](Job& job) { job.stop(reason); });
    return 0;
}

// history(desk, job, after, most) -> a list of iterations that have ended, the oldest first
int history(lua_State* L) {
    Office& office = office_at(L);
    const int64_t after = luaL_checkinteger(L, 3), most = luaL_checkinteger(L, 4);
    std::vector<federated::HistoryRow> rows;
    office.desk.in(text_at(L, 2), [&](Job& job) { rows = office.desk.store().history(job.number(), after, most); });
    lua_createtable(L, static_cast<int>(rows.size()), 0);
    lua_Integer i = 0;
    for (const federated::HistoryRow& row : rows) {
        lua_createtable(L, 0, 8);
        set(L, "number", row.number);
        set(L, "iteration", row.iteration);
        lua_pushboolean(L, row.is_valid);
        lua_setfield(L, -2, "valid");
        set(L, "reason", std::string_view(row.reason));
        set(L, "clients", row.clients);
        set(L, "began", row.began);
        set(L, "ended", row.ended);
        set(L, "metrics", std::string_view(row.metrics));
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

// figures(desk) -> Prometheus's text, bytes in, bytes out
int figures(lua_State* L) {
    const Desk& desk = office_at(L).desk;
    push(L, std::string_view(desk.figures()));
    lua_pushinteger(L, desk.bytes_in());
    lua_pushinteger(L, desk.bytes_out());
    return 3;
}

}  // namespace

int open_federated_server(lua_State* L) {
    make_handle_type(L, kDeskHandle, protect<release_handle<OfficeHandle>>);
    constexpr luaL_Reg functions[] = {{"yaml", protect<yaml>},
                                      {"open", protect<open>},
                                      {"close", protect<close>},
                                      {"add", protect<add>},
                                      {"serve", protect<serve_desk>},
                                      {"drain", protect<drain>},
                                      {"has_ended", protect<has_ended>},
                                      {"next", protect<next>},
                                      {"row", protect<row>},
                                      {"ask", protect<ask>},
                                      {"model", protect<model>},
                                      {"put_model", protect<put_model>},
                                      {"plan", protect<plan>},
                                      {"put_plan", protect<put_plan>},
                                      {"updates", protect<updates>},
                                      {"update", protect<update>},
                                      {"change", protect<change>},
                                      {"secure_mean", protect<secure_mean>},
                                      {"finish", protect<finish>},
                                      {"metrics", protect<metrics>},
                                      {"overrides", protect<overrides>},
                                      {"pack", protect<pack>},
                                      {"unpack", protect<unpack>},
                                      {"enable", protect<enable>},
                                      {"instance", protect<instance>},
                                      {"stop", protect<stop>},
                                      {"history", protect<history>},
                                      {"figures", protect<figures>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
