// Ranks that work together: what they ask of one another, whatever connects them. An engine (shared memory, threads of
// one process, MPI, ...) derives from Communicator and carries out requests one at a time; everything else is here:
// groups, checks, the record of what was asked, asynchronous requests.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/parallel/recorder.h"
#include "core/tensor/dtype.h"

namespace lunaria::parallel {

// Ranks of the world in an order of their own. Made and kept by Communicator::group.
class Group {
  public:
    Group(std::vector<int> members, int own_rank);
    int size() const { return static_cast<int>(members_.size()); }
    int rank() const { return rank_; }  // the place of this rank in the group; -1: it is not in it
    int world_rank(int place) const { return members_[place]; }
    int place_of(int world_rank) const;  // -1: not in it
    std::span<const int> members() const { return members_; }
    uint64_t key() const { return key_; }  // the same in all ranks, and for no other group
    // The number of the next request; sends and receives, which concern two ranks only, count for themselves.
    uint64_t next_sequence(bool is_transfer) const { return ++(is_transfer ? transfers_ : collectives_); }

  private:
    std::vector<int> members_;
    int rank_;
    uint64_t key_;
    mutable std::atomic<uint64_t> collectives_{0}, transfers_{0};  // requests of this rank so far
};

// The part of the user's program that asks: "file:line" (empty: the line that this thread runs) and the parameter that
// the data belong to, if any.
struct Label {
    std::string_view place, parameter;
};

// What one rank asks of its group. `count` counts elements: of the whole in all_reduce, reduce, broadcast, send and
// recv; of the piece of one rank in all_gather, gather, scatter and reduce_scatter; of what goes to one rank in
// all_to_all. The operands stay as they are until the request is done. `in` and `out` may be the same memory in
// all_reduce, reduce and broadcast, and `in` may be this rank's piece of `out` in all_gather; else they are apart.
struct Request {
    Collective operation = Collective::barrier;
    const Group* group = nullptr;  // null: the world
    DType dtype = DType::f32;
    Combine combine = Combine::sum;
    int64_t count = 0;
    const void* in = nullptr;
    void* out = nullptr;
    int root = 0;  // a place in the group: the one that gives or gets the whole; the other side of send and recv
    int tag = 0;   // of send and recv
    // Pieces of different sizes: of each rank, the same list in all ranks (all_gather, gather, scatter, reduce_scatter;
    // empty: all are `count`). Of all_to_all_v: what this rank sends to each, and what it gets from each.
    std::span<const int64_t> counts, receive_counts;
    Label label;
    // The data travel by another way: the ranks only compare what they ask for.
    bool is_elsewhere = false;
};

// The bytes that a rank gets from others by a request, at the least that any engine needs: of n ranks and a whole of s
// bytes (n-1)/n s for gathering, exchanging and reduce_scatter, twice that for all_reduce, s for broadcast and recv.
int64_t bytes_received(const Request& request);

// What a request moved, summed up for each kind of request.
struct Traffic {
    uint64_t calls = 0, bytes = 0;
};

// A request that is carried out meanwhile. Copies stand for the same request.
class Pending {
  public:
    struct State;
    Pending() = default;
    explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}
    bool is_done() const;
    void wait() const;  // throws what the request failed with
    static bool done(const State& state);

  private:
    std::shared_ptr<State> state_;  // the request's lane owns it together with those that wait
};

// A send or recv under way.
class Transfer {
  public:
    virtual ~Transfer() = default;
    // Moves on as far as it can without waiting; whether it is complete. Throws where it can never be.
    virtual bool advance() = 0;
};

class Communicator {
  public:
    Communicator(int rank, int ranks);
    virtual ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    int rank() const { return rank_; }
    int ranks() const { return ranks_; }
    virtual std::string_view engine() const = 0;  // "shared memory", "mpi" ...
    const Group& world() const { return *world_; }
    // The group of these ranks of the world, in this order; it lives as long as the communicator. No communication:
    // each member makes it when it needs it.
    const Group& group(std::span<const int> members);
    // Groups by names, as programs call them; the empty name and MindSpore's "hccl_world_group" (also nccl, mccl) are
    // the world. Each rank that asks a group by name has named it before.
    void name_group(const std::string& name, std::span<const int> members);
    void forget_group(std::string_view where, const std::string& name);  // errors name the function `where`
    const Group& named_group(std::string_view where, std::string_view name);

    // Carries out a request and returns when `out` holds this rank's part. Requests of one group must be asked for in
    // the same order by all its members. Every member checks that the others ask for the same: where they don't, or
    // where one is dead, an error tells both sides.
    void run(const Request& request);
    // The same without waiting: a thread of the communicator carries out such requests in the order in which they were
    // started; run() waits for its turn behind them. Sends and receives go on beside them in any order.
    Pending start(const Request& request);
    // Several sends and receives that may wait for one another; returns when all are done.
    void run_together(std::span<const Request> transfers);

