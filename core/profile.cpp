#include "core/profile.h"

#include <chrono>

#include "core/memory.h"

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

// The operand that the signature calls so; nullptr where there is none.
const Value* operand(const Op& op, std::span<const Value> args, std::string_view name) {
    const int i = op.signature.find(name);
    return i >= 0 && static_cast<size_t>(i) < args.size() && is_tensor_like(args[static_cast<size_t>(i)])
               ? &args[static_cast<size_t>(i)]
               : nullptr;
}

int64_t dim(const Value& v, int axis) {
    const Shape shape = type_of(v).shape;
    const int at = axis < 0 ? shape.rank() + axis : axis;
    return at >= 0 && at < shape.rank() && shape.known() ? shape[at] : 1;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    for (std::string_view n : names)
        if (n == name) return true;
    return false;
}

}  // namespace

double flops_of(const Op& op, std::span<const Value> args, std::span<const TensorType> results) {
    if (op.view_fn || op.host_fn) return 0;
    const std::string_view name = op.name();
    double out = 0, in = 0;
    for (const TensorType& t : results) out += size_of_shape(t.shape);
    for (const Value& v : args) in += elements(v);
    if (is_one_of(name, {"matmul", "mm", "bmm", "mv", "dot", "dense", "affine"}) && is_tensor_like(args[0]))
        return 2 * out * static_cast<double>(dim(args[0], -1));
    if (is_one_of(name, {"addmm", "baddbmm"})) return 2 * out * static_cast<double>(dim(args[1], -1));
    if (name.starts_with("conv")) {
        // Each element of the result of the forward convolution takes all weights of its channel.
        const Value* weight = operand(op, args, "weight");
        const Value* dout = operand(op, args, "dout");
        if (!weight && name == "conv_weight_grad" && !results.empty() && args.size() > 1 && is_tensor_like(args[1])) {
            const double channels = results[0].shape.rank() > 0 ? static_cast<double>(results[0].shape[0]) : 1;
            return 2 * elements(args[1]) * out / channels;
        }
        if (weight)
            return 2 * (dout || name.ends_with("_input_grad") ? elements(args[0]) : out) * elements(*weight) /
                   static_cast<double>(dim(*weight, 0));
    }
    if (is_one_of(name, {"attention", "attention_grad"})) {
        const Value* key = operand(op, args, "key");
        const Value* query = operand(op, args, "query");
        // Two products forward; five backward, one of them made again.
        if (key && query)
            return (name == "attention" ? 4.0 : 10.0) * elements(*query) * static_cast<double>(dim(*key, -2));
    }
    if (op.is_elementwise) return out;
    return std::max(in, out);
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

Profile::Profile(std::function<std::string()> place) : place_(std::move(place)), opened_(seconds()) {
    if (current_) throw state_error("profile", "a profile is open already");
    current_ = this;
}

Profile::~Profile() { current_ = nullptr; }

double Profile::now() const { return seconds() - opened_; }

void Profile::add(Event event) {
    event.live = memory_stats().live_bytes;
    events.push_back(std::move(event));
}

Profile::Watch::Watch(Profile* profile, const Op& op, std::span<const Value> args)
    : profile_(profile), op_(op), args_(args) {
    place_ = profile_->place();
    before_ = profile_->events.size();
    start_ = profile_->now();
}

void Profile::Watch::done(const Value& result) {
    const double end = profile_->now();
    if (profile_->events.size() != before_) return;
    std::vector<TensorType> results;
    auto add = [&](const Value& v) {
        if (v.is_tensor()) results.push_back({v.tensor().dtype(), v.tensor().shape()});
    };
    add(result);
    if (result.is_list())
        for (const Value& item : result.items()) add(item);
    Event event;
    event.operators = op_.name();
    event.place = std::move(place_);
    event.start = start_;
    event.seconds = end - start_;
    const bool moves = !op_.view_fn && !op_.host_fn;
    event.flops = flops_of(op_, args_, results);
    event.bytes = moves ? bytes_of(args_, results) : 0;
    profile_->add(std::move(event));
}

}  // namespace lunaria
