#include "core/insight/store/store.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <set>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/signals.h"
#include "core/io/file.h"
#include "core/threads/make_thread.h"

namespace lunaria::insight {

namespace {

constexpr int kDeepest = 16;              // folders below the base folder
constexpr size_t kMostFolders = 200'000;  // that are looked into
constexpr uint64_t kPart = 1 << 20;  // bytes of files of events between two chances for other threads to read the store
constexpr double kRecent = 60;       // s: files written since then are looked at often
constexpr double kLongest = 0.8;     // s between looks at files that were written lately
constexpr double kShare = 300;       // a look at everything may take one part in so many of the time
constexpr const char* kAnnotations = "/.lunaria-insight.json";

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The path with all links resolved; empty where there is nothing.
std::string resolved(const std::string& path) {
    char real[PATH_MAX];
    return realpath(path.c_str(), real) ? std::string(real) : std::string();
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

}  // namespace

// The names of what a folder holds.
struct Store::Folder {
    std::vector<std::string> events, lineage, graphs;
    bool empty() const { return events.empty() && lineage.empty() && graphs.empty(); }

    void take(const std::string& name) {
        if (name.ends_with("_lineage"))
            lineage.push_back(name);
        else if (has(name, "tfevents") || has(name, "events.summary."))
            events.push_back(name);
        else if (ends_with_any(name, {".mindir", ".onnx", ".pb"}))
            graphs.push_back(name);
    }
};

Store::Store(const std::string& base, double interval) : base_(resolved(base)), interval_(interval) {
    struct stat info;
    if (base_.empty() || stat(base_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
        throw file_error(base, base_.empty() ? "there is no such folder" : "it is no folder");
    read_annotations();
    thread_ = make_thread("insight", [this] { work(); });
}

Store::~Store() {
    stop();
    thread_.join();
}

void Store::stop() {
    const std::lock_guard lock(waiting_);
    stopped_ = true;
    wake_.notify_all();
}

bool Store::pause(std::chrono::duration<double> longest) {
    std::unique_lock lock(waiting_);
    wake_.wait_for(lock, longest, [&] { return stopped_; });
    return !stopped_;
}

bool Store::wait_until_loaded(std::chrono::milliseconds longest) const {
    std::unique_lock lock(waiting_);
    return wake_.wait_for(lock, longest, [&] { return loaded_ || stopped_; }) && loaded_;
}

uint64_t Store::wait_for(uint64_t after, std::chrono::milliseconds longest) const {
    std::unique_lock lock(waiting_);
    wake_.wait_for(lock, longest, [&] { return told_ > after || stopped_; });
    return told_;
}

const Run* Store::View::run(std::string_view id) const {
    const auto found = store_.runs_.find(id);
    return found == store_.runs_.end() ? nullptr : &found->second;
}

void Store::work() {
    leave_signals_to_others();
    double next_look = 0;
    while (true) {
        const bool is_due = wall_seconds() >= next_look;
        const double begun = cpu_seconds();
        try {
            if (is_due) look_for_files();
            refresh(is_due);
        } catch (const std::bad_alloc&) {
            // What was not read for want of memory is read the next time.
        }
        const double spared = kShare * (cpu_seconds() - begun);
        if (is_due) next_look = wall_seconds() + std::max(interval_, spared);
        {
            const std::lock_guard lock(waiting_);
            loaded_ = true;
            wake_.notify_all();
            if (stopped_) return;
        }
        if (interval_ == 0 || !pause(std::chrono::duration<double>(std::max(interval_, std::min(spared, kLongest)))))
            return;
    }
}

// The resolved place of a folder or file, where that is inside of the base folder; empty otherwise.
std::string Store::place_inside(const std::string& place) const {
    std::string real = resolved(place);
    const bool inside = real == base_ || base_ == "/" || real.starts_with(base_ + "/");
    return inside ? real : std::string();
}

void Store::look_for_files() {
    // Folders are known by their resolved places, so that links within the base folder make no circles.
    std::set<std::string> seen;
    std::vector<std::pair<std::string, std::pair<std::string, int>>> waiting = {{base_, {".", 0}}};
    while (!waiting.empty() && seen.size() < kMostFolders && !is_stopped()) {
        const auto [place, about] = waiting.back();
        const auto& [name, depth] = about;
        waiting.pop_back();
        if (!seen.insert(place).second) continue;
        DIR* const folder = opendir(place.c_str());
        if (!folder) continue;
        Folder found;
        while (const dirent* entry = readdir(folder)) {
            const std::string inside = entry->d_name;
            if (inside.front() == '.') continue;
            std::string full = place + "/" + inside;
            int type = entry->d_type;
            if (type == DT_LNK || type == DT_UNKNOWN) {
                full = place_inside(full);
                struct stat info;
                if (full.empty() || stat(full.c_str(), &info) != 0) continue;
                type = S_ISDIR(info.st_mode) ? DT_DIR : S_ISREG(info.st_mode) ? DT_REG : DT_UNKNOWN;
            }
            if (type == DT_REG)
                found.take(inside);
            else if (type == DT_DIR && depth < kDeepest)
                waiting.push_back({full, {name == "." ? inside : name + "/" + inside, depth + 1}});
        }
        closedir(folder);
        if (!found.empty()) take_folder(place, name, found);
    }
}

void Store::take_folder(const std::string& place, const std::string& name, const Folder& found) {
    const std::string shown = printable(name);
    std::string id = id_of(name);
    const std::unique_lock lock(mutex_);
    Run& run = runs_[id];
    if (run.id.empty()) {
        run.id = id;
        run.name = shown;
        run.place = place;
        if (const auto known = annotations_.find(shown); known != annotations_.end()) run.annotation = known->second;
        changed(run);
    }
    const auto adopt = [&](std::vector<std::string>& known, std::vector<std::string> names) {
        std::ranges::sort(names);
        if (names == known) return;
        known = std::move(names);
        changed(run);
    };
    adopt(run.graph_files, found.graphs);
    adopt(run.lineage_files, found.lineage);
    for (const std::string& file : found.events) {
        const auto at = std::ranges::lower_bound(run.events, file, {}, [](const auto& e) { return e->path(); });
        if (at != run.events.end() && (*at)->path() == file) continue;
        run.events.insert(at, std::make_unique<EventFile>(file, place + "/" + file));
        changed(run);
    }
    const size_t gone = std::erase_if(
        run.events, [&](const auto& e) { return std::ranges::find(found.events, e->path()) == found.events.end(); });
    if (gone > 0) changed(run);
}

void Store::changed(Run& run) { run.version = ++version_; }

void Store::tell() {
    const std::lock_guard lock(waiting_);
    if (told_ != version_) wake_.notify_all();
    told_ = version_;
}

// Goes on with files that have grown: with all, or with those that were written lately.
void Store::refresh(bool all) {
    std::vector<std::string> ids;
    const double now = wall_seconds();
    {
        const auto seen = view();
        for (const auto& [id, run] : seen.runs())
            if (all || now - run.changed <= kRecent) ids.push_back(id);
    }
    for (const std::string& id : ids) {
        bool more = true;
        while (more) {
            {
                const std::unique_lock lock(mutex_);
                more = refresh_run(runs_.at(id), all);
            }
            tell();
            if (is_stopped()) return;
        }
    }
}

// Whether there is more to do.
bool Store::refresh_run(Run& run, bool all) {
    bool more = false, has_settings = false;
    const double now = wall_seconds();
    for (const auto& file : run.events) {
        if (!all && !file->more() && now - file->changed() > kRecent) continue;
        const size_t settings = file->hparams().size();
        if (file->refresh(kPart)) changed(run);
        has_settings |= file->hparams().size() != settings;
        run.changed = std::max(run.changed, file->changed());
        more |= file->more();
    }
    if (all || has_settings) refresh_lineage(run, has_settings);
    return more;
}

void Store::refresh_lineage(Run& run, bool anyway) {
    double stamp = 0;
    for (const std::string& name : run.lineage_files) {
        struct stat info;
        if (stat((run.place + "/" + name).c_str(), &info) != 0) continue;
        const double time = static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
        stamp += time + static_cast<double>(info.st_size);
        run.changed = std::max(run.changed, time);
    }
    if (stamp == run.lineage_stamp && !anyway) return;
    run.lineage_stamp = stamp;
    run.lineage = {};
    for (const std::string& name : run.lineage_files) add_lineage(run.place + "/" + name, run.lineage);
    for (const auto& file : run.events)
        for (const std::string& setting : file->hparams()) add_hparams(setting, run.lineage);
    changed(run);
}

// {"name of a run": {"notes": text, "labels": [text]}}
void Store::read_annotations() {
    const std::string path = base_ + kAnnotations;
    if (struct stat info; stat(path.c_str(), &info) != 0) return;
    const Json all = parsed_json(read_file(path, 1 << 26));
    if (!all.is_object()) throw file_error(path, "it is no JSON object").hint("mend it or remove it");
    for (const auto& [name, about] : all.items()) {
        if (!about.is_object()) continue;
        Annotation& annotation = annotations_[name];
        if (const auto notes = about.find("notes"); notes != about.end() && notes->is_string())
            annotation.notes = *notes;
        if (const auto labels = about.find("labels"); labels != about.end() && labels->is_array())
            for (const Json& label : *labels)
                if (label.is_string()) annotation.labels.push_back(label);
    }
}

void Store::annotate(std::string_view id, const std::function<void(Annotation&)>& change) {
    const std::unique_lock lock(mutex_);
    const auto found = runs_.find(id);
    if (found == runs_.end()) throw state_error("insight", "the run is no longer there");
    Run& run = found->second;
    Annotation annotation = run.annotation;
    change(annotation);
    auto all = annotations_;
    all[run.name] = annotation;
    Json json = Json::object();
    for (const auto& [name, about] : all) json[name] = {{"notes", about.notes}, {"labels", about.labels}};
    write_file(base_ + kAnnotations, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    annotations_ = std::move(all);
    run.annotation = std::move(annotation);
    changed(run);
    tell();
}

}  // namespace lunaria::insight
