// The eager executor of operators: promotes operands, infers types, allocates results, and asks the device's kernels in
// turn.
#include <algorithm>
#include <array>

#include "core/base/interrupt.h"
#include "core/operator/expansion.h"
#include "core/operator/infer.h"
#include "core/operator/op.h"
#include "core/ops/matrix.h"
#include "core/ops/reduce.h"
#include "core/run/consume.h"
#include "core/run/draws.h"
#include "core/run/memory_order.h"
#include "core/run/observer.h"
#include "core/run/operand_layouts.h"
#include "core/run/placement.h"
#include "core/tensor/element.h"
#include "core/tensor/turned.h"

namespace lunaria {

namespace {

using Args = std::vector<Value>;

Value run_kernels(const Op& op, KernelCall& call) {
    Device* device = current_device();
    size_t count = 0;
    const Kernel* kernels = op.kernels(*device, count);
    bool done = false;
    if (!current_place()) [[likely]] {
        for (size_t i = 0; i < count && !done; ++i) done = kernels[i](call);
    } else {
        done = launch_or_fall_back(*device, {kernels, count}, 0, call) < std::max<size_t>(count, 1);
    }
    if (!done)
        throw dtype_error(op.name(),
                          str("is not defined for ", name_of(call.dtype), " on the device ", device->name()));
    if (call.out.size() == 1) return Value(std::move(call.out[0]));
    return Value::list(Args(call.out.begin(), call.out.end()));
}

// The inference rule refuses what an expansion would not check.
Value expand_checked(const Call& call) {
    if (call.op.infer_fn) call.op.infer_fn(call);
    return expand(ExpandCall(call, eager_builder()));
}

// A composite operator with an inference rule may also have a kernel for the whole operator. The expansion replaces
// that kernel on devices without it and in derivatives, and tests compare both.
bool has_kernel(const Op& op) {
    size_t count = 0;
    op.kernels(*current_device(), count);
    return count > 0;
}

// The dtype in which an elementwise operator computes, if all tensors have that dtype and the numbers beside them do
// not change it. False: promoted_dtype has to decide.
bool obvious_dtype(const Op& op, std::span<const Value> args, DType& dtype) {
    const Param* params = op.signature.params.data();
    bool found = false, wants_float = false, number = false, integer = false, beyond = false;
    for (size_t i = 0; i < args.size(); ++i) {
        ArgType type = params[i].type;
        const Value& v = args[i];
        if (type > ArgType::tensors) continue;
        if (type > ArgType::real) {
            if (type == ArgType::mask && v.is_tensor() && v.tensor().dtype() == DType::boolean) continue;
            return false;
        }
        wants_float |= type == ArgType::real;
        if (v.is_tensor()) {
            DType t = v.tensor().dtype();
            if (found && t != dtype) return false;
            dtype = t;
            found = true;
        } else if (v.kind() == Value::Kind::number) {
            number = true;
        } else if (v.kind() == Value::Kind::integer) {
            integer = true;
            beyond |= op.infer_fn == broadcast_to_bool && !(found ? is_element(dtype, v) : v.integer() == 0);
        } else {
            return false;
        }
    }
    if (!found || beyond) return false;
    return is_float(dtype) || (is_integer(dtype) && !wants_float && !number) ||
           (dtype == DType::boolean && !wants_float && !number && !integer);
}

// Whether a result of this type may be written over the tensor: each element is read before it is written, and the
// tensor has no other owner.
bool can_hold_result(const Tensor& t, DType dtype, const Shape& shape) {
    return t.dtype() == dtype && t.is_contiguous() && t.is_sole_owner() && t.device() == current_place() &&
           !t.parameter() && t.shape() == shape;
}

bool holds_turned(const Value& v) {
    return v.is_tensor() ? is_turned(v.tensor()) : v.is_list() && std::ranges::any_of(v.items(), holds_turned);
}

Value without_turned(const Value& v) {
    if (v.is_tensor()) return Value(row_major(v.tensor()));
    if (!v.is_list()) return v;
    Args items;
    for (const Value& item : v.items()) items.push_back(without_turned(item));
    return Value::list(std::move(items));
}

// Whether the strides of operands show neither in the bits of the results nor in their strides.
bool hides_strides(const Op& op) {
    return op.fuses_as == Fusion::cast || reads_any_strides(op) || op.writes() || op.returns_operand ||
           (op.expand_fn && !(op.infer_fn && has_kernel(op)));
}

// For operands whose memory has another order than their axes: the result of compute(operands in that order), laid out
// as they are. False: they are in order.
template <class Compute>
bool run_in_memory_order(std::span<const Value> args, const Shape& shape, Compute compute, Value& result) {
    if (!has_views(args) || current_place()) return false;
    const MemoryOrder order(args, shape);
    if (order.is_row_major()) return false;
    result = Value(order.restored(compute(order.arranged(args)).tensor()));
    return true;
}

// Elementwise operators, on which loops over small tensors spend their time: no lists, no copies of shapes. `spare`:
// arguments whose memory may be reused.
Value run_elementwise(const Op& op, std::span<const Value> args, std::span<Value> spare = {}) {
    DType dtype = DType::f32;
    if (!obvious_dtype(op, args, dtype)) {
        check_tensor_args(op, args);
        dtype = promoted_dtype(op, args);
    }
    const Shape* shape = nullptr;
    Shape joint;
    bool ready = true;
    for (size_t i = 0; i < args.size(); ++i) {
        if (!args[i].is_tensor()) continue;
        const Tensor& t = args[i].tensor();
        ArgType type = op.signature.params[i].type;
        ready &= t.dtype() == dtype || (type != ArgType::same && type != ArgType::real);
        if (!shape || *shape == t.shape()) {
            shape = &t.shape();
            continue;
        }
        joint = broadcast(op.name(), *shape, t.shape());
        shape = &joint;
    }
    auto run_arranged = [&op](const Args& arranged) { return run_elementwise(op, arranged); };
    if (Value turned; run_in_memory_order(args, shape ? *shape : joint, run_arranged, turned)) return turned;
    Args converted;
    if (!ready) {
        converted.assign(args.begin(), args.end());
        for (size_t i = 0; i < converted.size(); ++i) {
            ArgType type = op.signature.params[i].type;
            if (converted[i].is_tensor() && (type == ArgType::same || type == ArgType::real))
                converted[i] = Value(converted[i].tensor().cast(dtype));
        }
        args = converted;
    }
    DType result = dtype;
    if (op.infer_fn == broadcast_to_bool)
        result = DType::boolean;
    else if (op.infer_fn != broadcast_all)
        result = op.infer_fn(Call(op, args, dtype))[0].dtype;
    Tensor out;
    for (const Value& v : spare)
        if (!out && v.is_tensor() && can_hold_result(v.tensor(), result, shape ? *shape : joint)) out = v.tensor();
    if (!out) out = Tensor::empty(result, shape ? *shape : joint, current_place());
    if (out.size() == 0) return Value(std::move(out));
    KernelCall call{op, args, {&out, 1}, dtype};
    return run_kernels(op, call);
}

// The most common case of matmul: a product of two matrices of floats with matching sizes. A small product takes little
// longer than the checks of the general case.
bool is_plain_product(const Op& op, std::span<const Value> args) {
    if (op.infer_fn != infer_matmul || !args[0].is_tensor() || !args[1].is_tensor()) return false;
    const Tensor &a = args[0].tensor(), &b = args[1].tensor();
    constexpr int64_t kMost = 1 << 20;  // so that sizes do not overflow
    return a.rank() == 2 && b.rank() == 2 && a.dim(1) == b.dim(0) && a.dtype() == b.dtype() &&
           (a.dtype() == DType::f32 || a.dtype() == DType::f64) && a.dim(0) < kMost && b.dim(1) < kMost;
}

Value run_plain_product(const Op& op, std::span<const Value> args) {
    const Tensor &a = args[0].tensor(), &b = args[1].tensor();
    Tensor out = Tensor::empty(a.dtype(), {a.dim(0), b.dim(1)}, current_place());
    KernelCall call{op, args, {&out, 1}, a.dtype()};
    return run_kernels(op, call);
}

// The sum of all elements of a dense tensor of floats, the last step of most losses.
bool is_plain_sum(const Op& op, std::span<const Value> args) {
    if (op.infer_fn != infer_sum || op.expand_fn || !args[0].is_tensor() || !args[1].is_nil() || !args[3].is_nil())
        return false;
    const Tensor& x = args[0].tensor();
    return !args[2].boolean() && (x.dtype() == DType::f32 || x.dtype() == DType::f64) && x.is_contiguous();
}

Value run_plain_sum(const Op& op, std::span<const Value> args) {
    const DType dtype = args[0].tensor().dtype();
    Tensor out = Tensor::empty(dtype, {}, current_place());
    KernelCall call{op, args, {&out, 1}, dtype};
    return run_kernels(op, call);
}

Value convert_operand(const Op& op, const Param& param, const Value& v, DType dtype) {
    auto as_tensor = [&](DType t) {
        if (v.is_tensor()) return v;
        const Value number = number_as_tensor(v, t);
        return current_place() ? Value(number.tensor().to(current_place())) : number;
    };
    switch (param.type) {
        case ArgType::same:
        case ArgType::real: {
            Value t = as_tensor(dtype);
            return t.tensor().dtype() == dtype ? t : Value(t.tensor().cast(dtype));
        }
        case ArgType::tensor:
        case ArgType::mask:
            return as_tensor(type_of(v).dtype);
        case ArgType::index: {
            Value t = as_tensor(DType::i64);
            if (t.tensor().dtype() == DType::u64) return as_positions({eager_builder(), t}).value();
            return Value(t.tensor().cast(DType::i64));
        }
        case ArgType::tensors: {
            if (v.items().empty()) throw value_error(op.name(), str(param.name, " is an empty list"));
            DType joint = v.items()[0].tensor().dtype();
            for (const Value& item : v.items()) joint = promote(joint, item.tensor().dtype());
            Args items;
            for (const Value& item : v.items()) items.emplace_back(item.tensor().cast(joint));
            return Value::list(std::move(items));
        }
        default:
            return v;
    }
}

Value make_dense(const Value& v, bool widen) {
    if (v.is_list()) {
        Args items;
        for (const Value& item : v.items()) items.push_back(make_dense(item, widen));
        return Value::list(std::move(items));
    }
    if (!v.is_tensor()) return v;
    const Tensor& t = v.tensor();
    return widen && is_half(t.dtype()) ? Value(t.cast(DType::f32)) : Value(t.contiguous());
}

// True if inference and kernel accept the operands as they are, the usual case, in which they are not copied.
bool are_ready(const Op& op, std::span<const Value> args, DType dtype) {
    for (size_t i = 0; i < args.size(); ++i) {
        ArgType type = op.signature.params[i].type;
        if (!is_tensor_type(type) || args[i].is_nil()) continue;
        if (!args[i].is_tensor()) return false;
        const Tensor& t = args[i].tensor();
        if ((type == ArgType::same || type == ArgType::real) && t.dtype() != dtype) return false;
        if (type == ArgType::index && t.dtype() != DType::i64) return false;
        if (!t.is_contiguous() && !takes_any_strides(op)) return false;
        if (is_half(t.dtype()) && !takes_any_floats(op, args)) return false;
    }
    return true;
}

class EagerBuilder final : public Builder {
  public:
    Value emit(const Op& op, std::span<const Value> args) override { return run(op, args); }
    Value item(const Value& results, size_t i) override { return results.items().at(i); }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }
};

}  // namespace

