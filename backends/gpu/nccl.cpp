#include "backends/gpu/nccl.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <utility>
#include <vector>

#include "backends/gpu/library.h"
#include "core/base/error.h"

namespace lunaria::gpu {

namespace {

using parallel::Collective;
using parallel::LinkStep;
using Status = int;
constexpr Status kDone = 0, kInProgress = 7;
constexpr int kOldest = 21800;  // has calls that do not wait, with all members of the settings below

struct CommHandle;
struct Id {
    char bytes[parallel::DeviceLinks::kIdSize];
};
// The library's settings of a group, as of version 2.18; newer ones take them by their size and version.
struct Settings {
    size_t size = sizeof(Settings);
    unsigned magic = 0xcafebeef, version = kOldest;
    int blocking = 0, cluster_size = INT_MIN, fewest_blocks = INT_MIN, most_blocks = INT_MIN;
    const char* net = nullptr;
    int share_split = INT_MIN;
};

struct Library {
    Status (*version)(int* version);
    Status (*unique_id)(Id* id);
    Status (*init)(CommHandle** comm, int size, Id id, int rank, Settings* settings);
    Status (*abort)(CommHandle* comm);
    Status (*async_error)(CommHandle* comm, Status* state);
    const char* (*error_string)(Status);
    const char* (*last_error)(CommHandle* comm);
    Status (*group_start)();
    Status (*group_end)();
    Status (*all_reduce)(const void*, void*, size_t, int, int, CommHandle*, StreamHandle*);
    Status (*reduce)(const void*, void*, size_t, int, int, int, CommHandle*, StreamHandle*);
    Status (*broadcast)(const void*, void*, size_t, int, int, CommHandle*, StreamHandle*);
    Status (*all_gather)(const void*, void*, size_t, int, CommHandle*, StreamHandle*);
    Status (*reduce_scatter)(const void*, void*, size_t, int, int, CommHandle*, StreamHandle*);
    Status (*send)(const void*, size_t, int, int, CommHandle*, StreamHandle*);
    Status (*recv)(void*, size_t, int, int, CommHandle*, StreamHandle*);
};

struct OpenedLibrary {
    Library functions{};
    LibraryState state;
};

const OpenedLibrary& opened() {
    static const OpenedLibrary library = [] {
        OpenedLibrary o;
        Library& f = o.functions;
        LibraryOpener opener("NCCL", {"libnccl.so.2"});
        opener.find(f.version, "ncclGetVersion");
        opener.find(f.unique_id, "ncclGetUniqueId");
        opener.find(f.init, "ncclCommInitRankConfig");
        opener.find(f.abort, "ncclCommAbort");
        opener.find(f.async_error, "ncclCommGetAsyncError");
        opener.find(f.error_string, "ncclGetErrorString");
        opener.find(f.last_error, "ncclGetLastError");
        opener.find(f.group_start, "ncclGroupStart");
        opener.find(f.group_end, "ncclGroupEnd");
        opener.find(f.all_reduce, "ncclAllReduce");
        opener.find(f.reduce, "ncclReduce");
        opener.find(f.broadcast, "ncclBroadcast");
        opener.find(f.all_gather, "ncclAllGather");
        opener.find(f.reduce_scatter, "ncclReduceScatter");
        opener.find(f.send, "ncclSend");
        opener.find(f.recv, "ncclRecv");
        int v = 0;
        if (opener.is_there() && f.version(&v) == kDone)
            opener.set_version(v, kOldest, str(v / 10000, '.', v / 100 % 100, '.', v % 100), "2.18.0 or newer");
        o.state = opener.state();
        return o;
    }();
    return library;
}

// The library's number of a dtype; -1: it has none.
int number_of(DType dtype) {
    switch (dtype) {
        case DType::i8:
            return 0;
        case DType::u8:
            return 1;
        case DType::i32:
            return 2;
        case DType::i64:
            return 4;
        case DType::f16:
            return 6;
        case DType::f32:
            return 7;
        case DType::f64:
            return 8;
        case DType::bf16:
            return 9;
        default:
            return -1;
    }
}

// Those of parallel::Combine: the library has them in the same order.
int number_of(parallel::Combine combine) { return static_cast<int>(combine); }

[[noreturn]] void refuse(std::string_view what, Status status, CommHandle* comm) {
    const Library& nccl = opened().functions;
    const char* text = nccl.error_string(status);
    const char* more = comm ? nccl.last_error(comm) : nullptr;
    throw state_error(what, str("NCCL: ", text ? text : "unknown error", more && *more ? str(": ", more) : ""))
        .hint("NCCL_DEBUG=INFO lets the library say more");
}

// Calls of a group that does not wait are accepted some time later.
Status settled(CommHandle* comm, Status status) {
    const Library& nccl = opened().functions;
    constexpr int kMicroseconds = 20;
    while (status == kInProgress) {
        if (const Status asked = nccl.async_error(comm, &status); asked != kDone) return asked;
        if (status == kInProgress) usleep(kMicroseconds);
    }
    return status;
}

Status call(const LinkStep& s, CommHandle* comm, StreamHandle* stream) {
    const Library& nccl = opened().functions;
    const auto count = static_cast<size_t>(s.count);
    const int dtype = number_of(s.dtype), combine = number_of(s.combine);
    switch (s.operation) {
        case Collective::all_reduce:
            return nccl.all_reduce(s.in, s.out, count, dtype, combine, comm, stream);
        case Collective::reduce:
            return nccl.reduce(s.in, s.out, count, dtype, combine, s.other, comm, stream);
        case Collective::broadcast:
            return nccl.broadcast(s.in, s.out, count, dtype, s.other, comm, stream);
        case Collective::all_gather:
            return nccl.all_gather(s.in, s.out, count, dtype, comm, stream);
        case Collective::reduce_scatter:
            return nccl.reduce_scatter(s.in, s.out, count, dtype, combine, comm, stream);
        case Collective::send:
            return nccl.send(s.in, count, dtype, s.other, comm, stream);
        default:
            return nccl.recv(s.out, count, dtype, s.other, comm, stream);
    }
}

class Link final : public parallel::DeviceLink {
  public:
    Link(Queue& queue, CommHandle* comm) : queue_(queue), comm_(comm) {}
    ~Link() override {
        if (CommHandle* comm = comm_) opened().functions.abort(comm);
    }

