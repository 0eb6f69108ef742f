#include "core/federated/database.h"

#include <sys/stat.h>

#include "core/base/error.h"

namespace lunaria::federated {

namespace {

// Updates are large: with pages of this size a megabyte is 64 of them.
constexpr int64_t kPage = 16384;
constexpr int kPatience = 30'000;  // ms for which another server's transaction is waited for

}  // namespace

Query& Query::add(int64_t value) {
    if (const int problem = sqlite3_bind_int64(statement_, ++at_, value)) database_.fail(problem);
    return *this;
}

Query& Query::add_real(double value) {
    if (const int problem = sqlite3_bind_double(statement_, ++at_, value)) database_.fail(problem);
    return *this;
}

Query& Query::text(std::string_view value) {
    if (const int problem =
            sqlite3_bind_text64(statement_, ++at_, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8))
        database_.fail(problem);
    return *this;
}

Query& Query::blob(std::string_view value) {
    // A null pointer would be NULL.
    const void* bytes = value.empty() ? "" : value.data();
    if (const int problem = sqlite3_bind_blob64(statement_, ++at_, bytes, value.size(), SQLITE_STATIC))
        database_.fail(problem);
    return *this;
}

bool Query::next() {
    const int result = sqlite3_step(statement_);
    if (result == SQLITE_ROW) return true;
    if (result != SQLITE_DONE) database_.fail(result);
    return false;
}

std::string_view Query::bytes(int column) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes ? std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(size)) : std::string_view();
}

Database::Database(const std::string& path, int64_t most_bytes) : path_(path) {
    sqlite3* handle = nullptr;
    constexpr int kHow = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    // Others shall not read it.
    const mode_t before = umask(0077);
    const int problem = sqlite3_open_v2(path.c_str(), &handle, kHow, nullptr);
    umask(before);
    handle_.reset(handle);
    if (problem) fail(problem);
    sqlite3_busy_timeout(handle, kPatience);
    run(str("PRAGMA page_size=", kPage).c_str());
    run("PRAGMA journal_mode=WAL");
    // FULL: a transaction is on the disk when COMMIT returns.
    run("PRAGMA synchronous=FULL");
    // Secrets and updates that were deleted are not left in free pages; 64 MB of pages stay in memory.
    run("PRAGMA secure_delete=FAST");
    run("PRAGMA cache_size=-65536");
    run("PRAGMA journal_size_limit=67108864");
    if (most_bytes > 0) run(str("PRAGMA max_page_count=", most_bytes / kPage).c_str());
}

Query Database::query(const char* sql) {
    auto& statement = statements_[sql];
    if (!statement) {
        sqlite3_stmt* made = nullptr;
        if (const int problem = sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr))
            fail(problem);
        statement.reset(made);
    }
    return {*this, statement.get()};
}

void Database::run(const char* sql) {
    if (const int problem = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr)) fail(problem);
}

void Database::fail(int problem) const {
    const std::string words = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(problem);
    if ((problem & 0xff) == SQLITE_FULL)
        throw file_error(path_, "the disk is full: nothing of the request was kept")
            .hint("free space; the server goes on by itself");
    if ((problem & 0xff) == SQLITE_BUSY)
        throw file_error(path_, str("another server has held it for ", kPatience / 1000, " s"));
    if ((problem & 0xff) == SQLITE_NOTADB || (problem & 0xff) == SQLITE_CORRUPT)
        throw file_error(path_, str("corrupt: ", words));
    throw file_error(path_, words);
}

Transaction::~Transaction() {
    if (!is_open_) return;
    try {
        database_.run("ROLLBACK");
    } catch (const Error&) {
        // SQLite has rolled back by itself, as it does where the disk is full.
    }
}

void Transaction::commit() {
    database_.run("COMMIT");
    is_open_ = false;
}

}  // namespace lunaria::federated
