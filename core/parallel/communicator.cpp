#include "core/parallel/communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/program_place.h"
#include "core/parallel/combine.h"
#include "core/parallel/connect.h"
#include "core/threads/make_thread.h"

namespace lunaria::parallel {

namespace {

bool is_transfer(Collective operation) { return operation == Collective::send || operation == Collective::recv; }

bool combines(Collective operation) {
    return operation == Collective::all_reduce || operation == Collective::reduce ||
           operation == Collective::reduce_scatter;
}

bool has_root(Collective operation) {
    return operation == Collective::reduce || operation == Collective::gather || operation == Collective::scatter ||
           operation == Collective::broadcast || is_transfer(operation);
}

bool takes_counts(Collective operation) {
    return operation == Collective::all_gather || operation == Collective::gather || operation == Collective::scatter ||
           operation == Collective::reduce_scatter || operation == Collective::all_to_all_v;
}

uint64_t mixed(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

int64_t sum_of(std::span<const int64_t> counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

thread_local Communicator* world_of_thread = nullptr;

std::atomic<Communicator*> connected{nullptr};

std::unique_ptr<Communicator>& world_of_process() {
    static std::unique_ptr<Communicator> communicator = [] {
        std::unique_ptr<Communicator> made = connect(environment());
        connected = made.get();
        return made;
    }();
    return communicator;
}

}  // namespace

Communicator* world() { return world_of_thread ? world_of_thread : world_of_process().get(); }
void set_world(std::unique_ptr<Communicator> communicator) {
    connected = communicator.get();
    world_of_process() = std::move(communicator);
}
void tell_failure(std::string_view text) {
    if (Communicator* communicator = connected) communicator->tell_failure(text);
}
WorldScope::WorldScope(Communicator* communicator) : before_(std::exchange(world_of_thread, communicator)) {}
WorldScope::~WorldScope() { world_of_thread = before_; }

Group::Group(std::vector<int> members, int own_rank) : members_(std::move(members)), rank_(place_of(own_rank)) {
    // Begun with a large number: small ones could be undone by the first member, and short lists be taken for longer
    // ones.
    uint64_t h = mixed(0x51ed270b7a3c9d21u, members_.size());
    for (const int member : members_) h = mixed(h, static_cast<uint64_t>(member) + 1);
    key_ = h ? h : 1;
}

int Group::place_of(int world_rank) const {
    const auto found = std::find(members_.begin(), members_.end(), world_rank);
    return found == members_.end() ? -1 : static_cast<int>(found - members_.begin());
}

int64_t bytes_received(const Request& request) {
    const auto width = static_cast<int64_t>(size_of(request.dtype));
    const int64_t n = request.group->size(), rank = request.group->rank();
    const int64_t own = request.counts.empty() ? request.count : request.counts[static_cast<size_t>(rank)];
    const bool is_root = rank == request.root;
    switch (request.operation) {
        case Collective::all_reduce:
            return 2 * (n - 1) * request.count * width / n;
        case Collective::reduce:
            return is_root ? (n - 1) * request.count * width / n : 0;
        case Collective::reduce_scatter:
            return (n - 1) * own * width;
        case Collective::gather:
        case Collective::all_gather:
            if (request.operation == Collective::gather && !is_root) return 0;
            return request.counts.empty() ? (n - 1) * own * width : (sum_of(request.counts) - own) * width;
        case Collective::scatter:
            return is_root ? 0 : own * width;
        case Collective::broadcast:
            return is_root ? 0 : request.count * width;
        case Collective::all_to_all:
            return (n - 1) * request.count * width;
        case Collective::all_to_all_v:
            return (sum_of(request.receive_counts) - request.receive_counts[static_cast<size_t>(rank)]) * width;
        case Collective::recv:
            return request.count * width;
        case Collective::send:
        case Collective::barrier:
            break;
    }
    return 0;
}

// A request that outlives the call that asked for it, with copies of its lists and texts.
struct Pending::State {
    State(Communicator& owner, const Request& given) : owner(owner), request(given) {
        counts.assign(given.counts.begin(), given.counts.end());
        receive_counts.assign(given.receive_counts.begin(), given.receive_counts.end());
        request.counts = counts;
        request.receive_counts = receive_counts;
        request.label = {};  // entered already
    }
    Communicator& owner;
    Request request;
    std::vector<int64_t> counts, receive_counts;
    Communicator::Entered entered{};
    std::unique_ptr<Transfer> transfer;
    std::atomic<bool> is_done{false};
    std::exception_ptr failure;
    bool in_background = false;  // of a transfer
};

bool Pending::done(const State& state) { return state.is_done.load(std::memory_order_acquire); }
bool Pending::is_done() const { return !state_ || done(*state_); }

void Pending::wait() const {
    if (state_) state_->owner.finish(*state_);
}

Communicator::Communicator(int rank, int ranks)
    : rank_(rank), ranks_(ranks), own_log_(std::make_unique<RankLog>()), log_(own_log_.get()) {
    std::vector<int> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    world_ = &group(all);
}

Communicator::~Communicator() { stop(); }

void Communicator::stop() {
    {
        std::scoped_lock lock(mutex_, transfers_mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    transfers_changed_.notify_all();
    if (queue_thread_.joinable()) queue_thread_.join();
    if (transfer_thread_.joinable()) transfer_thread_.join();
}

const Group& Communicator::group(std::span<const int> members) {
    std::vector<int> list(members.begin(), members.end());
    std::lock_guard lock(groups_mutex_);
    const auto known = groups_.find(list);
    if (known != groups_.end()) return *known->second;
    if (list.empty()) throw value_error("create_group", "a group has at least one rank");
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i] < 0 || list[i] >= ranks_)
            throw index_error("create_group", str("rank ", list[i], " is none of 0 .. ", ranks_ - 1));
        if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list[i]) !=
            list.begin() + static_cast<std::ptrdiff_t>(i))
            throw value_error("create_group", str("rank ", list[i], " is in the list twice"));
    }
    return *(groups_[list] = std::make_unique<Group>(list, rank_));
}

