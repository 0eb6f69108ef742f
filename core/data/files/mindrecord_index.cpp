#include "core/data/files/mindrecord_index.h"

#include <sqlite3.h>

#include <algorithm>
#include <memory>

#include "core/base/interrupt.h"

namespace lunaria::data {

namespace {

class Database {
  public:
    explicit Database(const std::string& path) : path_(path) {
        constexpr int kHow = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
        if (sqlite3_open_v2(":memory:", &handle_, kHow, nullptr) != SQLITE_OK) fail();
    }
    ~Database() { sqlite3_close(handle_); }
    Database(const Database&) = delete;
    void run(const std::string& text) {
        if (sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
    }
    [[noreturn]] void fail() const {
        throw file_error(path_, str("the index cannot be written: ", sqlite3_errmsg(handle_)));
    }
    sqlite3* handle() const { return handle_; }
    void write(Sink& sink) const {
        sqlite3_int64 size = 0;
        const std::unique_ptr<unsigned char, void (*)(void*)> bytes(sqlite3_serialize(handle_, "main", &size, 0),
                                                                    sqlite3_free);
        if (!bytes) throw memory_error(path_, "not enough memory for the index");
        sink.write(bytes.get(), static_cast<size_t>(size));
    }

  private:
    std::string path_;
    sqlite3* handle_ = nullptr;
};

class Statement {
  public:
    Statement(Database& database, const std::string& text) : database_(database) {
        if (sqlite3_prepare_v2(database.handle(), text.c_str(), -1, &handle_, nullptr) != SQLITE_OK) database.fail();
    }
    ~Statement() { sqlite3_finalize(handle_); }
    Statement(const Statement&) = delete;
    void add(int64_t value) { sqlite3_bind_int64(handle_, ++at_, value); }
    void add(uint64_t value) { add(static_cast<int64_t>(value)); }
    void add(double value) { sqlite3_bind_double(handle_, ++at_, value); }
    void add(const std::string& text) {
        sqlite3_bind_text(handle_, ++at_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
    void step() {
        if (sqlite3_step(handle_) != SQLITE_DONE) database_.fail();
        sqlite3_reset(handle_);
        at_ = 0;
    }

  private:
    Database& database_;
    sqlite3_stmt* handle_ = nullptr;
    int at_ = 0;
};

std::string column_of(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name + "_0";
}

}  // namespace

void write_mindrecord_index(Sink& sink, const MindrecordShard& shard, const std::string& name) {
    const MindrecordHeader& header = shard.header();
    std::vector<int> wanted;
    std::string table =
        "CREATE TABLE INDEXES(  ROW_ID               INT  NOT NULL, PAGE_ID_RAW          INT  NOT NULL,"
        " PAGE_OFFSET_RAW      INT  NOT NULL, PAGE_OFFSET_RAW_END  INT  NOT NULL, ROW_GROUP_ID         INT  NOT NULL,"
        " PAGE_ID_BLOB         INT  NOT NULL, PAGE_OFFSET_BLOB     INT  NOT NULL, PAGE_OFFSET_BLOB_END INT  NOT NULL";
    std::string keys = "ROW_ID", places = "?,?,?,?,?,?,?,?";
    for (size_t i = 0; i < header.index.size(); ++i) {
        const auto field = std::find_if(header.fields.begin(), header.fields.end(),
                                        [&](const MindrecordField& f) { return f.name == header.index[i]; });
        if (field == header.fields.end() || field->blob >= 0)
            throw file_error(sink.name(),
                             str("corrupt: there is no scalar field '", header.index[i], "' to be indexed"));
        wanted.push_back(static_cast<int>(field - header.fields.begin()));
        table += str(",INC_", i, " INT, ", column_of(field->name),
                     field->is_text           ? " TEXT"
                     : is_float(field->dtype) ? " REAL"
                                              : " INTEGER");
        keys += str(",INC_", i);
        places += ",?,?";
    }
    Database database(sink.name());
    database.run(table + ", PRIMARY KEY(" + keys + "))");
    database.run("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)");
    database.run("BEGIN");
    Statement shard_name(database, "INSERT INTO SHARD_NAME VALUES(?)");
    shard_name.add(name);
    shard_name.step();
    Statement insert(database, "INSERT INTO INDEXES VALUES(" + places + ")");
    for (int64_t row = 0; row < shard.rows(); ++row) {
        if (row % 1024 == 0) poll_interrupt();
        const MindrecordShard::Place place = shard.place(row);
        insert.add(row);
        for (const uint64_t number : {uint64_t{place.raw_page}, place.raw_begin, place.raw_end, place.group,
                                      uint64_t{place.blob_page}, place.blob_begin, place.blob_end})
            insert.add(number);
        shard.read(row, wanted, [&](const Value& value) {
            insert.add(int64_t{0});
            if (!value.is_tensor())
                insert.add(value.string());
            else if (is_float(value.tensor().dtype()))
                insert.add(value.tensor().at(0));
            else
                insert.add(value.tensor().integer_at(0));
        });
        insert.step();
    }
    database.run("COMMIT");
    database.write(sink);
}

}  // namespace lunaria::data
