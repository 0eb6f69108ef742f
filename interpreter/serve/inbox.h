// Requests that the threads of a server bring to one thread, which answers them one after the other: a model runs on
// one thread. GET /health and /metrics are answered at once, however long that thread takes.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "core/io/question.h"

namespace lunaria::serve {

// A request and its answer. The answering thread calls answer() once, or begin(), add() any number of times and end().
class Exchange {
  public:
    explicit Exchange(Question question) : question_(std::move(question)) {}
    const Question& question() const { return question_; }
    void answer(Answer answer);
    // The head of an answer whose body comes in parts.
    void begin(Answer head);
    // False where the other side is gone.
    bool add(std::string_view part);
    void end();

  private:
    friend class Inbox;
    enum class State { waiting, answered, streaming, ended };
    const Question question_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::waiting;
    Answer answer_;
    std::string parts_;  // of the body, not yet sent
    bool is_gone_ = false;
};

class Inbox {
  public:
    // `most`: requests that may wait; more are refused with 503.
    explicit Inbox(size_t most) : most_(most) {}

    // For the server's threads: waits for the answer.
    Answer ask(const Question& question);
    // For the answering thread: the next request; null where none came within the time.
    std::shared_ptr<Exchange> next(double seconds);
    size_t waiting() const;
    // Refuses all that wait and all that come, and ends those that were given to the answering thread.
    void close();

  private:
    struct Count;
    Answer metrics() const;
    Answer asked(const Question& question, const std::shared_ptr<Count>& count);

    const size_t most_;
    mutable std::mutex mutex_;
    std::condition_variable came_;
    std::deque<std::shared_ptr<Exchange>> waiting_;
    std::vector<std::weak_ptr<Exchange>> given_;
    bool is_closed_ = false;

    // Figures of /metrics; the answers share them, as streams go on after ask().
    struct Figures {
        static constexpr std::array<double, 10> kBounds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60};
        mutable std::mutex mutex;
        std::map<int, uint64_t> by_status;
        std::array<uint64_t, kBounds.size() + 1> by_time{};
        double seconds = 0;
        uint64_t open = 0;
    };
    const std::shared_ptr<Figures> figures_ = std::make_shared<Figures>();
};

}  // namespace lunaria::serve