Builder& eager_builder() {
    static EagerBuilder builder;
    return builder;
}

Value run(const Op& op, std::initializer_list<Value> args) {
    return run(op, std::span<const Value>(args.begin(), args.size()));
}

namespace {

Value run_unwatched(const Op& op, std::span<const Value> given);

// "blocks.2.fc1" for a parameter called blocks.2.fc1.weight: the path of its cell.
std::string_view layer_of(std::span<const Value> args) {
    for (const Value& v : args) {
        const ParameterInfo* info = v.is_tensor() ? v.tensor().parameter() : nullptr;
        const size_t dot = info ? info->name.rfind('.') : std::string::npos;
        if (dot != std::string::npos) return std::string_view(info->name).substr(0, dot);
    }
    return {};
}

// Adds the layer to an error about sizes or dtypes of a call with a parameter.
Error naming_layer(const Error& e, std::span<const Value> args) {
    constexpr std::string_view kSays = " (in the layer ", kHint = "\n  hint: ";
    const std::string_view layer = layer_of(args), whole = e.what();
    if (layer.empty() || (e.kind() != ErrorKind::shape && e.kind() != ErrorKind::dtype) ||
        whole.find(kSays) != std::string_view::npos)
        return e;
    const Error named = Error(e.kind(), e.where(), str(e.message(), kSays, layer, ")")).at(e.place());
    const size_t hint = whole.find(kHint);
    return hint == std::string_view::npos ? named : named.hint(whole.substr(hint + kHint.size()));
}

// An error of a device that is out of memory names the device; this adds the operator.
Error naming_operator(const Error& e, const Op& op) {
    if (e.kind() != ErrorKind::memory || e.where().empty() || !find_device(e.where())) return e;
    return Error(ErrorKind::memory, op.name(), str(e.where(), " is ", e.message()))
        .at(e.place())
        .hint("use smaller batches or a narrower dtype, and drop tensors that are no longer needed");
}

}  // namespace

