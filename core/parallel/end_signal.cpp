#include "core/parallel/end_signal.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "core/base/signals.h"
#include "core/threads/make_thread.h"

namespace lunaria::parallel {

namespace {

constexpr uint64_t kSignal = 1, kStop = uint64_t{1} << 32;
std::atomic<int> file_of_handler{-1};

void on_signal(int) {
    const uint64_t word = kSignal;
    [[maybe_unused]] const ssize_t written = write(file_of_handler, &word, sizeof word);
}

bool is_default(int number) {
    struct sigaction present {};
    return sigaction(number, nullptr, &present) == 0 && present.sa_handler == SIG_DFL;
}

}  // namespace

EndSignal::EndSignal(std::function<std::string()> reason, std::function<void(const std::string&)> ends)
    : reason_(std::move(reason)), ends_(std::move(ends)) {
    if (!is_default(SIGTERM)) return;
    file_ = eventfd(0, EFD_CLOEXEC);
    if (file_ < 0) return;  // without it the signal ends the program as it always does
    file_of_handler = file_;
    thread_ = make_thread("end signal", [this] { watch(); });
    handle_signal(SIGTERM, on_signal, SA_RESTART);
}

EndSignal::~EndSignal() {
    if (file_ < 0) return;
    struct sigaction present {};
    if (sigaction(SIGTERM, nullptr, &present) == 0 && present.sa_handler == on_signal) signal(SIGTERM, SIG_DFL);
    file_of_handler = -1;
    [[maybe_unused]] const ssize_t written = write(file_, &kStop, sizeof kStop);
    thread_.join();
    close(file_);
}

void EndSignal::watch() {
    uint64_t word = 0;
    while (read(file_, &word, sizeof word) != sizeof word) {
    }
    if (word >= kStop) return;
    // What has ended a rank is written down a little later. mpirun kills those that are still there after a second.
    constexpr int kRounds = 60, kMicroseconds = 5000;
    std::string text = reason_();
    for (int i = 0; i < kRounds && text.empty(); ++i) {
        usleep(kMicroseconds);
        text = reason_();
    }
    ends_(text);
    if (!text.empty()) {
        const std::string line = "lunaria: " + text + "\n";
        [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    }
    signal(SIGTERM, SIG_DFL);
    kill(getpid(), SIGTERM);
    while (true) pause();
}

}  // namespace lunaria::parallel