namespace {
bool is_world(std::string_view name) {
    return name.empty() || name == "hccl_world_group" || name == "nccl_world_group" || name == "mccl_world_group";
}
}  // namespace

void Communicator::name_group(const std::string& name, std::span<const int> members) {
    const Group& made = group(members);
    if (is_world(name)) throw value_error("create_group", str("\"", name, "\" is the name of the group of all ranks"));
    std::lock_guard lock(groups_mutex_);
    const auto [known, is_new] = named_.try_emplace(name, &made);
    if (!is_new && known->second != &made)
        throw value_error("create_group", str("there is a group \"", name, "\" of other ranks already"))
            .hint("destroy_group forgets it");
}

void Communicator::forget_group(std::string_view where, const std::string& name) {
    if (is_world(name)) throw value_error(where, "the group of all ranks stays");
    named_group(where, name);
    std::lock_guard lock(groups_mutex_);
    named_.erase(name);
}

const Group& Communicator::named_group(std::string_view where, std::string_view name) {
    if (is_world(name)) return *world_;
    std::lock_guard lock(groups_mutex_);
    const auto found = named_.find(name);
    if (found == named_.end())
        throw argument_error(where, str("there is no group \"", name, "\""))
            .hint("create_group(name, ranks) makes one");
    return *found->second;
}

void Communicator::check(const Request& request) const {
    const std::string_view name = name_of(request.operation);
    const Group& group = *request.group;
    if (group.rank() < 0) throw value_error(name, str("rank ", rank_, " is not in the group that it asks"));
    const auto n = static_cast<size_t>(group.size());
    if (has_root(request.operation) && (request.root < 0 || request.root >= group.size()))
        throw index_error(name, str("rank ", request.root, " of a group of ", n, ": it must be in 0 .. ", n - 1));
    if (is_transfer(request.operation) && request.root == group.rank())
        throw value_error(name, str("rank ", rank_, " cannot ", name, " to itself"));
    if (request.count < 0) throw value_error(name, str("a count of ", request.count));
    if (combines(request.operation)) check_combine(name, request.combine, request.dtype);
    const bool is_v = request.operation == Collective::all_to_all_v;
    const auto check_list = [&](std::span<const int64_t> list, const char* what) {
        if (list.size() != n) throw value_error(name, str(list.size(), " ", what, " for a group of ", n));
        for (const int64_t count : list)
            if (count < 0) throw value_error(name, str("a count of ", count));
    };
    if (is_v || (takes_counts(request.operation) && !request.counts.empty())) check_list(request.counts, "counts");
    if (is_v) check_list(request.receive_counts, "counts to receive");
}