Value run_consuming(const Op& op, std::span<Value> args) {
    if (!op.is_elementwise || Observer::current() || has_places()) return run(op, args);
    poll_interrupt();
    return run_elementwise(op, args, args);
}

namespace {

bool is_own(const Value& v) { return !v.is_tensor() || v.tensor().is_apart(); }

// An operator may have returned an operand, or a part of one that another program writes into.
[[gnu::noinline]] void take_apart(Value& results) {
    if (!results.is_list()) {
        if (!is_own(results)) results = Value(results.tensor().apart());
        return;
    }
    if (std::ranges::all_of(results.items(), is_own)) return;
    Args items;
    for (const Value& v : results.items()) items.push_back(v.is_tensor() ? Value(v.tensor().apart()) : v);
    results = Value::list(std::move(items));
}
inline void own_results(const Op& op, Value& results) {
    if (results.is_tensor() && results.tensor().is_apart()) [[likely]]
        return;
    if (!op.returns_operand) take_apart(results);
}

}  // namespace

Value run(const Op& op, std::span<const Value> given) {
    return speaking_of(op, [&] {
        try {
            if (!Observer::current()) [[likely]] {
                Value result = run_unwatched(op, given);
                own_results(op, result);
                return result;
            }
            Observer::Call call(op, given);
            Value result = run_unwatched(op, given);
            own_results(op, result);
            call.done(result);
            return result;
        } catch (const Error& e) {
            throw naming_operator(naming_layer(e, given), op);
        }
    });
}