    void submit(std::span<const LinkStep> steps, std::string_view what) override {
        status_ = kDone;
        try {
            queue_.call(words_of(steps), 2, what,
                        [this, kept = std::vector<LinkStep>(steps.begin(), steps.end())](StreamHandle* stream) {
                            return give(kept, stream);
                        });
        } catch (const Error&) {
            if (status_ == kDone) throw;
            refuse(what, status_, comm_);
        }
    }

    std::string failure() override {
        Status status = kDone;
        CommHandle* comm = comm_;
        const Library& nccl = opened().functions;
        if (!comm || (nccl.async_error(comm, &status) == kDone && (status == kDone || status == kInProgress)))
            return "";
        const char* text = nccl.error_string(status);
        return str("NCCL: ", text ? text : "unknown error");
    }

    void abort(const std::string& why) override {
        queue_.fail(why);
        if (CommHandle* comm = comm_.exchange(nullptr)) opened().functions.abort(comm);
    }

  private:
    // What identifies the steps among all others: the memory of the first one, and a number for all that they are.
    std::vector<uint64_t> words_of(std::span<const LinkStep> steps) const {
        uint64_t h = 0;
        const auto add = [&](uint64_t x) { h = (h ^ x ^ h >> 29) * 0x9e3779b97f4a7c15u; };
        for (const LinkStep& s : steps) {
            for (const void* operand : {s.in, static_cast<const void*>(s.out)})
                add(reinterpret_cast<uint64_t>(operand));
            for (const int64_t number : {static_cast<int64_t>(s.operation), static_cast<int64_t>(s.dtype),
                                         static_cast<int64_t>(s.combine), static_cast<int64_t>(s.other), s.count})
                add(static_cast<uint64_t>(number));
        }
        return {reinterpret_cast<uint64_t>(steps[0].in), reinterpret_cast<uint64_t>(steps[0].out),
                reinterpret_cast<uint64_t>(comm_.load()), h};
    }

    // The queue calls it, at once or when the work that it gathers is handed over.
    Result give(const std::vector<LinkStep>& steps, StreamHandle* stream) {
        const Library& nccl = opened().functions;
        CommHandle* comm = comm_;
        if (!comm) return kLibraryFailed;  // aborted: the queue tells why
        nccl.group_start();
        Status status = kDone;
        for (const LinkStep& s : steps)
            if (status == kDone || status == kInProgress) status = call(s, comm, stream);
        const Status ended = nccl.group_end();
        if (status == kDone || status == kInProgress) status = settled(comm, ended);
        status_ = status;
        return status == kDone ? kSuccess : kLibraryFailed;
    }

    Queue& queue_;
    std::atomic<CommHandle*> comm_;  // null: aborted, by the thread that looks after the ranks
    Status status_ = kDone;
};

class Links final : public parallel::DeviceLinks {
  public:
    explicit Links(Queue& queue) : queue_(queue) {}
    std::string missing() override { return communication_library().missing; }
    std::string processor() override {
        const Driver& driver = *open_driver().driver;
        return str(driver.name, " number ", driver.device);
    }
    bool takes(DType dtype) const override { return number_of(dtype) >= 0; }

    std::string make_id() override {
        Id id{};
        if (const Status status = opened().functions.unique_id(&id); status != kDone)
            refuse("communication", status, nullptr);
        return {id.bytes, sizeof id.bytes};
    }

    std::unique_ptr<parallel::DeviceLink> join(const std::string& id, int rank, int size,
                                               const std::function<void()>& meanwhile) override {
        const Library& nccl = opened().functions;
        CommHandle* comm = nullptr;
        Id given{};
        id.copy(given.bytes, sizeof given.bytes);
        Settings settings;
        Status status = kDone;
        queue_.in_context([&](uint64_t) { status = nccl.init(&comm, size, given, rank, &settings); });
        constexpr int kMicroseconds = 1000;
        try {
            while (status == kInProgress) {
                if (const Status asked = nccl.async_error(comm, &status); asked != kDone) status = asked;
                if (status != kInProgress) break;
                meanwhile();
                usleep(kMicroseconds);
            }
            if (status != kDone) refuse("communication", status, comm);
        } catch (const Error&) {
            if (comm) nccl.abort(comm);
            throw;
        }
        return std::make_unique<Link>(queue_, comm);
    }

  private:
    Queue& queue_;
};

}  // namespace

const LibraryState& communication_library() { return opened().state; }

parallel::DeviceLinks& nccl_links(Queue& queue) {
    // Never destroyed: the groups that it made are used until the end.
    static auto* links = new Links(queue);
    return *links;
}

}  // namespace lunaria::gpu
