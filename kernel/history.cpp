#include "kernel/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

namespace lunaria::jupyter {

namespace {

// Past the first figure the file is cut to the last entries when a session begins.
constexpr size_t kMostEntries = 20000, kEntriesKept = 10000;
constexpr size_t kLargestCell = size_t{1} << 20;  // larger ones stay out of the file

// Holds the file's lock, for which other kernels wait, while it lives.
class Locked {
  public:
    explicit Locked(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        if (file_ >= 0) flock(file_, LOCK_EX);
    }
    ~Locked() {
        if (file_ >= 0) close(file_);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    explicit operator bool() const { return file_ >= 0; }
    bool append(const std::string& text) {
        lseek(file_, 0, SEEK_END);
        return write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    }
    // In place, since others hold the same file open.
    bool replace(const std::string& text) { return ftruncate(file_, 0) == 0 && append(text); }

  private:
    int file_;
};

nl::json parsed(const std::string& line) {
    nl::json row = nl::json::parse(line, nullptr, false);
    const auto is_number = [&](const char* name) { return row.contains(name) && row[name].is_number_integer(); };
    // A partial line, from a machine that stopped while it was written, is left out.
    if (!row.is_object() || !is_number("s") || !is_number("n") || !row.contains("c") || !row["c"].is_string())
        return nullptr;
    return row;
}

int number(const nl::json& value) { return static_cast<int>(std::clamp<int64_t>(value.get<int64_t>(), 0, 1000000000)); }

std::string row_text(int session, int line, const std::string& code) {
    const nl::json row = {{"s", session}, {"n", line}, {"c", code}};
    return row.dump(-1, ' ', false, nl::json::error_handler_t::replace) + "\n";
}

std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
    return lines;
}

template <class Entries>
nl::json answer(const Entries& entries, bool output) {
    nl::json rows = nl::json::array();
    for (const auto& entry : entries) {
        // The output of cells is not kept.
        const nl::json code = output ? nl::json::array({entry.code, nullptr}) : nl::json(entry.code);
        rows.push_back(nl::json::array({entry.session, entry.line, code}));
    }
    return {{"status", "ok"}, {"history", std::move(rows)}};
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
    size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p, ++t;
        } else if (star != std::string_view::npos) {
            // The last star takes one more.
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

History::History(std::string path, std::function<int()> line) : path_(std::move(path)), line_(std::move(line)) {}

std::string History::user_file() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    std::string folder;
    if (state && *state == '/')
        folder = std::string(state) + "/lunaria";
    else if (home && *home)
        folder = std::string(home) + "/.local/state/lunaria";
    else
        return "";
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    return failure ? "" : folder + "/kernel_history.jsonl";
}

// The next number after the highest in the file, taken by a line without code so that no other kernel takes it too.
void History::open_session() {
    session_ = 1;
    if (path_.empty()) return;
    Locked file(path_);
    if (!file) {
        path_.clear();
        return;
    }
    const std::vector<std::string> lines = lines_of(path_);
    for (const std::string& line : lines)
        if (const nl::json row = parsed(line); !row.is_null()) session_ = std::max(session_, number(row["s"]) + 1);
    const std::string begin = row_text(session_, 0, "");
    if (lines.size() <= kMostEntries) {
        // A line that was cut off must not swallow this one.
        file.append((lines.empty() ? "" : "\n") + begin);
        return;
    }
    std::string kept;
    for (size_t i = lines.size() - kEntriesKept; i < lines.size(); ++i)
        if (!lines[i].empty()) kept += lines[i] + "\n";
    file.replace(kept + begin);
}

void History::append(const std::string& line) {
    if (path_.empty() || line.size() > kLargestCell) return;
    Locked file(path_);
    if (!file || !file.append(line)) path_.clear();
}

void History::store_inputs_impl(int, int, const std::string& code, const std::string&) {
    const int line = line_();
    if (session_ == 0) open_session();
    own_.push_back({session_, line, code});
    append(row_text(session_, line, code));
}

std::vector<History::Entry> History::all() const {
    std::vector<Entry> entries;
    if (!path_.empty())
        for (const std::string& line : lines_of(path_)) {
            const nl::json row = parsed(line);
            if (row.is_null() || row["n"] == 0) continue;
            if (number(row["s"]) == session_) continue;
            entries.push_back({number(row["s"]), number(row["n"]), row["c"]});
        }
    // Sessions that ran at the same time are mixed in the file.
    std::ranges::stable_sort(entries, {}, &Entry::session);
    entries.insert(entries.end(), own_.begin(), own_.end());
    return entries;
}

nl::json History::get_tail_impl(int n, bool, bool output) const {
    std::vector<Entry> entries = all();
    const size_t count = std::min(entries.size(), static_cast<size_t>(std::max(n, 0)));
    entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(count));
    return answer(entries, output);
}

nl::json History::get_range_impl(int session, int start, int stop, bool, bool output) const {
    const int current = session_ > 0 ? session_ : std::numeric_limits<int>::max();
    const std::vector<Entry> entries = all();
    if (session == 0) session = current;
    if (session < 0) {
        // -1 is the session before this one.
        std::set<int> known;
        for (const Entry& entry : entries)
            if (entry.session != current) known.insert(entry.session);
        const int64_t back = -static_cast<int64_t>(session);
        if (back > static_cast<int64_t>(known.size())) return answer(std::vector<Entry>(), output);
        session = *std::prev(known.end(), static_cast<std::ptrdiff_t>(back));
    }
    std::vector<Entry> found;
    for (const Entry& entry : entries)
        if (entry.session == session && entry.line >= start && entry.line < stop) found.push_back(entry);
    return answer(found, output);
}

nl::json History::search_impl(const std::string& pattern, bool, bool output, int n, bool unique) const {
    std::vector<Entry> found;
    std::set<std::string> seen;
    const std::vector<Entry> entries = all();
    for (auto entry = entries.rbegin(); entry != entries.rend() && static_cast<int64_t>(found.size()) < n; ++entry) {
        if (!glob_matches(pattern, entry->code)) continue;
        if (unique && !seen.insert(entry->code).second) continue;
        found.push_back(*entry);
    }
    std::ranges::reverse(found);
    return answer(found, output);
}

}  // namespace lunaria::jupyter
