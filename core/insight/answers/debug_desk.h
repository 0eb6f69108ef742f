// A program under watch, and the pages that look at it (v1/lunaria/debug). The program's thread says what it does;
// where it stands, it answers what the pages ask, one question after the other. The server's threads bring the
// questions.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/io/question.h"

namespace lunaria::insight {

class DebugDesk {
  public:
    // For the server's threads. GET: {"version", "state": "none" | "runs" | "stands", "about": what the program said};
    // with ?after=VERSION it waits a few seconds for another version. POST: {"command": ...}. Of a program that runs
    // only "pause" is taken; where it stands, next() gives it the command. Throws a Refusal.
    Answer answer(const Question& question);
    // Whatever waits is refused, and the program is no longer asked.
    void close();

    // For the program's thread. `about`: a JSON object.
    void run(std::string about);
    void stand(std::string about);
    // The next command's content; nothing where none came within the time.
    std::optional<std::string> next(std::chrono::duration<double> longest);
    // Answers the latest command by a JSON text.
    void reply(std::string json, int status = 200);
    // Whether a page asked for a pause since the last call.
    bool take_pause();

  private:
    struct Asked {
        std::string content;
        std::optional<Answer> answer;
    };
    enum class State { none, runs, stands };
    static constexpr size_t kMostWaiting = 64;

    Answer state(std::optional<int64_t> after);
    Answer command(const Question& question);
    void tell(State state, std::string about);

    std::mutex mutex_;
    std::condition_variable changed_;
    State state_ = State::none;
    std::string about_ = "{}";
    int64_t version_ = 0;
    bool wants_pause_ = false, is_closed_ = false;
    std::deque<std::shared_ptr<Asked>> waiting_;
    std::shared_ptr<Asked> latest_;
};

}  // namespace lunaria::insight
