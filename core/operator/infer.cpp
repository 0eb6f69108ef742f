// Arguments and types of calls, as inference rules, gradient rules and the executor need them.
#include "core/operator/infer.h"

#include <algorithm>

#include "core/operator/node.h"
#include "core/tensor/element.h"

namespace lunaria {

void refuse_stored_only(DType t) {
    throw dtype_error(name_of(t), "is a type to store numbers in: nothing is computed in it")
        .hint("x:float() converts to float32");
}

TensorType type_of(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::tensor:
            return {v.tensor().dtype(), v.tensor().shape(), v.tensor().placement()};
        case Value::Kind::node:
            return v.node()->tensor_type();
        case Value::Kind::boolean:
            return {DType::boolean, {}};
        case Value::Kind::integer:
            return {DType::i64, {}};
        default:
            return {DType::f32, {}};
    }
}

std::string_view Call::name() const { return op.name(); }

TensorType Call::type(size_t i) const {
    TensorType t = type_of(args[i]);
    // A number adapts to the dtype of the operands beside it.
    bool adapts = !args[i].is_tensor() && !args[i].is_node();
    ArgType wanted = op.signature.params[i].type;
    if (adapts && (wanted == ArgType::same || wanted == ArgType::real)) t.dtype = dtype;
    return t;
}

std::vector<TensorType> Call::types(size_t i) const {
    std::vector<TensorType> types;
    if (args[i].is_list())
        for (const Value& item : args[i].items()) types.push_back(type_of(item));
    return types;
}

std::vector<int64_t> Call::ints(size_t i) const {
    std::vector<int64_t> list;
    if (args[i].is_number()) list.push_back(args[i].integer());
    if (args[i].is_list())
        for (const Value& item : args[i].items()) list.push_back(item.integer());
    return list;
}

Shape Call::axes(size_t i, size_t of) const {
    auto list = ints(i);
    // A single value counts as a row of one element here, as in numpy and PyTorch.
    if (rank(of) == 0 && std::ranges::all_of(list, [](int64_t axis) { return axis == 0 || axis == -1; })) return {};
    if (!list.empty()) return normal_axes(name(), list, rank(of), param_name(*this, i));
    Shape all;
    for (int axis = 0; axis < rank(of); ++axis) all.push_back(axis);
    return all;
}

int Call::axis(size_t i, size_t of) const { return normal_axis(name(), integer(i), rank(of), param_name(*this, i)); }

namespace {

bool is_promoted(ArgType t) { return t == ArgType::same || t == ArgType::real; }

// Whether an operator accepts elements of a type in which nothing is computed: it moves or converts them, or ignores
// them.
bool takes_stored(const Op& op) {
    return op.only_moves || op.view_fn || op.host_fn || op.reads_type_only || (op.expand_fn && !op.infer_fn) ||
           op.fuses_as == Fusion::cast;
}

bool is_operand(const Value& v) { return v.is_tensor() || v.is_node(); }

// The dtype, without a copy of the shape.
DType dtype_of_operand(const Value& v) { return v.is_tensor() ? v.tensor().dtype() : type_of(v).dtype; }

}  // namespace

// The dtype in which integers of type t are compared with numbers, so that no number is rounded or wraps around: t
// itself if it can represent them all, otherwise f64. f64 rounds large integers, but only to a number that t has, or to
// the first one above them all, to which they then compare equal, as in NumPy.
static DType compared_dtype(DType t, std::span<const Value> args) {
    for (const Value& v : args)
        if (v.is_number() && !is_element(t, v)) return DType::f64;
    return t;
}

DType promoted_dtype(const Op& op, std::span<const Value> args) {
    DType strong = DType::boolean, weak = DType::boolean;
    bool has_strong = false, has_weak = false, wants_float = false;
    for (size_t i = 0; i < args.size(); ++i) {
        ArgType type = op.signature.params[i].type;
        if (!is_promoted(type) || args[i].is_nil()) continue;
        wants_float |= type == ArgType::real;
        DType t = dtype_of_operand(args[i]);
        if (is_operand(args[i])) {
            strong = has_strong ? promote(strong, t) : t;
            has_strong = true;
        } else {
            weak = has_weak ? std::max(weak, t) : t;
            has_weak = true;
        }
    }
    DType result = DType::f32;
    if (has_strong && has_weak) {
        // A number decides only the kind of dtype: int tensor + 2.5 is f32, f16 tensor + 2.5 stays f16, bool tensor + 3
        // is i64.
        result = strong;
        if (op.infer_fn == broadcast_to_bool && is_integer(strong))
            result = compared_dtype(strong, args);
        else if (is_float(weak) && !is_float(strong) && !is_complex(strong))
            result = DType::f32;
        else if (weak == DType::i64 && strong == DType::boolean)
            result = DType::i64;
    } else if (has_strong) {
        result = strong;
    } else if (has_weak) {
        result = weak;
    }
    if (wants_float && !is_float(result) && !is_complex(result)) result = DType::f32;
    return result;
}

