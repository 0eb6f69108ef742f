#include "core/run/profile.h"

#include <chrono>

#include "core/memory/memory.h"

namespace lunaria {

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool is_tensor_like(const Value& v) { return v.is_tensor() || v.is_node(); }

double size_of_shape(const Shape& shape) { return shape.known() ? static_cast<double>(shape.size()) : 0; }

double elements(const Value& v) {
    if (is_tensor_like(v)) return size_of_shape(type_of(v).shape);
    double sum = 0;
    if (v.is_list())
        for (const Value& item : v.items()) sum += elements(item);
    return sum;
}

}  // namespace

double flops_of(const Op& op, std::span<const Value> args, std::span<const TensorType> results) {
    if (op.only_moves || op.host_fn) return 0;
    double out = 0, in = 0;
    for (const TensorType& t : results) out += size_of_shape(t.shape);
    for (const Value& v : args) in += elements(v);
    if (op.flops_fn && !results.empty()) return op.flops_fn(Call(op, args, DType::f32), results);
    return op.is_elementwise ? out : std::max(in, out);
}

int64_t bytes_of(std::span<const Value> args, std::span<const TensorType> results) {
    int64_t bytes = 0;
    auto add = [&](const TensorType& t) {
        if (t.shape.known()) bytes += t.shape.size() * static_cast<int64_t>(size_of(t.dtype));
    };
    auto visit = [&](const auto& self, const Value& v) -> void {
        if (is_tensor_like(v)) add(type_of(v));
        if (v.is_list())
            for (const Value& item : v.items()) self(self, item);
    };
    for (const Value& v : args) visit(visit, v);
    for (const TensorType& t : results) add(t);
    return bytes;
}

thread_local constinit Profile* Profile::current_ = nullptr;

Profile::Profile(std::function<std::string()> place, size_t most)
    : Observer(false), place_(std::move(place)), most_(most), opened_(seconds()) {
    if (current_) throw state_error("profile", "a profile is open already");
    current_ = this;
    open();
}

Profile::~Profile() {
    if (current_ == this) current_ = nullptr;
}

double Profile::now() const { return seconds() - opened_; }

void Profile::add(Event event) {
    if (events.size() >= most_) {
        if (current_ == this) current_ = nullptr;
        close();
        return;
    }
    event.live = memory_stats().live_bytes;
    events.push_back(std::move(event));
}

void Profile::begin(const Op&, std::span<const Value>) { running_.push_back({place_(), events.size(), now()}); }

void Profile::end(const Op& op, std::span<const Value> args, const Value* result) {
    Running running = std::move(running_.back());
    running_.pop_back();
    if (!result) return;
    // Work that a device does later is part of the time.
    if (const Value& first = result->is_list() && !result->items().empty() ? result->items()[0] : *result;
        first.is_tensor() && first.tensor().device())
        first.tensor().device()->synchronize();
    const double end = now();
    if (events.size() != running.before) return;
    std::vector<TensorType> results;
    auto note = [&](const Value& v) {
        if (v.is_tensor()) results.push_back({v.tensor().dtype(), v.tensor().shape()});
    };
    note(*result);
    if (result->is_list())
        for (const Value& item : result->items()) note(item);
    Event event;
    event.operators = op.name();
    event.place = std::move(running.place);
    event.start = running.start;
    event.seconds = end - running.start;
    const bool moves = !op.view_fn && !op.host_fn;
    event.flops = flops_of(op, args, results);
    event.bytes = moves ? bytes_of(args, results) : 0;
    add(std::move(event));
}

}  // namespace lunaria
