// Work on files beside the program: a thread that writes or reads while the program goes on.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/io/file.h"

namespace lunaria {

// A piece of work on a thread of its own. Its exception is thrown to the first caller that waits for it.
class Task {
  public:
    explicit Task(std::function<void()> work);
    // Waits for the end; an exception of the work is lost.
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    bool is_done() const;
    // Returns when the work is done, or throws its exception. An interrupt ends the waiting, not the work.
    void wait();

  private:
    void run();

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false;
    std::exception_ptr failure_;
    std::function<void()> work_;
    std::thread thread_;  // last: it uses the other members
};

// The files that the program writes in the background, one after the other: at most one is under way.
class BackgroundWriter {
  public:
    // The writer of this process. At the end of the process, os.exit included, it waits for the file that is under way;
    // if that fails, a message goes to the standard error stream, and the process ends with status 1.
    static BackgroundWriter& instance();

    // Waits for the previous file and throws if that one failed: the new one is not begun then.
    void start(std::string name, std::function<void()> work);
    // Waits for the file that is under way, if there is one, and throws if it failed.
    void finish();
    bool is_busy() const;

  private:
    BackgroundWriter() = default;
    ~BackgroundWriter();

    std::unique_ptr<Task> task_;
    std::string name_;
};

// Writes the file `path` with BackgroundWriter. Errors that can be found without writing are thrown at once: a folder
// that is missing or read-only, contents that the format cannot hold. `write` is called twice and keeps its contents,
// which must not change meanwhile.
void write_file_later(const std::string& path, std::function<void(Sink&)> write);

}  // namespace lunaria
