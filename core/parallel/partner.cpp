#include "core/parallel/partner.h"

#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/base/error.h"
#include "core/base/warning.h"
#include "core/parallel/own_record.h"

namespace lunaria::parallel {

namespace {

std::atomic<double>& patience_in_use() {
    static std::atomic<double> seconds = [] {
        const char* given = std::getenv("LUNARIA_COMMUNICATION_TIMEOUT");
        char* end = nullptr;
        const double number = given ? std::strtod(given, &end) : 0;
        return given && end != given && number >= 0 && std::isfinite(number) ? number : 600.0;
    }();
    return seconds;
}

}  // namespace

double patience() { return patience_in_use(); }
void set_patience(double seconds) { patience_in_use() = seconds; }

void Impatience::look(std::string_view where, uint64_t waited, const std::string& waiting, const std::string& other) {
    constexpr uint64_t kBeforeWarning = 10'000'000'000;
    if (patience() > 0 && static_cast<double>(waited) > patience() * 1e9)
        throw state_error(where, str(waiting, " for more than ", patience(), " s, ", other))
            .hint("ms.communication.set_timeout allows more");
    if (waited <= kBeforeWarning || has_warned_) return;
    has_warned_ = true;
    warn(where, str(waiting, " for 10 s, ", other),
         "an error comes after the time that ms.communication.set_timeout sets");
}

Partner::~Partner() {
    if (process_ >= 0) close(process_);
}

Partner::Partner(Partner&& other) noexcept : process_(std::exchange(other.process_, -1)) {}

bool Partner::is_dead(const RankLog& record) {
    if (record.pid.load() == 0) return false;
    if (process_ < 0) {
        process_ = static_cast<int>(syscall(SYS_pidfd_open, record.pid.load(), 0));
        // The number may be that of a later process by now.
        if (process_ < 0 || !is_alive(record)) return !is_alive(record);
    }
    pollfd ended{process_, POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
}

std::string end_of(const RankLog& record) {
    constexpr int kMillisecondsForLauncher = 300;
    for (int i = 0; i < kMillisecondsForLauncher && record.has_ended.load() == 0; ++i) usleep(1000);
    const std::string how = record.has_ended.load() != 0 ? describe_wait_status(record.wait_status.load()) : "died";
    return str("(process ", record.pid.load(), ") ", how, " ", last_request(record));
}

std::string last_request(const RankLog& record) {
    const uint64_t written = record.written.load();
    if (written == 0) return "before its first request";
    const RankLog::Entry& last = record.ring[(written - 1) % RankLog::kEntries];
    return str(last.end.load() == 0 ? "in " : "after ", describe(record, last.mark));
}

std::string failure_in(const RankLog& record) {
    return {record.failure, strnlen(record.failure, sizeof record.failure)};
}

}  // namespace lunaria::parallel
