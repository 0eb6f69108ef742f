#include "core/federated/server/desk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "core/io/json_text.h"
#include "core/io/secure_random.h"
#include "core/threads/make_thread.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kWhere = "federated server";
constexpr int64_t kLook = 100;           // ms between looks at what other servers have changed
constexpr size_t kMostTasks = 256;       // in a transaction
constexpr size_t kMostBatch = 16 << 20;  // bytes of requests in a transaction

template <class Clock>
int64_t milliseconds() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

std::string random_name() {
    unsigned char bytes[8];
    secure_random(kWhere, bytes, sizeof bytes);
    std::string name;
    for (const unsigned char byte : bytes)
        for (const int digit : {byte >> 4, byte & 15}) name += "0123456789abcdef"[digit];
    return name;
}

}  // namespace

Desk::Desk(DeskOptions options) : options_(std::move(options)), own_name_(random_name()) {
    if (!options_.wall) options_.wall = milliseconds<std::chrono::system_clock>;
    if (!options_.steady) options_.steady = milliseconds<std::chrono::steady_clock>;
    lock_.reset(open(lock_path(own_name_).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!lock_ || flock(lock_.number(), LOCK_EX) != 0)
        throw file_error(options_.store, "no file can be made beside it").hint("does its folder exist?");
    try {
        store_.emplace(options_.store, options_.most_store_bytes);
    } catch (const Error&) {
        unlink(lock_path(own_name_).c_str());
        throw;
    }
    last_steady_ = options_.steady();
    thread_ = make_thread(kWhere, [this] { work(); });
}

Desk::~Desk() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
        came_.notify_all();
        work_came_.notify_all();
    }
    thread_.join();
    unlink(lock_path(own_name_).c_str());
}

void Desk::add(const std::string& job, JobOptions options) {
    options.rounds.name = job;
    options.rounds.check();
    {
        const std::lock_guard lock(mutex_);
        if (jobs_.contains(job)) throw state_error(kWhere, str("the job '", job, "' is served already"));
    }
    Task task;
    task.first = [&] { open_[job] = std::make_unique<Job>(*store_, job, options); };
    wait_for(task);
    const std::lock_guard lock(mutex_);
    jobs_.emplace(job, std::make_shared<const JobOptions>(std::move(options)));
}

std::vector<std::string> Desk::jobs() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, options] : jobs_) names.push_back(name);
    return names;
}

lunaria::Answer Desk::ask(const Question& question) {
    if (question.is_reading() && question.path.size() == 1 && question.part(0) == "health")
        return json_answer(R"({"status":"ok"})");
    if (question.is_reading() || question.path.size() != 1) return error_answer(404, "there is no such page");
    const messages::Reply reply = ask(question.part(0), question.body, question.peer);
    lunaria::Answer answer;
    answer.type = "application/x-protobuf";
    answer.body = messages::written(reply);
    bytes_in_ += static_cast<int64_t>(question.body.size());
    bytes_out_ += static_cast<int64_t>(answer.body.size());
    return answer;
}

messages::Reply Desk::ask(std::string_view endpoint, std::string_view body, std::string_view peer) {
    Reaction reaction;
    reaction.reply.code = messages::Code::request_error;
    try {
        reaction = this->reaction(endpoint, body, peer);
    } catch (const Refusal& refusal) {
        reaction.reply.reason = refusal.sentence;
    } catch (const Error& error) {
        // Errors of files are those of the store, or of the message; the latter are named for their endpoint.
        const bool is_message = error.where() == endpoint;
        reaction.reply.code = is_message ? messages::Code::request_error : messages::Code::system_error;
        reaction.reply.reason = is_message ? error.message() : error.what();
    } catch (const std::exception& error) {
        reaction.reply.code = messages::Code::system_error;
        reaction.reply.reason = error.what();
    }
    if (reaction.reply.timestamp == 0) reaction.reply.timestamp = options_.wall();
    if (reaction.content) reaction.reply.content = *reaction.content;
    const bool is_known = std::ranges::find(messages::kEndpoints, endpoint) != messages::kEndpoints.end();
    const std::lock_guard lock(figures_mutex_);
    ++figures_[{is_known ? std::string(endpoint) : "other", static_cast<int>(reaction.reply.code)}];
    return std::move(reaction.reply);
}

Reaction Desk::reaction(std::string_view endpoint, std::string_view body, std::string_view peer) {
    auto envelope = messages::parsed<messages::Envelope>(body, endpoint);
    std::shared_ptr<const JobOptions> options;
    {
        const std::lock_guard lock(mutex_);
        const auto known = jobs_.find(envelope.job);
        if (known == jobs_.end()) throw Refusal{404, "there is no such job"};
        options = known->second;
    }
    if (options_.names_clients && peer != envelope.client)
        throw Refusal{403, "the client has another name than its certificate"};
    Request request = Job::taken(endpoint, std::move(envelope), *options);
    Reaction reaction;
    Task task;
    task.job = request.envelope.job;
    task.bytes = body.size();
    task.run = [&](Job& job) { reaction = job.answer(request, options_.wall()); };
    wait_for(task);
    return reaction;
}