Communicator::Entered Communicator::enter(const Request& request) {
    std::string here;
    std::string_view place = request.label.place;
    if (place.empty() && ranks_ > 1) place = here = program_place();  // one rank has no partner to tell
    Mark mark;
    std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    mark.sequence = request.group->next_sequence(is_transfer(request.operation));
    mark.count = request.counts.empty() ? request.count : sum_of(request.counts);
    mark.group = static_cast<uint32_t>(request.group->key());
    mark.root = has_root(request.operation) ? request.root : 0;
    mark.tag = is_transfer(request.operation) ? request.tag : 0;
    // What all_to_all_v sends differs from rank to rank.
    if (request.operation == Collective::all_to_all_v) {
        mark.count = 0;
    } else if (!request.counts.empty()) {
        uint64_t h = 0;
        for (const int64_t count : request.counts) h = mixed(h, static_cast<uint64_t>(count));
        mark.tag = static_cast<int32_t>(h >> 32);
    }
    if (const size_t colon = place.rfind(':'); colon != place.npos) {
        mark.chunk = names_.number(*log_, place.substr(0, colon));
        for (const char c : place.substr(colon + 1))
            if (c >= '0' && c <= '9') mark.line = mark.line * 10 + static_cast<uint32_t>(c - '0');
    } else {
        mark.chunk = names_.number(*log_, place);
    }
    mark.parameter = names_.number(*log_, request.label.parameter);
    mark.operation = request.operation;
    mark.dtype = request.operation == Collective::barrier ? DType::boolean : request.dtype;
    mark.is_elsewhere = request.is_elsewhere;
    mark.combine = combines(request.operation) ? request.combine : Combine::sum;
    const uint64_t number = log_->written.load(std::memory_order_relaxed);
    RankLog::Entry& entry = log_->ring[number % RankLog::kEntries];
    entry.mark = mark;
    entry.size = static_cast<uint64_t>(request.group->size());
    entry.end.store(0, std::memory_order_relaxed);
    entry.begin.store(nanoseconds_now(), std::memory_order_relaxed);
    log_->written.store(number + 1, std::memory_order_release);
    return {mark, bytes_received(request), number};
}

void Communicator::leave(const Request& request, const Entered& entered) {
    std::lock_guard lock(mutex_);
    Traffic& traffic = traffic_[static_cast<size_t>(request.operation)];
    ++traffic.calls;
    traffic.bytes += static_cast<uint64_t>(entered.bytes);
    if (log_->written.load(std::memory_order_relaxed) - entered.entry <= RankLog::kEntries)
        log_->ring[entered.entry % RankLog::kEntries].end.store(nanoseconds_now(), std::memory_order_relaxed);
}

void Communicator::fail(std::exception_ptr reason) {
    try {
        std::rethrow_exception(reason);
    } catch (const std::exception& e) {
        note_failure(std::move(reason), e.what());
    } catch (...) {
        note_failure(std::move(reason), "an unknown failure");
    }
}

void Communicator::tell_failure(std::string_view text) {
    note_failure(std::make_exception_ptr(state_error("communication", "this rank has failed already")), text);
}

// The first failure is the one that is told, by its first line.
void Communicator::note_failure(std::exception_ptr reason, std::string_view text) {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = std::move(reason);
    has_failed_ = true;
    text.substr(0, text.find('\n')).copy(log_->failure, sizeof log_->failure - 1);
    log_->state.store(RankState::failed, std::memory_order_release);
}

void Communicator::throw_failure() {
    if (!has_failed_) return;
    std::lock_guard locked(mutex_);
    std::rethrow_exception(failure_);
}

void Communicator::carry_out(const Request& request, const Entered& entered) {
    std::lock_guard lock(lane_);
    throw_failure();
    try {
        execute(request, entered.mark);
    } catch (...) {
        fail(std::current_exception());
        throw;
    }
    leave(request, entered);
}

void Communicator::run(const Request& given) {
    Request request = given;
    if (!request.group) request.group = world_;
    if (is_transfer(request.operation)) return run_together({&request, 1});
    check(request);
    const Entered entered = enter(request);
    std::shared_ptr<Pending::State> queued;
    if (queue_is_busy_) {  // only then the lock is worth its time
        std::lock_guard lock(mutex_);
        if (queue_is_busy_) {
            queued = std::make_shared<Pending::State>(*this, request);
            queued->entered = entered;
            queue_.push_back(queued);
        }
    }
    if (!queued) return carry_out(request, entered);
    changed_.notify_all();
    finish(*queued);
}