    // Why a rank will never do its part of anything any more: "rank 2 (process 812) was killed by ..."; empty: none is
    // known. For those that wait for the other ranks by other ways. May be called by any thread.
    virtual std::string casualty() { return ""; }
    // The program of this rank has failed for a reason of its own: those that wait for it are told the text.
    void tell_failure(std::string_view text);

    // Requests that are carried out meanwhile may or may not be counted yet.
    Traffic traffic(Collective operation) const {
        std::lock_guard lock(mutex_);
        return traffic_[static_cast<size_t>(operation)];
    }
    void reset_traffic() {
        std::lock_guard lock(mutex_);
        traffic_ = {};
    }

  protected:
    // Engines. `mark` is what the request was entered as in the record, with its sequence number. Calls of execute() do
    // not overlap, but may come from different threads; neither do calls of post() and Transfer::advance().
    virtual void execute(const Request& request, const Mark& mark) = 0;
    virtual std::unique_ptr<Transfer> post(const Request& request, const Mark& mark) = 0;
    // A number that changes whenever a transfer may be able to move on, and waiting until it differs from `seen` (or
    // for some while: callers look again).
    virtual uint32_t news() const = 0;
    virtual void wait_for_news(uint32_t seen) = 0;
    // Told before the program waits for a transfer, and after it (null).
    virtual void waits_for(const Request* transfer) { static_cast<void>(transfer); }
    bool has_failed() const { return has_failed_; }
    // Whether requests are waiting for their turn, or one of them is carried out.
    bool has_queue() const { return queue_is_busy_; }
    RankLog& log() { return *log_; }  // the record of this rank's requests
    // Engines whose ranks see each other's records set theirs, before the first request.
    void use_log(RankLog* log) { log_ = log; }
    // Ends the threads of the communicator; every engine's destructor begins with it.
    void stop();

  private:
    friend class Pending;
    friend struct Pending::State;
    struct Entered {
        Mark mark;
        int64_t bytes;   // to be received
        uint64_t entry;  // its number in the record
    };
    void check(const Request& request) const;
    Entered enter(const Request& request);
    void leave(const Request& request, const Entered& entered);
    void fail(std::exception_ptr reason);
    void note_failure(std::exception_ptr reason, std::string_view text);
    void throw_failure();
    // Carries the request out with what belongs to it; after a failure no request is carried out any more.
    void carry_out(const Request& request, const Entered& entered);
    void carry_out_queue();
    void finish(Pending::State& state);
    static void rethrow(const Pending::State& state);
    std::shared_ptr<Pending::State> add_transfer(const Request& request, bool in_background);
    void advance_transfers();
    void carry_on_transfers();
    void finish_transfer(Pending::State& state, std::exception_ptr failure);

    const int rank_, ranks_;
    std::unique_ptr<RankLog> own_log_;
    RankLog* log_;
    NameTable names_;
    std::mutex groups_mutex_;
    std::map<std::vector<int>, std::unique_ptr<Group>> groups_;
    std::map<std::string, const Group*, std::less<>> named_;
    const Group* world_ = nullptr;
    std::array<Traffic, kCollectives> traffic_{};

    std::mutex lane_;  // held while a collective request is carried out
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Pending::State>> queue_;
    std::atomic<bool> queue_is_busy_{false};  // or not empty
    std::atomic<bool> ends_{false};
    std::exception_ptr failure_;
    std::thread queue_thread_, transfer_thread_;
    std::mutex transfers_mutex_;
    std::condition_variable transfers_changed_;
    std::list<std::shared_ptr<Pending::State>> transfers_;
    int in_background_ = 0;  // transfers for which the transfer thread cares
    std::atomic<bool> has_failed_{false};
};

// The communicator that programs of this thread use; null: there is one rank, which works alone. Simulated ranks set it
// for their threads. Processes that were launched together are connected when this is asked for the first time, as
// core/parallel/connect.h says.
Communicator* world();
void set_world(std::unique_ptr<Communicator> communicator);
// Tells the other ranks why this one ends, if it is connected: the first line of an error.
void tell_failure(std::string_view text);
// While it lives, world() of this thread is `communicator`.
class WorldScope {
  public:
    explicit WorldScope(Communicator* communicator);
    ~WorldScope();
    WorldScope(const WorldScope&) = delete;
    WorldScope& operator=(const WorldScope&) = delete;

  private:
    Communicator* before_;
};

}  // namespace lunaria::parallel
