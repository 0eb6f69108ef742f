#include "interpreter/serve/inbox.h"

#include <algorithm>
#include <sstream>

namespace lunaria::serve {

void Exchange::answer(Answer answer) {
    const std::lock_guard lock(mutex_);
    if (state_ != State::waiting) return;
    answer_ = std::move(answer);
    state_ = State::answered;
    changed_.notify_all();
}

void Exchange::begin(Answer head) {
    const std::lock_guard lock(mutex_);
    if (state_ != State::waiting) return;
    answer_ = std::move(head);
    state_ = State::streaming;
    changed_.notify_all();
}

bool Exchange::add(std::string_view part) {
    const std::lock_guard lock(mutex_);
    if (state_ != State::streaming || is_gone_) return false;
    parts_ += part;
    changed_.notify_all();
    return true;
}

void Exchange::end() {
    const std::lock_guard lock(mutex_);
    if (state_ == State::streaming) state_ = State::ended;
    changed_.notify_all();
}

// Counts a request when the last part of its answer has been given away.
struct Inbox::Count {
    std::shared_ptr<Figures> figures;
    std::chrono::steady_clock::time_point from = std::chrono::steady_clock::now();
    int status = 500;

    explicit Count(std::shared_ptr<Figures> all) : figures(std::move(all)) {
        const std::lock_guard lock(figures->mutex);
        ++figures->open;
    }
    ~Count() {
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
        const std::lock_guard lock(figures->mutex);
        --figures->open;
        ++figures->by_status[status];
        figures->seconds += seconds;
        const auto bound = std::ranges::lower_bound(Figures::kBounds, seconds);
        ++figures->by_time[static_cast<size_t>(bound - Figures::kBounds.begin())];
    }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
};

Answer Inbox::ask(const Question& question) {
    if (question.is_reading() && question.path.size() == 1) {
        if (question.part(0) == "health") return json_answer(R"({"status":"ok"})");
        if (question.part(0) == "metrics") return metrics();
    }
    const auto count = std::make_shared<Count>(figures_);
    Answer answer = asked(question, count);
    count->status = answer.status;
    return answer;
}

Answer Inbox::asked(const Question& question, const std::shared_ptr<Count>& count) {
    const auto exchange = std::make_shared<Exchange>(question);
    {
        const std::lock_guard lock(mutex_);
        if (is_closed_) return error_answer(503, "the server is about to end");
        if (waiting_.size() >= most_) return error_answer(503, "too many requests are waiting; try again later");
        waiting_.push_back(exchange);
        came_.notify_one();
    }
    std::unique_lock lock(exchange->mutex_);
    exchange->changed_.wait(lock, [&] { return exchange->state_ != Exchange::State::waiting; });
    Answer answer = std::move(exchange->answer_);
    if (exchange->state_ == Exchange::State::answered) return answer;
    // The transport drops the function when the other side is gone.
    struct Reader {
        std::shared_ptr<Exchange> exchange;
        std::shared_ptr<Count> count;
        ~Reader() {
            const std::lock_guard gone(exchange->mutex_);
            exchange->is_gone_ = true;
        }
    };
    const auto reader = std::make_shared<Reader>(exchange, count);
    answer.more = [reader](std::string& part) {
        Exchange& from = *reader->exchange;
        std::unique_lock wait(from.mutex_);
        from.changed_.wait(wait, [&] { return !from.parts_.empty() || from.state_ == Exchange::State::ended; });
        part.append(from.parts_);
        from.parts_.clear();
        return from.state_ != Exchange::State::ended;
    };
    return answer;
}

std::shared_ptr<Exchange> Inbox::next(double seconds) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !waiting_.empty() || is_closed_; });
    if (waiting_.empty()) return nullptr;
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    std::erase_if(given_, [](const std::weak_ptr<Exchange>& one) { return one.expired(); });
    given_.push_back(first);
    return first;
}

size_t Inbox::waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
}

void Inbox::close() {
    std::deque<std::shared_ptr<Exchange>> left;
    std::vector<std::weak_ptr<Exchange>> given;
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
        left.swap(waiting_);
        given.swap(given_);
        came_.notify_all();
    }
    for (const auto& one : given)
        if (auto exchange = one.lock()) left.push_back(std::move(exchange));
    for (const auto& exchange : left) {
        exchange->answer(error_answer(503, "the server has ended"));
        exchange->end();
    }
}

Answer Inbox::metrics() const {
    std::ostringstream text;
    const size_t waiting_now = waiting();
    const std::lock_guard lock(figures_->mutex);
    text << "# TYPE lunaria_requests_total counter\n";
    for (const auto& [status, count] : figures_->by_status)
        text << "lunaria_requests_total{status=\"" << status << "\"} " << count << '\n';
    text << "# TYPE lunaria_requests_open gauge\nlunaria_requests_open " << figures_->open << '\n'
         << "# TYPE lunaria_requests_waiting gauge\nlunaria_requests_waiting " << waiting_now << '\n'
         << "# TYPE lunaria_request_seconds histogram\n";
    uint64_t sum = 0;
    for (size_t i = 0; i < figures_->by_time.size(); ++i) {
        sum += figures_->by_time[i];
        text << "lunaria_request_seconds_bucket{le=\"";
        if (i < Figures::kBounds.size())
            text << Figures::kBounds[i];
        else
            text << "+Inf";
        text << "\"} " << sum << '\n';
    }
    text << "lunaria_request_seconds_sum " << figures_->seconds << "\nlunaria_request_seconds_count " << sum << '\n';
    Answer answer;
    answer.type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = text.str();
    return answer;
}

}  // namespace lunaria::serve
