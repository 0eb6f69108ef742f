#include "core/parallel/device_requests.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/threads/make_thread.h"

namespace lunaria::parallel {

namespace {

// What a rank can do, as all others are told it.
struct Ability {
    char missing[200] = {};    // empty: the library is there
    char processor[120] = {};  // with its host

    static Ability of(DeviceLinks& links, std::string_view wish) {
        Ability ability;
        const std::string missing = wish == "host" ? "LUNARIA_DEVICE_ENGINE is \"host\"" : links.missing();
        missing.copy(ability.missing, sizeof ability.missing - 1);
        char host[64] = {};
        gethostname(host, sizeof host - 1);
        str(links.processor(), " of ", host).copy(ability.processor, sizeof ability.processor - 1);
        return ability;
    }
};

// Why a group cannot use the library; the same text in all its members.
std::string obstacle(const Group& group, const std::vector<Ability>& abilities) {
    std::map<std::string, int> ranks;
    for (int place = 0; place < group.size(); ++place) {
        const Ability& ability = abilities[static_cast<size_t>(place)];
        const int rank = group.world_rank(place);
        if (*ability.missing) return str("rank ", rank, ": ", ability.missing);
        const auto [found, is_new] = ranks.emplace(ability.processor, rank);
        if (!is_new) return str("ranks ", found->second, " and ", rank, " use the same processor, ", ability.processor);
    }
    return "";
}

std::string_view wished_engine() {
    const char* wish = std::getenv("LUNARIA_DEVICE_ENGINE");
    const std::string_view engine = wish ? wish : "";
    if (!engine.empty() && engine != "host" && engine != "nccl")
        throw value_error("communication",
                          str("LUNARIA_DEVICE_ENGINE is \"", engine, "\"; there are \"nccl\" and \"host\""));
    return engine;
}

// The steps of a request, piece by piece.
class Steps {
  public:
    explicit Steps(const Request& request)
        : request_(request),
          n_(request.group->size()),
          me_(request.group->rank()),
          width_(static_cast<int64_t>(size_of(request.dtype))) {}

    std::vector<LinkStep> take() {
        const bool is_root = me_ == request_.root;
        switch (request_.operation) {
            case Collective::all_reduce:
            case Collective::reduce:
            case Collective::broadcast:
            case Collective::send:
            case Collective::recv:
                add(request_.operation, request_.root, request_.count, 0, 0);
                break;
            case Collective::all_gather:
            case Collective::reduce_scatter:
                if (request_.counts.empty())
                    add(request_.operation, 0, request_.count, 0, 0);
                else
                    uneven(request_.operation == Collective::all_gather);
                break;
            case Collective::gather:
                add(Collective::send, request_.root, piece(me_), 0, 0);
                for (int i = 0; is_root && i < n_; ++i) add(Collective::recv, i, piece(i), 0, begin(i));
                break;
            case Collective::scatter:
                for (int i = 0; is_root && i < n_; ++i) add(Collective::send, i, piece(i), begin(i), 0);
                add(Collective::recv, request_.root, piece(me_), 0, 0);
                break;
            case Collective::all_to_all:
            case Collective::all_to_all_v:
                exchange();
                break;
            case Collective::barrier:
                break;
        }
        return std::move(steps_);
    }