namespace {

Value run_here(const Op& op, std::span<const Value> given);

// With operands in the order that the operator takes. A conversion is elementwise, too.
Value run_ordered(const Op& op, std::span<const Value> given) {
    if (op.is_elementwise) return run_here(op, given);
    if (std::ranges::any_of(given, holds_turned) && !hides_strides(op)) [[unlikely]] {
        Args dense;
        for (const Value& v : given) dense.push_back(without_turned(v));
        return run_here(op, dense);
    }
    auto convert = [&op](const Args& arranged) { return run_here(op, arranged); };
    Value result;
    const bool converts = op.fuses_as == Fusion::cast && given[0].is_tensor();
    if (converts && run_in_memory_order(given, given[0].tensor().shape(), convert, result)) return result;
    return run_here(op, given);
}

Value run_on(Device* place, const Op& op, std::span<const Value> given) {
    Value result;
    if (place && place->run(op, given, result)) return result;
    return run_ordered(op, given);
}

Value run_unwatched(const Op& op, std::span<const Value> given) {
    poll_interrupt();
    if (!has_places()) [[likely]]
        return run_ordered(op, given);
    const Placement placement(op, given);
    const PlaceScope scope(placement.place);
    if (placement.travellers.empty()) return run_on(placement.place, op, given);
    const std::vector<Value> moved = placement.moved(given);
    return placement.marked(run_on(placement.place, op, moved));
}

Value run_here(const Op& op, std::span<const Value> given) {
    if (op.is_elementwise) return run_elementwise(op, given);
    if (is_plain_product(op, given)) return run_plain_product(op, given);
    if (is_plain_sum(op, given)) return run_plain_sum(op, given);
    check_tensor_args(op, given);
    DType dtype = promoted_dtype(op, given);
    if (op.host_fn) return op.host_fn(Call(op, given, dtype));

    Args converted;
    std::span<const Value> args = given;
    bool ready = are_ready(op, given, dtype);
    if (!ready) {
        converted.assign(given.begin(), given.end());
        for (size_t i = 0; i < converted.size(); ++i)
            if (is_tensor_type(op.signature.params[i].type) && !converted[i].is_nil())
                converted[i] = convert_operand(op, op.signature.params[i], converted[i], dtype);
        args = converted;
    }
    Call call(op, args, dtype);
    if (op.view_fn) return op.view_fn(call);
    if (op.expand_fn && !(op.infer_fn && has_kernel(op))) return expand_checked(call);

    Types types = op.infer_fn(call);
    const bool any_floats = takes_any_floats(op, args);
    bool widen = false;
    if (!ready) {
        if (!any_floats)
            for (const Value& v : args) {
                widen |= v.is_tensor() && is_half(v.tensor().dtype());
                if (v.is_list())
                    for (const Value& item : v.items()) widen |= item.is_tensor() && is_half(item.tensor().dtype());
            }
        if (widen || !takes_any_strides(op))
            for (Value& v : converted) v = make_dense(v, widen);
    }

    Tensor single;
    std::vector<Tensor> several(types.size() == 1 ? 0 : types.size());
    std::span<Tensor> out = types.size() == 1 ? std::span<Tensor>(&single, 1) : std::span<Tensor>(several);
    for (size_t i = 0; i < out.size(); ++i)
        if (types[i].shape.known())
            out[i] = Tensor::empty(is_half(types[i].dtype) && !any_floats ? DType::f32 : types[i].dtype, types[i].shape,
                                   current_place());
    KernelCall kernel_call{op, args, out, widen && is_half(dtype) ? DType::f32 : dtype};
    if (op.draws()) set_stream(kernel_call);
    Value result = run_kernels(op, kernel_call);
    if ((ready && types.size() == 1 && !is_half(types[0].dtype)) || any_floats) return result;
    if (result.is_tensor()) return Value(result.tensor().cast(types[0].dtype));
    Args narrowed;
    for (size_t i = 0; i < types.size(); ++i) narrowed.emplace_back(result.items()[i].tensor().cast(types[i].dtype));
    return Value::list(std::move(narrowed));
}

}  // namespace

}  // namespace lunaria
