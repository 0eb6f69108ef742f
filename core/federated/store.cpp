#include "core/federated/store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/json_text.h"

namespace lunaria::federated {

namespace {

constexpr int64_t kVersion = 1;

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS jobs(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, sequence INTEGER NOT NULL DEFAULT 0,
    time INTEGER NOT NULL DEFAULT 0, enabled INTEGER NOT NULL DEFAULT 1, instance TEXT NOT NULL DEFAULT '',
    rounds BLOB NOT NULL DEFAULT x'', plan_iteration INTEGER NOT NULL DEFAULT 0, plan BLOB NOT NULL DEFAULT x'',
    model_version INTEGER NOT NULL DEFAULT -1, strategy BLOB NOT NULL DEFAULT x'', overrides TEXT NOT NULL DEFAULT '',
    owner TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS members(job INTEGER, device INTEGER, digest INTEGER, iteration INTEGER, done INTEGER,
    PRIMARY KEY(job, device)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS devices(job INTEGER, device INTEGER, name TEXT NOT NULL, key BLOB NOT NULL, samples INTEGER,
    started INTEGER, PRIMARY KEY(job, device)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS updates(id INTEGER PRIMARY KEY, job INTEGER, iteration INTEGER, client TEXT, samples INTEGER,
    staleness INTEGER, duration INTEGER, content BLOB NOT NULL, UNIQUE(job, iteration, client));
CREATE TABLE IF NOT EXISTS parts(job INTEGER, iteration INTEGER, phase INTEGER, sender TEXT, receiver TEXT,
    content BLOB NOT NULL, PRIMARY KEY(job, iteration, phase, sender, receiver)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS parts_to ON parts(job, iteration, phase, receiver);
CREATE TABLE IF NOT EXISTS models(job INTEGER, version INTEGER, content BLOB NOT NULL, PRIMARY KEY(job, version));
CREATE TABLE IF NOT EXISTS signatures(job INTEGER, signature BLOB, until INTEGER, PRIMARY KEY(job, signature)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS signatures_until ON signatures(job, until);
CREATE TABLE IF NOT EXISTS metrics(job INTEGER, iteration INTEGER, client TEXT, name TEXT, value REAL,
    PRIMARY KEY(job, iteration, client, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history(number INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER, iteration INTEGER, valid INTEGER,
    reason TEXT, clients INTEGER, began INTEGER, ended INTEGER, metrics TEXT);
CREATE INDEX IF NOT EXISTS history_of ON history(job, number);
)";

// Columns of updates and of parts, of which each has its own query.
UpdateRow update_row(const Query& query) {
    return {std::string(query.bytes(0)), query.integer(1), query.integer(2), query.integer(3)};
}

class StoredMembers final : public Members {
  public:
    StoredMembers(Store& store, int64_t job) : store_(store), job_(job) {}

    std::optional<Mark> find(DeviceId device) const override {
        Query query = database().query("SELECT digest, iteration, done FROM members WHERE job=? AND device=?");
        query.add(job_).add(static_cast<int64_t>(device));
        if (!query.next()) return std::nullopt;
        return mark(query, 0);
    }
    void put(DeviceId device, const Mark& mark) override {
        database()
            .query("INSERT OR REPLACE INTO members(job, device, digest, iteration, done) VALUES(?,?,?,?,?)")
            .add(job_)
            .add(static_cast<int64_t>(device))
            .add(static_cast<int64_t>(mark.digest))
            .add(mark.iteration)
            .add(mark.done)
            .run();
    }
    void forget_before(int64_t iteration) override {
        database().query("DELETE FROM members WHERE job=? AND iteration<?").add(job_).add(iteration).run();
        database()
            .query("DELETE FROM devices WHERE job=? AND device NOT IN (SELECT device FROM members WHERE job=?)")
            .add(job_)
            .add(job_)
            .run();
    }
    int64_t size() const override {
        Query query = database().query("SELECT count(*) FROM members WHERE job=?");
        query.add(job_).next();
        return query.integer(0);
    }
    std::vector<std::pair<DeviceId, Mark>> all() const override {
        std::vector<std::pair<DeviceId, Mark>> list;
        Query query = database().query("SELECT digest, iteration, done, device FROM members WHERE job=?");
        query.add(job_);
        while (query.next()) list.emplace_back(static_cast<DeviceId>(query.integer(3)), mark(query, 0));
        std::ranges::sort(list, {}, &std::pair<DeviceId, Mark>::first);
        return list;
    }

  private:
    static Mark mark(const Query& query, int column) {
        return {static_cast<uint64_t>(query.integer(column)), static_cast<uint32_t>(query.integer(column + 1)),
                static_cast<uint32_t>(query.integer(column + 2))};
    }
    Database& database() const { return store_.database(); }
    Store& store_;
    const int64_t job_;
};

}  // namespace

std::unique_ptr<Members> members_in(Store& store, int64_t job) { return std::make_unique<StoredMembers>(store, job); }

DeviceId device_of(std::string_view name) {
    // FNV-1a, and the end of splitmix64, by which every bit depends on every other. Names that collide are found.
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
    return hash ^ (hash >> 31);
}

Store::Store(const std::string& path, int64_t most_bytes) : database_(path, most_bytes) {
    Transaction transaction(database_);
    Query version = database_.query("PRAGMA user_version");
    version.next();
    const int64_t found = version.integer(0);
    if (found != 0 && found != kVersion)
        throw file_error(path, str("it is a store of version ", found, "; this program reads version ", kVersion));
    database_.run(kTables);
    database_.run(str("PRAGMA user_version=", kVersion).c_str());
    transaction.commit();
}

int64_t Store::job(std::string_view name) {
    database_.query("INSERT OR IGNORE INTO jobs(name) VALUES(?)").text(name).run();
    Query query = database_.query("SELECT id FROM jobs WHERE name=?");
    query.text(name).next();
    return query.integer(0);
}

std::vector<std::pair<int64_t, std::string>> Store::jobs() {
    std::vector<std::pair<int64_t, std::string>> list;
    Query query = database_.query("SELECT id, name FROM jobs ORDER BY name");
    while (query.next()) list.emplace_back(query.integer(0), query.bytes(1));
    return list;
}

JobRow Store::row(int64_t job) {
    Query query = database_.query(
        "SELECT sequence, time, enabled, instance, rounds, plan_iteration, plan, model_version, strategy, overrides "
        "FROM jobs WHERE id=?");
    if (!query.add(job).next()) throw state_error(path(), str("there is no job number ", job));
    return {query.integer(0),
            query.integer(1),
            query.integer(2) != 0,
            std::string(query.bytes(3)),
            std::string(query.bytes(4)),
            query.integer(5),
            std::string(query.bytes(6)),
            query.integer(7),
            std::string(query.bytes(8)),
            std::string(query.bytes(9))};
}

int64_t Store::sequence(int64_t job) {
    Query query = database_.query("SELECT sequence FROM jobs WHERE id=?");
    query.add(job).next();
    return query.integer(0);
}

void Store::put(int64_t job, const JobRow& row) {
    database_
        .query(
            "UPDATE jobs SET sequence=?, time=?, enabled=?, instance=?, rounds=?, plan_iteration=?, plan=?, "
            "model_version=?, strategy=?, overrides=? WHERE id=?")
        .add(row.sequence)
        .add(row.time)
        .add(row.is_enabled)
        .text(row.instance)
        .blob(row.rounds)
        .add(row.plan_iteration)
        .blob(row.plan)
        .add(row.model_version)
        .blob(row.strategy)
        .text(row.overrides)
        .add(job)
        .run();
}

bool Store::put_device(int64_t job, DeviceId device, const Device& values) {
    if (const auto known = this->device(job, device); known && known->name != values.name) return false;
    database_.query("INSERT OR REPLACE INTO devices(job, device, name, key, samples, started) VALUES(?,?,?,?,?,?)")
        .add(job)
        .add(static_cast<int64_t>(device))
        .text(values.name)
        .blob(values.key)
        .add(values.samples)
        .add(values.started)
        .run();
    return true;
}

std::optional<Store::Device> Store::device(int64_t job, DeviceId device) {
    Query query = database_.query("SELECT name, key, samples, started FROM devices WHERE job=? AND device=?");
    if (!query.add(job).add(static_cast<int64_t>(device)).next()) return std::nullopt;
    return Device{std::string(query.bytes(0)), std::string(query.bytes(1)), query.integer(2), query.integer(3)};
}

void Store::put_update(int64_t job, int64_t iteration, const UpdateRow& update, std::string_view content) {
    database_
        .query(
            "INSERT OR REPLACE INTO updates(job, iteration, client, samples, staleness, duration, content) "
            "VALUES(?,?,?,?,?,?,?)")
        .add(job)
        .add(iteration)
        .text(update.client)
        .add(update.samples)
        .add(update.staleness)
        .add(update.duration)
        .blob(content)
        .run();
}

std::vector<UpdateRow> Store::updates(int64_t job, int64_t iteration) {
    std::vector<UpdateRow> list;
    Query query = database_.query(
        "SELECT client, samples, staleness, duration FROM updates WHERE job=? AND iteration=? ORDER BY client");
    query.add(job).add(iteration);
    while (query.next()) list.push_back(update_row(query));
    return list;
}

std::string Store::update(int64_t job, int64_t iteration, std::string_view client) {
    Query query = database_.query("SELECT content FROM updates WHERE job=? AND iteration=? AND client=?");
    if (!query.add(job).add(iteration).text(client).next())
        throw state_error(path(), str("there is no update of ", client, " in iteration ", iteration));
    return std::string(query.bytes(0));
}

int64_t Store::bytes_of_updates(int64_t job, int64_t iteration) {
    Query query = database_.query("SELECT coalesce(sum(length(content)), 0) FROM updates WHERE job=? AND iteration=?");
    query.add(job).add(iteration).next();
    return query.integer(0);
}

void Store::put_part(int64_t job, int64_t iteration, Phase phase, const PartRow& part) {
    database_
        .query("INSERT OR REPLACE INTO parts(job, iteration, phase, sender, receiver, content) VALUES(?,?,?,?,?,?)")
        .add(job)
        .add(iteration)
        .add(static_cast<int64_t>(phase))
        .text(part.from)
        .text(part.to)
        .blob(part.content)
        .run();
}

std::vector<PartRow> Store::parts(int64_t job, int64_t iteration, Phase phase, std::optional<std::string_view> to) {
    std::vector<PartRow> list;
    Query query = database_.query(to ? "SELECT sender, receiver, content FROM parts WHERE job=? AND iteration=? AND "
                                       "phase=? AND receiver=? ORDER BY sender"
                                     : "SELECT sender, receiver, content FROM parts WHERE job=? AND iteration=? AND "
                                       "phase=? ORDER BY sender, receiver");
    query.add(job).add(iteration).add(static_cast<int64_t>(phase));
    if (to) query.text(*to);
    while (query.next())
        list.push_back({std::string(query.bytes(0)), std::string(query.bytes(1)), std::string(query.bytes(2))});
    return list;
}

void Store::forget_before(int64_t job, int64_t iteration) {
    for (const char* sql :
         {"DELETE FROM updates WHERE job=? AND iteration<?", "DELETE FROM parts WHERE job=? AND iteration<?",
          "DELETE FROM metrics WHERE job=? AND iteration<?"})
        database_.query(sql).add(job).add(iteration).run();
}

void Store::put_model(int64_t job, int64_t version, std::string_view content) {
    database_.query("INSERT OR REPLACE INTO models(job, version, content) VALUES(?,?,?)")
        .add(job)
        .add(version)
        .blob(content)
        .run();
    // The one before serves requests that are being answered by another server.
    database_.query("DELETE FROM models WHERE job=? AND version<?").add(job).add(version - 1).run();
}

std::string Store::model(int64_t job, int64_t version) {
    Query query = database_.query("SELECT content FROM models WHERE job=? AND version=?");
    if (!query.add(job).add(version).next()) throw state_error(path(), str("there is no model of version ", version));
    return std::string(query.bytes(0));
}

bool Store::put_signature(int64_t job, std::string_view signature, Time until) {
    Query known = database_.query("SELECT 1 FROM signatures WHERE job=? AND signature=?");
    if (known.add(job).blob(signature).next()) return false;
    database_.query("INSERT INTO signatures(job, signature, until) VALUES(?,?,?)")
        .add(job)
        .blob(signature)
        .add(until)
        .run();
    return true;
}

void Store::forget_signatures(int64_t job, Time before) {
    database_.query("DELETE FROM signatures WHERE job=? AND until<?").add(job).add(before).run();
}

void Store::put_metric(int64_t job, int64_t iteration, std::string_view client, std::string_view name, double value) {
    database_.query("INSERT OR REPLACE INTO metrics(job, iteration, client, name, value) VALUES(?,?,?,?,?)")
        .add(job)
        .add(iteration)
        .text(client)
        .text(name)
        .add_real(value)
        .run();
}

std::string Store::metrics(int64_t job, int64_t iteration) {
    // Sums by client, so that the order of arrival changes no bit.
    std::map<std::string, std::pair<double, int64_t>> sums;
    Query query = database_.query("SELECT name, value FROM metrics WHERE job=? AND iteration=? ORDER BY name, client");
    query.add(job).add(iteration);
    while (query.next()) {
        auto& [sum, count] = sums[std::string(query.bytes(0))];
        sum += query.real(1);
        ++count;
    }
    JsonText json;
    json.open('{');
    for (const auto& [name, sum] : sums) json.key(name).number(sum.first / static_cast<double>(sum.second));
    json.close('}');
    return json.text();
}

void Store::put_history(int64_t job, const HistoryRow& row) {
    database_
        .query(
            "INSERT INTO history(job, iteration, valid, reason, clients, began, ended, metrics) "
            "VALUES(?,?,?,?,?,?,?,?)")
        .add(job)
        .add(row.iteration)
        .add(row.is_valid)
        .text(row.reason)
        .add(row.clients)
        .add(row.began)
        .add(row.ended)
        .text(row.metrics)
        .run();
}

std::vector<HistoryRow> Store::history(int64_t job, int64_t after, int64_t most) {
    std::vector<HistoryRow> list;
    Query query = database_.query(
        "SELECT number, iteration, valid, reason, clients, began, ended, metrics FROM history WHERE job=? AND number>? "
        "ORDER BY number LIMIT ?");
    query.add(job).add(after).add(most);
    while (query.next())
        list.push_back({query.integer(0), query.integer(1), query.integer(2) != 0, std::string(query.bytes(3)),
                        query.integer(4), query.integer(5), query.integer(6), std::string(query.bytes(7))});
    return list;
}

std::string Store::owner(int64_t job) {
    Query query = database_.query("SELECT owner FROM jobs WHERE id=?");
    query.add(job).next();
    return std::string(query.bytes(0));
}

void Store::put_owner(int64_t job, std::string_view server) {
    database_.query("UPDATE jobs SET owner=? WHERE id=?").text(server).add(job).run();
}

}  // namespace lunaria::federated