  private:
    int64_t piece(int place) const {
        return request_.counts.empty() ? request_.count : request_.counts[static_cast<size_t>(place)];
    }
    int64_t begin(int place) const {
        int64_t sum = 0;
        for (int i = 0; i < place; ++i) sum += piece(i);
        return sum;
    }
    // `from` and `to`: elements of the operand and the result before those of the step.
    void add(Collective operation, int other, int64_t count, int64_t from, int64_t to) {
        if (count == 0) return;
        LinkStep step{operation, request_.dtype, request_.combine, other, count, nullptr, nullptr};
        if (request_.in) step.in = static_cast<const char*>(request_.in) + from * width_;
        if (request_.out) step.out = static_cast<char*>(request_.out) + to * width_;
        steps_.push_back(step);
    }
    // The library has no pieces of different sizes: one request for each of them.
    void uneven(bool gathers) {
        for (int i = 0; i < n_; ++i)
            add(gathers ? Collective::broadcast : Collective::reduce, i, piece(i), gathers ? 0 : begin(i),
                gathers ? begin(i) : 0);
    }
    void exchange() {
        int64_t from = 0, to = 0;
        for (int i = 0; i < n_; ++i) {
            const bool is_v = request_.operation == Collective::all_to_all_v;
            const int64_t leaves = is_v ? request_.counts[static_cast<size_t>(i)] : request_.count;
            const int64_t comes = is_v ? request_.receive_counts[static_cast<size_t>(i)] : request_.count;
            add(Collective::send, i, leaves, from, 0);
            add(Collective::recv, i, comes, 0, to);
            from += leaves;
            to += comes;
        }
    }

    const Request& request_;
    const int n_, me_;
    const int64_t width_;
    std::vector<LinkStep> steps_;
};

}  // namespace

std::vector<LinkStep> link_steps(const Request& request) { return Steps(request).take(); }

DeviceRequests::DeviceRequests(Communicator& communicator, DeviceLinks& links)
    : communicator_(communicator), links_(links) {}

DeviceRequests::~DeviceRequests() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool DeviceRequests::serves(const Group& group) {
    if (group.size() == 1 && wished_engine() != "nccl") return false;
    const auto known = joined_.find(&group);
    if (known != joined_.end()) return known->second != nullptr;
    std::unique_ptr<DeviceLink> link = join(group);
    const bool is_there = link != nullptr;
    const std::lock_guard lock(mutex_);
    joined_[&group] = std::move(link);
    if (is_there && !thread_.joinable()) thread_ = make_thread("communication", [this] { look_after(); });
    return is_there;
}

std::unique_ptr<DeviceLink> DeviceRequests::join(const Group& group) {
    const std::string_view wish = wished_engine();
    std::vector<Ability> abilities(static_cast<size_t>(group.size()));
    const Ability own = Ability::of(links_, wish);
    Request request;
    request.group = &group;
    request.dtype = DType::u8;
    request.operation = Collective::all_gather;
    request.count = sizeof(Ability);
    request.in = &own;
    request.out = abilities.data();
    communicator_.run(request);
    const std::string why_not = obstacle(group, abilities);
    if (!why_not.empty()) {
        if (wish == "nccl")
            throw state_error("communication", str("LUNARIA_DEVICE_ENGINE is \"nccl\", but ", why_not))
                .hint("without that variable the tensors travel by way of the host");
        return nullptr;
    }
    char id[DeviceLinks::kIdSize] = {};
    if (group.rank() == 0) links_.make_id().copy(id, sizeof id);
    request.operation = Collective::broadcast;
    request.count = sizeof id;
    request.in = request.out = id;
    communicator_.run(request);
    return links_.join({id, sizeof id}, group.rank(), group.size(), [this] {
        poll_interrupt();
        if (const std::string why = communicator_.casualty(); !why.empty())
            throw state_error("communication", "ranks are joined; but " + why);
    });
}

void DeviceRequests::run(const Request& request, std::string_view what) {
    Request compared = request;
    compared.is_elsewhere = true;
    communicator_.run(compared);
    const std::vector<LinkStep> steps = link_steps(request);
    if (steps.empty()) return;
    joined_[request.group]->submit(steps, what);
}

void DeviceRequests::look_after() {
    constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kBetweenLooks, [this] { return ends_; })) {
        std::string why = communicator_.casualty();
        for (const auto& [group, link] : joined_)
            if (link && why.empty()) why = link->failure();
        if (why.empty()) continue;
        communicator_.tell_failure(why);
        for (const auto& [group, link] : joined_)
            if (link) link->abort(why);
        return;
    }
}

}  // namespace lunaria::parallel