Pending Communicator::start(const Request& given) {
    Request request = given;
    if (!request.group) request.group = world_;
    if (is_transfer(request.operation)) return Pending(add_transfer(request, true));
    check(request);
    auto state = std::make_shared<Pending::State>(*this, request);
    state->entered = enter(request);
    {
        std::lock_guard lock(mutex_);
        queue_.push_back(state);
        queue_is_busy_ = true;
        if (!queue_thread_.joinable()) queue_thread_ = make_thread("communication", [this] { carry_out_queue(); });
    }
    changed_.notify_all();
    return Pending(state);
}

void Communicator::carry_out_queue() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
        if (queue_.empty()) return;
        const std::shared_ptr<Pending::State> state = queue_.front();
        queue_.pop_front();
        lock.unlock();
        try {
            carry_out(state->request, state->entered);
        } catch (...) {
            state->failure = std::current_exception();
        }
        lock.lock();
        queue_is_busy_ = !queue_.empty();
        state->is_done.store(true, std::memory_order_release);
        changed_.notify_all();
    }
}

void Communicator::rethrow(const Pending::State& state) {
    if (state.failure) std::rethrow_exception(state.failure);
}

void Communicator::finish(Pending::State& state) {
    if (is_transfer(state.request.operation)) {
        if (Pending::done(state)) return rethrow(state);
        waits_for(&state.request);
        const std::unique_ptr<Communicator, void (*)(Communicator*)> told(
            this, [](Communicator* communicator) { communicator->waits_for(nullptr); });
        while (!Pending::done(state)) {
            const uint32_t seen = news();
            advance_transfers();
            if (Pending::done(state)) break;
            poll_interrupt();
            wait_for_news(seen);
        }
    } else {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return Pending::done(state); });
    }
    rethrow(state);
}

std::shared_ptr<Pending::State> Communicator::add_transfer(const Request& request, bool in_background) {
    check(request);
    auto state = std::make_shared<Pending::State>(*this, request);
    state->entered = enter(request);
    if (request.is_elsewhere) state->request.count = 0;  // the mark has the number
    {
        std::lock_guard lock(transfers_mutex_);
        state->transfer = post(state->request, state->entered.mark);
        transfers_.push_back(state);
        if (!in_background) return state;
        state->in_background = true;
        ++in_background_;
        if (!transfer_thread_.joinable())
            transfer_thread_ = make_thread("communication", [this] { carry_on_transfers(); });
    }
    transfers_changed_.notify_all();
    return state;
}

void Communicator::finish_transfer(Pending::State& state, std::exception_ptr failure) {
    if (failure)
        fail(failure);
    else
        leave(state.request, state.entered);
    state.failure = std::move(failure);
    state.transfer.reset();
    if (state.in_background) --in_background_;
    state.is_done.store(true, std::memory_order_release);
}

void Communicator::advance_transfers() {
    std::lock_guard lock(transfers_mutex_);
    for (auto i = transfers_.begin(); i != transfers_.end();) {
        Pending::State& state = **i;
        bool is_over = false;
        try {
            throw_failure();
            is_over = state.transfer->advance();
            if (is_over) finish_transfer(state, nullptr);
        } catch (...) {
            finish_transfer(state, std::current_exception());
            is_over = true;
        }
        i = is_over ? transfers_.erase(i) : std::next(i);
    }
}

// Transfers for which the program does not wait move on, too.
void Communicator::carry_on_transfers() {
    while (true) {
        {
            std::unique_lock lock(transfers_mutex_);
            transfers_changed_.wait(lock, [&] { return ends_ || in_background_ > 0; });
            if (ends_) return;
        }
        const uint32_t seen = news();
        advance_transfers();
        wait_for_news(seen);
    }
}

void Communicator::run_together(std::span<const Request> transfers) {
    std::vector<std::shared_ptr<Pending::State>> states;
    for (const Request& given : transfers) {
        Request request = given;
        if (!request.group) request.group = world_;
        if (!is_transfer(request.operation))
            throw argument_error(name_of(request.operation), "only send and recv are run together");
        states.push_back(add_transfer(request, false));
    }
    for (const auto& state : states) finish(*state);
}

}  // namespace lunaria::parallel
