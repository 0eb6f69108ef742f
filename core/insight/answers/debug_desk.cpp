#include "core/insight/answers/debug_desk.h"

#include "core/insight/store/lineage.h"
#include "core/io/json_text.h"

namespace lunaria::insight {

namespace {

// For how long a page waits for another version: shorter than a connection may be idle.
constexpr auto kWait = std::chrono::seconds(5);
constexpr const char* kAccepted = R"({"accepted":true})";

}  // namespace

Answer DebugDesk::answer(const Question& question) {
    if (!question.path.empty()) throw Refusal{404, "there is no such address"};
    if (question.method == "POST") return command(question);
    if (!question.is_reading()) throw Refusal{405, "this is read by GET, and commands come by POST"};
    std::optional<int64_t> after;
    if (question.parameter("after")) after = question.integer("after", 0, 0, INT64_MAX);
    return state(after);
}

Answer DebugDesk::state(std::optional<int64_t> after) {
    constexpr const char* kNames[] = {"none", "runs", "stands"};
    std::unique_lock lock(mutex_);
    if (after) changed_.wait_for(lock, kWait, [&] { return version_ != *after || is_closed_; });
    JsonText json;
    json.open('{').key("version").number(version_).key("state").string(kNames[static_cast<size_t>(state_)]);
    json.key("about").raw(about_).close('}');
    return json_answer(json.take());
}

Answer DebugDesk::command(const Question& question) {
    const Json wanted = parsed_json(question.body);
    if (!wanted.is_object() || !wanted.contains("command") || !wanted["command"].is_string())
        throw Refusal{400, "the content must be {\"command\": text, ...}"};
    std::unique_lock lock(mutex_);
    if (is_closed_) throw Refusal{503, "the server is about to end"};
    if (state_ == State::none) throw Refusal{409, "no program is under watch"};
    if (state_ == State::runs) {
        if (wanted["command"] != "pause") throw Refusal{409, "the program runs; it answers where it stands"};
        wants_pause_ = true;
        return json_answer(kAccepted);
    }
    if (waiting_.size() >= kMostWaiting) throw Refusal{503, "too many commands are waiting"};
    const auto asked = std::make_shared<Asked>(Asked{question.body, {}});
    waiting_.push_back(asked);
    changed_.notify_all();
    // The program's thread lets go of it where it goes on.
    changed_.wait(lock, [&] { return asked->answer || is_closed_ || asked.use_count() == 1; });
    if (!asked->answer) throw Refusal{409, "the program has gone on"};
    return std::move(*asked->answer);
}

void DebugDesk::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
}

void DebugDesk::tell(State state, std::string about) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    about_ = std::move(about);
    ++version_;
    waiting_.clear();
    latest_.reset();
    changed_.notify_all();
}

void DebugDesk::run(std::string about) { tell(State::runs, std::move(about)); }
void DebugDesk::stand(std::string about) {
    tell(State::stands, std::move(about));
    take_pause();
}

std::optional<std::string> DebugDesk::next(std::chrono::duration<double> longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return !waiting_.empty() || is_closed_; });
    if (waiting_.empty()) return std::nullopt;
    latest_ = std::move(waiting_.front());
    waiting_.pop_front();
    return latest_->content;
}

void DebugDesk::reply(std::string json, int status) {
    const std::lock_guard lock(mutex_);
    if (latest_) latest_->answer = json_answer(std::move(json), status);
    latest_.reset();
    changed_.notify_all();
}

bool DebugDesk::take_pause() {
    const std::lock_guard lock(mutex_);
    return std::exchange(wants_pause_, false);
}

}  // namespace lunaria::insight
