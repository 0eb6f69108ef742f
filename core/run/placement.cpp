#include "core/run/placement.h"

#include <algorithm>

#include "core/operator/op.h"
#include "core/run/shapes_device.h"

namespace lunaria {

bool runs_whole_operators(Device* device) { return dynamic_cast<WholeOperators*>(device) != nullptr; }

bool is_traveller(const Tensor& t) {
    if (t.device()) return false;
    if (t.goes_along()) return true;
    for (int axis = 0; axis < t.rank(); ++axis)
        if (t.strides()[axis] != 0 || t.dim(axis) == 0) return false;
    return true;
}

Tensor moved_to(const Tensor& t, Device* place) {
    // If all elements are the same one in memory, only that one moves.
    const bool spread = t.rank() > 0 && t.size() > 1 && !t.is_contiguous() && !t.goes_along();
    if (!spread) return t.to(place);
    const Tensor one = t.view({}, {}).to(place);
    return one.view(t.shape(), t.strides());
}

namespace {

std::string_view place_name(const Device* device) { return device ? device->name() : host_device()->name(); }

// Where operators run whose operands are at both places; null: nowhere.
Device* joint_place(Device* a, Device* b) {
    if (a && b) return nullptr;
    Device* const other = a ? a : b;
    return runs_whole_operators(other) ? other : nullptr;
}

template <class F>
void for_each_tensor(const Value& v, F&& f) {
    if (v.is_tensor()) return f(v.tensor());
    if (!v.is_list()) return;
    for (const Value& item : v.items())
        if (item.is_tensor()) f(item.tensor());
}

}  // namespace

Placement::Placement(const Op& op, std::span<const Value> args) {
    bool found = false, constants = false;
    size_t first = 0;
    const auto& params = op.signature.params;
    // Operands that only order the call, and the target of a copy, may be on any device: they do not decide where the
    // call runs.
    auto is_operand = [&](size_t i) {
        return is_tensor_type(params[i].type) && (args[i].is_tensor() || args[i].is_list());
    };
    bool operands = false;
    for (size_t i = 0; i < args.size(); ++i) operands |= is_operand(i);
    for (size_t i = 0; i < args.size(); ++i)
        for_each_tensor(args[i], [&](const Tensor& t) {
            if (operands && !is_operand(i)) return;
            if (is_traveller(t)) {
                if (travellers.empty() || travellers.back() != i) travellers.push_back(i);
                constants |= t.goes_along();
                return;
            }
            if (!found) {
                found = true;
                first = i;
                place = t.device();
            }
            if (place == t.device()) return;
            if (Device* joint = joint_place(place, t.device())) {
                place = joint;
                return;
            }
            if (place == &shapes_device() || t.device() == &shapes_device()) refuse_elements(op.name());
            throw argument_error(op.name(), str(params[first].name, " is on the device ", place_name(place), " and ",
                                                params[i].name, " on ", place_name(t.device())))
                .hint(str("x:to(\"", place_name(place), "\") gives a copy on that device"));
        });
    if (!found) place = current_place();
    is_constant = !found && constants && !place;
    if (!place && !is_constant) travellers.clear();
}

std::vector<Value> Placement::moved(std::span<const Value> args) const {
    std::vector<Value> result(args.begin(), args.end());
    for (size_t i : travellers) {
        auto move = [&](const Value& v) {
            return v.is_tensor() && is_traveller(v.tensor()) ? Value(moved_to(v.tensor(), place)) : v;
        };
        if (!result[i].is_list()) {
            result[i] = move(result[i]);
            continue;
        }
        std::vector<Value> items;
        for (const Value& item : result[i].items()) items.push_back(move(item));
        result[i] = Value::list(std::move(items));
    }
    return result;
}

Value Placement::marked(Value result) const {
    if (is_constant) for_each_tensor(result, [](const Tensor& t) { Tensor(t).set_goes_along(); });
    return result;
}

namespace {

Value on_host(const Value& v, bool widens, int64_t& bytes) {
    if (v.is_tensor()) {
        bytes += static_cast<int64_t>(v.tensor().nbytes());
        const Tensor here = v.tensor().to_host();
        return Value(widens && is_half(here.dtype()) ? here.cast(DType::f32) : here);
    }
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(on_host(item, widens, bytes));
    return Value::list(std::move(items));
}

// Copies the elements that the operator wrote into its operands back to their places.
int64_t take_back(const Value& given, const Value& written) {
    int64_t bytes = 0;
    if (given.is_tensor() && written.tensor().version() > 0) {
        Tensor(given.tensor()).own_storage();
        copy_elements(written.tensor(), given.tensor());
        bytes += static_cast<int64_t>(given.tensor().nbytes());
    }
    for (size_t i = 0; given.is_list() && i < given.items().size(); ++i)
        bytes += take_back(given.items()[i], written.items()[i]);
    return bytes;
}

}  // namespace

size_t launch_or_fall_back(Device& device, std::span<const Kernel> kernels, size_t first, KernelCall& call) {
    if (!kernels.empty()) return device.launch(kernels, first, call);
    if (!allows_fallback())
        throw state_error(call.op.name(), str("has no kernel on the device ", device.name()))
            .hint("ms.set_context{device_fallback = true} lets the host do it, with copies of the operands");
    size_t count = 0, taken = 0;
    const Kernel* of_host = call.op.kernels(*host_device(), count);
    int64_t bytes = 0;
    std::vector<Value> args;
    // An operator that computes in halves on the device but not on the host gets wider operands.
    const bool widens = !call.op.takes_halves;
    auto widened = [&](DType t) { return widens && is_half(t) ? DType::f32 : t; };
    for (const Value& v : call.args) args.push_back(on_host(v, widens, bytes));
    std::vector<Tensor> out;
    for (const Tensor& t : call.out) out.push_back(t ? Tensor::empty(widened(t.dtype()), t.shape()) : Tensor());
    {
        const PlaceScope scope(nullptr);
        KernelCall here{call.op, args, out, widened(call.dtype), call.seed, call.counter};
        while (taken < count && !of_host[taken](here)) ++taken;
    }
    if (taken == count) return 1;  // like a single kernel that declined
    for (size_t i = 0; i < args.size() && call.op.writes(); ++i) bytes += take_back(call.args[i], args[i]);
    for (size_t i = 0; i < out.size(); ++i) {
        bytes += static_cast<int64_t>(out[i].nbytes());
        if (call.out[i])
            copy_elements(out[i], call.out[i]);
        else
            call.out[i] = out[i].to(&device);
    }
    add_fallback(call.op, device, bytes);
    return 0;
}

}  // namespace lunaria
