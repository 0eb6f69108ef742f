// The runs below a folder, kept up to date by a thread: it finds folders with files of events, lineage and graphs, and
// goes through what training programs add to them. Symbolic links that leave the folder are not followed.
//
// Only summaries of 64 scalars each and places of records are in memory (series.h); everything else is read from the
// files when it is asked for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "core/insight/graph/graph_shelf.h"
#include "core/insight/store/run.h"

namespace lunaria::insight {

class Store {
  public:
    // `interval`: seconds between two looks at the files; 0: one look only. Throws where `base` is no folder.
    Store(const std::string& base, double interval);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    // The runs by id, while the view lives.
    class View {
      public:
        explicit View(const Store& store) : lock_(store.mutex_), store_(store) {}
        const std::map<std::string, Run, std::less<>>& runs() const { return store_.runs_; }
        // Null where there is none.
        const Run* run(std::string_view id) const;
        uint64_t version() const { return store_.version_; }

      private:
        std::shared_lock<std::shared_mutex> lock_;
        const Store& store_;
    };
    View view() const { return View(*this); }

    const std::string& base() const { return base_; }
    GraphShelf& graphs() { return graphs_; }
    // Waits until all files have been gone through once, at most so long; whether they have.
    bool wait_until_loaded(std::chrono::milliseconds longest) const;
    // Waits for a version after this one, at most so long, or until stop(); the version.
    uint64_t wait_for(uint64_t after, std::chrono::milliseconds longest) const;
    // Changes what people write about a run, in a file of the base folder. Throws where it cannot be written.
    void annotate(std::string_view id, const std::function<void(Annotation&)>& change);
    // Ends the thread and the waiting of others.
    void stop();
    bool is_stopped() const {
        const std::lock_guard lock(waiting_);
        return stopped_;
    }

  private:
    struct Folder;
    void work();
    void look_for_files();
    std::string place_inside(const std::string& place) const;
    void take_folder(const std::string& place, const std::string& name, const Folder& found);
    void refresh(bool all);
    bool refresh_run(Run& run, bool all);
    void refresh_lineage(Run& run, bool anyway);
    void changed(Run& run);
    // Wakes what waits for a version.
    void tell();
    void read_annotations();
    bool pause(std::chrono::duration<double> longest);

    std::string base_;
    double interval_;
    GraphShelf graphs_;
    mutable std::shared_mutex mutex_;  // of the members up to version_
    std::map<std::string, Run, std::less<>> runs_;
    std::map<std::string, Annotation> annotations_;  // by the names of runs, also of those that are gone
    std::atomic<uint64_t> version_ = 1;
    mutable std::mutex waiting_;  // of the members below
    mutable std::condition_variable wake_;
    bool stopped_ = false, loaded_ = false;
    uint64_t told_ = 1;
    std::thread thread_;
};

}  // namespace lunaria::insight
