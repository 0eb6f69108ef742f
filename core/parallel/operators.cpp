#include "core/parallel/operators.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/parallel/device_requests.h"
#include "core/parallel/environment.h"
#include "core/parallel/gradients.h"
#include "core/parallel/phantom.h"

namespace lunaria::parallel {

namespace {

thread_local std::vector<Pending>* started = nullptr;

// The requests of this thread's call by the library of the device that its tensors lie on; null: by way of the host.
thread_local DeviceRequests* on_device = nullptr;

// Memory beside the operands, where these lie.
Tensor empty_like(const Tensor& x, const Shape& shape) { return Tensor::empty(x.dtype(), shape, x.device()); }

// A call as a request to the group that it names; operands and results are dense tensors of one device.
class Asking {
  public:
    Asking(const KernelCall& call, Collective operation, size_t group)
        : call_(call), world_(own_world()), group_(world_.named_group(call.op.name(), call.args[group].string())) {
        request_.operation = operation;
        request_.group = &group_;
        request_.in = call.tensor(0).raw();
        request_.out = call.out[0].raw();
        request_.dtype = call.tensor(0).dtype();
        request_.count = call.tensor(0).size();
        if (const ParameterInfo* parameter = call.tensor(0).parameter()) request_.label.parameter = parameter->name;
    }

    int size() const { return group_.size(); }
    int rank() const { return group_.rank(); }
    void combine(size_t argument) {
        static constexpr std::array<std::string_view, 5> names = {"sum", "prod", "max", "min", "avg"};
        const auto found = std::find(names.begin(), names.end(), call_.args[argument].string());
        request_.combine = static_cast<Combine>(found - names.begin());
    }
    void root(size_t argument) { request_.root = static_cast<int>(call_.args[argument].integer()); }
    void tag(size_t argument) { request_.tag = static_cast<int>(call_.args[argument].integer()); }
    // One number for each rank, of rows with `row` elements.
    std::vector<int64_t> counts(size_t argument, int64_t row) const {
        std::vector<int64_t> counts;
        for (const Value& item : call_.args[argument].items()) counts.push_back(item.integer() * row);
        return counts;
    }
    Request& request() { return request_; }
    void run() {
        if (on_device)
            on_device->run(request_, call_.op.name());
        else if (started)
            started->push_back(world_.start(request_));
        else
            world_.run(request_);
    }

