// A SQLite database of a server: statements are prepared once, every error has the file's name and says whether the
// disk is full. One thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lunaria::federated {

class Database;

// A statement with its values; reset when it goes out of scope, so that the next use begins anew.
class Query {
  public:
    Query(Database& database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
    ~Query() {
        sqlite3_reset(statement_);
        sqlite3_clear_bindings(statement_);
    }
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;

    // Values in the order of the question marks. Texts and blobs must outlive the query.
    Query& add(int64_t value);
    Query& add_real(double value);
    Query& text(std::string_view value);
    Query& blob(std::string_view value);
    // Goes to the next row; false where there is none.
    bool next();
    void run() {
        while (next()) {
        }
    }
    int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
    double real(int column) const { return sqlite3_column_double(statement_, column); }
    // Of the row: until the next call of next().
    std::string_view bytes(int column) const;

  private:
    Database& database_;
    sqlite3_stmt* statement_;
    int at_ = 0;
};

class Database {
  public:
    // Opens or creates the file. `most_bytes`: 0, or what it may grow to.
    explicit Database(const std::string& path, int64_t most_bytes = 0);
    Query query(const char* sql);
    void run(const char* sql);
    const std::string& path() const { return path_; }
    [[noreturn]] void fail(int problem) const;

  private:
    struct Close {
        void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
        void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
    };
    const std::string path_;
    std::unique_ptr<sqlite3, Close> handle_;
    std::map<const char*, std::unique_ptr<sqlite3_stmt, Close>> statements_;  // by the address of the text
};

// Everything between its construction and commit(), or nothing of it. It has the database for itself: other servers
// wait.
class Transaction {
  public:
    explicit Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    // On the disk when it returns.
    void commit();

  private:
    Database& database_;
    bool is_open_ = true;
};

}  // namespace lunaria::federated
