#include "core/io/task.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/signals.h"
#include "core/threads/make_thread.h"

namespace lunaria {

Task::Task(std::function<void()> work) : work_(std::move(work)), thread_(make_thread("file", [this] { run(); })) {}

Task::~Task() { thread_.join(); }

void Task::run() {
    leave_signals_to_others();
    std::exception_ptr failure;
    try {
        work_();
    } catch (...) {
        failure = std::current_exception();
    }
    // Frees what the work held, tensors for instance, as soon as it is done.
    work_ = nullptr;
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    done_ = true;
    ended_.notify_all();
}

bool Task::is_done() const {
    const std::lock_guard lock(mutex_);
    return done_;
}

void Task::wait() {
    constexpr std::chrono::milliseconds kBetweenLooks{20};
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kBetweenLooks, [this] { return done_; })) poll_interrupt();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

BackgroundWriter& BackgroundWriter::instance() {
    static BackgroundWriter writer;
    return writer;
}

void BackgroundWriter::start(std::string name, std::function<void()> work) {
    finish();
    name_ = std::move(name);
    task_ = std::make_unique<Task>(std::move(work));
}

void BackgroundWriter::finish() {
    if (!task_) return;
    try {
        task_->wait();
    } catch (const Error& error) {
        // An interrupt does not end the writing of the file.
        if (error.kind() != ErrorKind::interrupt) task_.reset();
        throw;
    } catch (...) {
        task_.reset();
        throw;
    }
    task_.reset();
}

bool BackgroundWriter::is_busy() const { return task_ && !task_->is_done(); }

void write_file_later(const std::string& path, std::function<void(Sink&)> write) {
    NullSink nothing(path);
    write(nothing);
    // The previous file may have the same path.
    BackgroundWriter& writer = BackgroundWriter::instance();
    writer.finish();
    auto sink = std::make_shared<FileSink>(path, FileSink::Interrupts::ignored);
    // Shared because std::function needs a copyable function; the thread is the only owner.
    writer.start(path, [sink = std::move(sink), write = std::move(write)] {
        write(*sink);
        sink->commit();
    });
}

BackgroundWriter::~BackgroundWriter() {
    if (!task_) return;
    clear_interrupt();
    std::string message;
    try {
        task_->wait();
        return;
    } catch (const Error& error) {
        message = error.what();
    } catch (const std::exception& error) {
        message = error.what();
    }
    std::fflush(stdout);
    std::fprintf(stderr, "lunaria: %s was to be written without waiting and is not: %s\n", name_.c_str(),
                 message.c_str());
    std::fflush(stderr);
    std::_Exit(1);
}

}  // namespace lunaria