// Throws if a value has a type in which nothing is computed, or names one.
static void expect_computed(const Op& op, const Param& param, const Value& v) {
    if (v.is_list()) {
        for (const Value& item : v.items()) expect_computed(op, param, item);
        return;
    }
    const bool is_dtype = v.kind() == Value::Kind::dtype;
    if (!is_dtype && !is_operand(v)) return;
    const DType t = is_dtype ? v.dtype() : dtype_of_operand(v);
    if (is_stored_only(t) && !takes_stored(op))
        throw dtype_error(
            op.name(), str(param.name, " is ", name_of(t), ", a type to store numbers in: nothing is computed in it"))
            .hint("x:float() converts to float32");
}

void check_tensor_args(const Op& op, std::span<const Value> args) {
    for (size_t i = 0; i < args.size(); ++i) {
        const Param& param = op.signature.params[i];
        const Value& v = args[i];
        if (v.kind() >= Value::Kind::dtype) expect_computed(op, param, v);
        if (!is_tensor_type(param.type) || v.is_nil()) continue;
        if (param.type == ArgType::tensors) {
            bool good = v.is_list() && std::all_of(v.items().begin(), v.items().end(), is_operand);
            if (!good && !v.is_node())
                throw argument_error(op.name(), str(param.name, " must be a list of tensors, not ", to_string(v)));
            continue;
        }
        if (!is_operand(v) && !v.is_number() && v.kind() != Value::Kind::boolean)
            throw argument_error(op.name(), str(param.name, " must be a tensor or a number, not ", to_string(v)));
        if (param.type != ArgType::index && param.type != ArgType::mask) continue;
        DType t = dtype_of_operand(v);
        if (param.type == ArgType::index && !is_integer(t))
            throw dtype_error(op.name(), str(param.name, " must hold integers, not ", name_of(t)));
        if (param.type == ArgType::mask && t != DType::boolean)
            throw dtype_error(op.name(), str(param.name, " must be a bool tensor, not ", name_of(t)));
    }
}

Types same_as_first(const Call& call) {
    TensorType t = call.type(0);
    if (is_promoted(call.op.signature.params[0].type)) t.dtype = call.dtype;
    return {t};
}

namespace {
Shape broadcast_operands(const Call& call) {
    Shape shape;
    for (size_t i = 0; i < call.args.size(); ++i) {
        const Param& param = call.op.signature.params[i];
        if (!is_tensor_type(param.type) || !is_operand(call.args[i])) continue;
        shape = broadcast(call.name(), shape, call.shape(i));
    }
    return shape;
}
}  // namespace

Types broadcast_all(const Call& call) { return {{call.dtype, broadcast_operands(call)}}; }

Types broadcast_to_bool(const Call& call) { return {{DType::boolean, broadcast_operands(call)}}; }

void expect_rank(const Call& call, size_t i, int rank) {
    if (call.rank(i) != rank)
        throw shape_error(call.name(), str(param_name(call, i), " must have ", rank, " axes, not shape ", call.shape(i),
                                           " (rank ", call.rank(i), ")"));
}

void expect_rank_at_least(const Call& call, size_t i, int rank) {
    if (call.rank(i) < rank)
        throw shape_error(call.name(), str(param_name(call, i), " must have at least ", rank, " axes, not shape ",
                                           call.shape(i), " (rank ", call.rank(i), ")"));
}

void expect_same_shape(const Call& call, size_t i, size_t j) {
    if (!(call.shape(i) == call.shape(j)))
        throw shape_error(call.name(), str(param_name(call, i), " has shape ", call.shape(i), " and ",
                                           param_name(call, j), " has shape ", call.shape(j), ": they must be equal"));
}

bool is_within(std::string_view range, double number) {
    return (range == "positive" ? number > 0 : number >= 0) && (range != "a probability" || number <= 1);
}

Error parameter_error(std::string_view where, std::string_view name, std::string_view range, double number,
                      std::string_view at) {
    const std::string must = range == "not negative" ? "must not be negative" : str("must be ", range);
    const Error e = value_error(where, str(name, " ", must, ", got ", number, at));
    if (range == "a probability")
        return e.hint("a probability lies in the range 0 .. 1; ops.sigmoid gives such numbers");
    return e.hint("where it is computed, keep it positive with ops.softplus or ops.exp");
}

void expect_float(const Call& call, size_t i) {
    DType t = call.type(i).dtype;
    if (!is_float(t))
        throw dtype_error(call.name(), str(param_name(call, i), " must be a float tensor, not ", name_of(t)));
}

void expect_positive(const Call& call, size_t i, int64_t value) {
    if (value <= 0) throw value_error(call.name(), str(param_name(call, i), " must be positive, not ", value));
}

void expect_not_negative(const Call& call, size_t i, int64_t value) {
    if (value < 0) throw value_error(call.name(), str(param_name(call, i), " must not be negative, got ", value));
}

}  // namespace lunaria