std::string Desk::figures() const {
    std::string text = "# TYPE lunaria_federated_requests_total counter\n";
    {
        const std::lock_guard lock(figures_mutex_);
        for (const auto& [key, count] : figures_)
            text += str("lunaria_federated_requests_total{endpoint=\"", key.first, "\",code=\"", key.second, "\"} ",
                        count, "\n");
    }
    text += str("# TYPE lunaria_federated_bytes_total counter\nlunaria_federated_bytes_total{direction=\"in\"} ",
                bytes_in_.load(), "\nlunaria_federated_bytes_total{direction=\"out\"} ", bytes_out_.load(), "\n");
    return text;
}

void Desk::in(const std::string& job, const std::function<void(Job&)>& f) {
    Task task;
    task.job = job;
    task.run = f;
    wait_for(task);
}

void Desk::with_store(const std::function<void(Store&)>& f) {
    Task task;
    task.first = [&] { f(*store_); };
    wait_for(task);
}

void Desk::wait_for(Task& task) {
    std::unique_lock lock(mutex_);
    if (is_ending_) throw state_error(kWhere, "the server ends");
    tasks_.push_back(&task);
    came_.notify_one();
    task.done.wait(lock, [&] { return task.is_done; });
    if (task.error) throw *task.error;
}

Work Desk::next(double seconds) {
    std::unique_lock lock(mutex_);
    work_came_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !works_.empty() || is_ending_; });
    if (works_.empty()) return {};
    Work first = std::move(works_.front());
    works_.pop_front();
    return first;
}

// How long nothing will change by itself.
int64_t Desk::pause() const {
    int64_t least = kLook;
    for (const auto& [name, job] : open_)
        if (const auto end = job->rounds().deadline()) least = std::min(least, std::max<int64_t>(*end - job->now(), 0));
    return least;
}

void Desk::work() {
    std::vector<Task*> batch;
    std::unique_lock lock(mutex_);
    while (true) {
        came_.wait_for(lock, std::chrono::milliseconds(pause()), [&] { return !tasks_.empty() || is_ending_; });
        if (is_ending_ && tasks_.empty()) return;
        batch.clear();
        size_t bytes = 0;
        while (!tasks_.empty() && batch.size() < kMostTasks && bytes <= kMostBatch) {
            bytes += tasks_.front()->bytes;
            batch.push_back(tasks_.front());
            tasks_.pop_front();
        }
        lock.unlock();
        process(batch);
        lock.lock();
        for (Task* task : batch) {
            task->is_done = true;
            task->done.notify_one();
        }
    }
}

// All of a batch in one transaction; where that fails, each in its own.
void Desk::process(const std::vector<Task*>& batch) {
    std::optional<Error> failed;
    try {
        return step(batch);
    } catch (const Error& error) {
        failed = error;
    } catch (const std::exception& error) {
        failed = state_error(kWhere, error.what());
    }
    // What was taken in memory is not in the store; the work that was given may be lost with it.
    for (const auto& [name, job] : open_) job->forget();
    given_.clear();
    if (batch.size() == 1) batch.front()->error = failed;
    if (batch.size() > 1)
        for (Task* task : batch) process({task});
}

void Desk::step(const std::vector<Task*>& batch) {
    Transaction transaction(store_->database());
    const int64_t steady = options_.steady(), passed = std::max<int64_t>(steady - last_steady_, 0);
    last_steady_ = steady;
    for (const auto& [name, job] : open_) {
        job->refresh();
        job->set_time(job->now() + passed);
        job->tick();
    }
    for (Task* task : batch) {
        if (task->first) task->first();
        if (!task->run) continue;
        const auto job = open_.find(task->job);
        if (job == open_.end()) {
            task->error = argument_error(kWhere, str("there is no job '", task->job, "'"));
            continue;
        }
        task->run(*job->second);
    }
    for (const auto& [name, job] : open_) job->save();
    offer_work();
    transaction.commit();
}

bool Desk::is_alive(std::string_view server) const {
    if (server == own_name_) return true;
    const Descriptor file(open(lock_path(server).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return false;
    if (flock(file.number(), LOCK_SH | LOCK_NB) != 0) return true;
    unlink(lock_path(server).c_str());
    return false;
}

void Desk::offer_work() {
    for (const auto& [name, job] : open_) {
        const Work work = job->work();
        const auto given = given_.find(name);
        if (work.kind == Work::Kind::none) {
            if (given != given_.end()) given_.erase(given);
            continue;
        }
        if (given != given_.end() && given->second == work) continue;
        const std::string owner = store_->owner(job->number());
        if (owner != own_name_) {
            if (!owner.empty() && is_alive(owner)) continue;
            store_->put_owner(job->number(), own_name_);
        }
        given_[name] = work;
        const std::lock_guard lock(mutex_);
        works_.push_back(work);
        work_came_.notify_all();
    }
}

}  // namespace lunaria::federated