  private:
    const KernelCall& call_;
    Communicator& world_;
    const Group& group_;
    Request request_;
};

// A tensor with axis `axis` in front, dense; and a view of a tensor in that order.
Tensor in_front(const Tensor& x, int axis) {
    if (axis <= 0) return x;
    Shape shape;
    Strides strides;
    const auto add = [&](int a) {
        shape.push_back(x.shape()[a]);
        strides.push_back(x.strides()[a]);
    };
    add(axis);
    for (int a = 0; a < x.rank(); ++a)
        if (a != axis) add(a);
    return x.view(shape, strides);
}

int axis_at(const KernelCall& call, size_t argument) {
    const int rank = call.tensor(0).rank();
    const auto axis = static_cast<int>(call.args[argument].integer());
    return rank == 0 ? 0 : axis < 0 ? axis + rank : axis;
}

// Runs the request on dense memory with the axis in front, where it is another than axis 0.
void run_along(Asking& asking, const KernelCall& call, int in_axis, int out_axis) {
    const Tensor in = in_front(call.tensor(0), in_axis).contiguous();
    const Tensor view = in_front(call.out[0], out_axis);
    const Tensor out = out_axis > 0 ? empty_like(view, view.shape()) : view;
    asking.request().in = in.raw();
    asking.request().out = out.raw();
    asking.run();
    if (out_axis > 0) copy_elements(out, view);
}

// The elements of a row, also where this rank has none: all ranks have the same.
int64_t row_of(const Shape& shape, int axis) {
    int64_t n = 1;
    for (int a = 0; a < shape.rank(); ++a)
        if (a != axis) n *= shape[a];
    return n;
}

void all_reduce(const KernelCall& call) {
    Asking asking(call, Collective::all_reduce, 2);
    asking.combine(1);
    asking.run();
}

void all_gather(const KernelCall& call) {
    Asking asking(call, Collective::all_gather, 3);
    const int axis = axis_at(call, 1);
    std::vector<int64_t> counts;
    if (call.has(2)) counts = asking.counts(2, row_of(call.tensor(0).shape(), axis));
    asking.request().counts = counts;
    run_along(asking, call, axis, axis);
}

void reduce_scatter(const KernelCall& call) {
    Asking asking(call, Collective::reduce_scatter, 4);
    asking.combine(1);
    const int axis = axis_at(call, 2);
    std::vector<int64_t> counts;
    if (call.has(3)) counts = asking.counts(3, row_of(call.tensor(0).shape(), axis));
    asking.request().counts = counts;
    asking.request().count = call.out[0].size();
    run_along(asking, call, axis, axis);
}

// The pieces that come are laid one after the other; where they are joined along another axis, they are moved once
// more.
void all_to_all(const KernelCall& call) {
    Asking asking(call, Collective::all_to_all, 3);
    const int n = asking.size(), split = axis_at(call, 1), concat = axis_at(call, 2);
    const Tensor in = in_front(call.tensor(0), split).contiguous();
    const Tensor got = empty_like(in, in.shape());
    asking.request().in = in.raw();
    asking.request().out = got.raw();
    asking.request().count = in.size() / n;
    asking.run();
    // Of one piece: axis `split` in front, as it came. Back to its place, and then to its part of the result.
    const Tensor& out = call.out[0];
    const int64_t rows = in.shape()[0] / n, width = call.tensor(0).shape()[concat] / (split == concat ? n : 1);
    for (int i = 0; i < n; ++i) {
        Shape part = got.shape();
        part[0] = rows;
        const Tensor from = got.view(part, got.strides(), i * rows * got.strides()[0]);
        Shape place = out.shape();
        place[concat] = width;
        const Tensor to = out.view(place, out.strides(), i * width * out.strides()[concat]);
        copy_elements(from, in_front(to, split));
    }
}

void all_to_all_v(const KernelCall& call) {
    Asking asking(call, Collective::all_to_all_v, 3);
    const int64_t row = row_of(call.tensor(0).shape(), 0);
    const std::vector<int64_t> sends = asking.counts(1, row), receives = asking.counts(2, row);
    asking.request().counts = sends;
    asking.request().receive_counts = receives;
    asking.run();
}

void broadcast_from(const KernelCall& call) {
    Asking asking(call, Collective::broadcast, 2);
    asking.root(1);
    asking.run();
}

void clear(const Tensor& out) {
    if (out.nbytes() == 0) return;
    if (out.device()) return copy_elements(Tensor::zeros(out.dtype(), out.shape()).to(out.device()), out);
    std::memset(out.raw(), 0, out.nbytes());
}

void reduce_to(const KernelCall& call) {
    Asking asking(call, Collective::reduce, 3);
    asking.root(1);
    asking.combine(2);
    if (asking.rank() != asking.request().root) clear(call.out[0]);
    asking.run();
}

void gather_to(const KernelCall& call) {
    Asking asking(call, Collective::gather, 2);
    asking.root(1);
    if (asking.rank() != asking.request().root) clear(call.out[0]);
    asking.run();
}

void scatter_from(const KernelCall& call) {
    Asking asking(call, Collective::scatter, 2);
    asking.root(1);
    asking.request().count = call.out[0].size();
    asking.run();
}

void send(const KernelCall& call) {
    Asking asking(call, Collective::send, 3);
    asking.root(1);
    asking.tag(2);
    asking.run();
    clear(call.out[0]);
}

void recv(const KernelCall& call) {
    Asking asking(call, Collective::recv, 3);
    asking.root(1);
    asking.tag(2);
    asking.run();
}

void barrier(const KernelCall& call) {
    Asking asking(call, Collective::barrier, 1);
    asking.request().count = 0;
    asking.run();
    copy_elements(call.tensor(0), call.out[0]);
}

void give_gradient(const KernelCall& call) {
    const int64_t place = call.args[2].integer();
    exchange_of(call.args[1].integer())->give(static_cast<size_t>(place), call.tensor(0));
    clear(call.out[0]);
}

struct Entry {
    std::string_view name;
    void (*run)(const KernelCall& call);
    // What can lie on a device. Sends and receives that are started together may wait for one another, which those of a
    // device's library, one behind the other, may not.
    enum class Reach { host, alone, always } on_device = Reach::always;
};
constexpr Entry kEntries[] = {
    {"all_reduce", all_reduce},
    {"all_gather", all_gather},
    {"reduce_scatter", reduce_scatter},
    {"all_to_all", all_to_all},
    {"all_to_all_v", all_to_all_v},
    {"broadcast_from", broadcast_from},
    {"reduce_to", reduce_to},
    {"gather_to", gather_to},
    {"scatter_from", scatter_from},
    {"send", send, Entry::Reach::alone},
    {"recv", recv, Entry::Reach::alone},
    {"barrier", barrier},
    {"give_gradient", give_gradient, Entry::Reach::host},
};

const Entry& entry_of(const KernelCall& call) {
    for (const Entry& entry : kEntries)
        if (entry.name == call.op.name()) return entry;
    throw state_error(call.op.name(), "is no request to other ranks");
}

class WorldRanks : public Ranks {
  public:
    Place place(std::string_view where, std::string_view name) override {
        const Group& group = own_world().named_group(where, name);
        if (group.rank() < 0)
            throw value_error(where, str("rank ", own_world().rank(), " is not in the group \"", name, "\""));
        return {group.rank(), group.size()};
    }
    void run(const KernelCall& call) override { entry_of(call).run(call); }
    bool run_on(DeviceLinks& links, const KernelCall& call) override {
        const Entry::Reach reach = entry_of(call).on_device;
        if (reach == Entry::Reach::host || (started && reach == Entry::Reach::alone)) return false;
        Communicator& communicator = own_world();
        DeviceRequests& requests = requests_of(communicator, links);
        if (!requests.takes(call.tensor(0).dtype())) return false;
        const std::string& name = call.args[call.args.size() - 1].string();
        if (!requests.serves(communicator.named_group(call.op.name(), name))) return false;
        const Scope scope(requests);
        run(call);
        return true;
    }
    int local_rank() override { return static_cast<int>(environment().local_rank); }

  private:
    struct Scope {
        explicit Scope(DeviceRequests& requests) { on_device = &requests; }
        ~Scope() { on_device = nullptr; }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
    };
    // Of a communicator that is in use for the life of the process; another one takes its place in tests.
    DeviceRequests& requests_of(Communicator& communicator, DeviceLinks& links) {
        const std::lock_guard lock(mutex_);
        auto& requests = requests_[&communicator];
        if (!requests) requests = std::make_unique<DeviceRequests>(communicator, links);
        return *requests;
    }
    std::mutex mutex_;
    std::map<const Communicator*, std::unique_ptr<DeviceRequests>> requests_;
};

}  // namespace

StartScope::StartScope(std::vector<Pending>& list) : before_(std::exchange(started, &list)) {}
StartScope::~StartScope() { started = before_; }

Communicator& own_world() {
    static PhantomCommunicator alone(0, 1);
    Communicator* communicator = world();
    return communicator ? *communicator : alone;
}

void serve_operators() {
    // Never destroyed: libraries of devices are not to be closed at the very end.
    static auto* served = new WorldRanks;
    set_ranks(served);
}

}  // namespace lunaria::parallel
