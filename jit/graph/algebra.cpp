// Peephole rules. Each must give exactly the elements of eager mode: x + 0 is not x where x is -0, so that the only
// neutral elements of floats are -0, a subtracted 0, and 1.
#include <cmath>
#include <limits>
#include <vector>

#include "core/loops/limits.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

struct Match {
    ir::Node& node;
    ir::GraphBuilder& builder;

    const Value& arg(size_t i) const { return node.args[i]; }
    // The operand, if it has the node's type and so may replace it.
    Value if_same(const Value& v) const {
        auto type = static_type(v);
        return type && v.is_node() && node.type.kind == ir::NodeType::Kind::tensor && *type == node.type.tensor
                   ? v
                   : Value();
    }
    bool is_float_result() const { return is_float(node.type.tensor.dtype) || is_complex(node.type.tensor.dtype); }
    Value emit(const Op& op, std::initializer_list<Value> args) const { return graph::emit(builder, op, args); }
};

using Peephole = Value (*)(const Match&);

Value without_neutral(const Match& m, size_t i, double neutral) {
    auto c = constant_number(m.arg(i));
    if (!c || *c != neutral || (neutral == 0 && std::signbit(*c) != std::signbit(neutral))) return {};
    return m.if_same(m.arg(1 - i));
}

Value add_nothing(const Match& m) {
    const double zero = m.is_float_result() ? -0.0 : 0.0;
    Value v = without_neutral(m, 1, zero);
    return v.is_nil() ? without_neutral(m, 0, zero) : v;
}
Value subtract_nothing(const Match& m) { return without_neutral(m, 1, 0.0); }
Value multiply_by_one(const Match& m) {
    Value v = without_neutral(m, 1, 1.0);
    return v.is_nil() ? without_neutral(m, 0, 1.0) : v;
}
Value divide_by_one(const Match& m) { return m.node.args[2].is_nil() ? without_neutral(m, 1, 1.0) : Value(); }

// A quotient by a power of two is the product with its inverse, to the last bit.
Value divide_by_power_of_two(const Match& m) {
    auto c = constant_number(m.arg(1));
    if (!m.node.args[2].is_nil() || !c || *c == 0 || !std::isfinite(*c)) return {};
    int exponent = 0;
    if (std::fabs(std::frexp(*c, &exponent)) != 0.5 || std::abs(exponent) > 100) return {};
    if (!is_float(m.node.type.tensor.dtype) || size_of(m.node.type.tensor.dtype) < 4) return {};
    auto type = static_type(m.arg(0));
    if (!type || type->dtype != m.node.type.tensor.dtype || static_cast<bool>(static_type(m.arg(1)))) return {};
    return m.emit(ops().mul, {m.arg(0), Value(1 / *c)});
}

Value undone_twice(const Match& m) {
    const ir::Node* inner = call_of(m.arg(0), *m.node.op);
    return inner ? m.if_same(inner->args[0]) : Value();
}
Value done_once(const Match& m) { return call_of(m.arg(0), *m.node.op) ? m.if_same(m.arg(0)) : Value(); }

// A missing limit is no limit.
Value one_limit(const Match& m) {
    if (m.arg(1).is_nil() == m.arg(2).is_nil() || m.node.type.tensor.dtype == DType::boolean) return {};
    const DType t = m.node.type.tensor.dtype;
    return m.arg(2).is_nil() ? m.emit(ops().maximum, {m.arg(0), limit_within(t, m.arg(1))})
                             : m.emit(ops().minimum, {m.arg(0), limit_within(t, m.arg(2))});
}

// The exponents for which the kernel of pow multiplies become the same multiplications here, which are then part of the
// loops around them.
Value small_power(const Match& m) {
    auto c = constant_number(m.arg(1));
    if (!c) return {};
    if (*c == 1) return m.if_same(m.arg(0));
    auto type = static_type(m.arg(0));
    if (!type || !(*type == m.node.type.tensor) || is_complex(type->dtype)) return {};
    const Value& x = m.arg(0);
    if (*c == 2) return m.emit(ops().square, {x});
    if (!is_float(type->dtype) || is_half(type->dtype)) return {};
    if (*c == 3) return m.emit(ops().mul, {m.emit(ops().square, {x}), x});
    if (*c == 4) return m.emit(ops().square, {m.emit(ops().square, {x})});
    if (*c == -1) return m.emit(ops().reciprocal, {x});
    if (*c == -2) return m.emit(ops().square, {m.emit(ops().reciprocal, {x})});
    if (std::fabs(*c) != 0.5) return {};
    // The root of -0 and of -infinity is positive, as a power.
    const double infinity = std::numeric_limits<double>::infinity();
    const Value sum = m.emit(ops().add, {m.emit(ops().sqrt, {x}), Value(0.0)});
    const Value root = m.emit(ops().where, {m.emit(ops().equal, {x, Value(-infinity)}), Value(infinity), sum});
    return *c > 0 ? root : m.emit(ops().reciprocal, {root});
}

// Whether every value of `from` has an equal value in `to`.
bool holds(DType to, DType from) {
    if (to == from || from == DType::boolean) return true;
    if (to == DType::c128) return from == DType::f64 || from == DType::f32 || from == DType::c64 || is_half(from);
    if (to == DType::c64) return from == DType::f32 || is_half(from);
    if (is_float(to) && is_float(from)) return size_of(to) > size_of(from);
    if (is_float(to) && is_integer(from))
        return size_of(from) < (to == DType::f64 ? 8u : to == DType::f32 ? 4u : to == DType::f16 ? 2u : 1u);
    if (is_integer(to) && is_integer(from)) return size_of(to) > size_of(from) && (has_sign(to) || !has_sign(from));
    return false;
}

Value cast_chain(const Match& m) {
    if (Value same = m.if_same(m.arg(0)); !same.is_nil()) return same;
    const ir::Node* inner = call_of(m.arg(0), ops().cast);
    if (!inner) return {};
    auto original = static_type(inner->args[0]);
    if (!original || !holds(inner->type.tensor.dtype, original->dtype)) return {};
    if (original->dtype == m.node.type.tensor.dtype) return inner->args[0];
    // An intermediate dtype would round or wrap once more.
    return m.emit(ops().cast, {inner->args[0], m.arg(1)});
}

// Both choices give the same value.
Value same_choice(const Match& m) {
    const Value &a = m.arg(1), &b = m.arg(2);
    return a.is_node() && b.is_node() && a.node() == b.node() ? m.if_same(a) : Value();
}

// A tensor of one repeated value takes no memory.
Value same_everywhere(const Match& m, size_t value) {
    const TensorType& type = m.node.type.tensor;
    auto c = constant_number(m.arg(value));
    if (!c || !type.shape.known() || is_complex(type.dtype)) return {};
    Tensor one = type.dtype == DType::i64 && m.arg(value).kind() == Value::Kind::integer
                     ? Tensor::scalar(m.arg(value).integer())
                     : Tensor::scalar(type.dtype, *c);
    Value constant(m.builder.graph().add_constant(Value(one)));
    return type.shape.rank() == 0 ? constant : m.emit(ops().broadcast_to, {constant, Value::ints(type.shape)});
}
Value filled(const Match& m) { return same_everywhere(m, 1); }

// A sum over axes of one element adds nothing; the sum of -0 is 0.
Value sum_of_one(const Match& m) {
    auto from = static_type(m.arg(0));
    if (!from || !from->shape.known() || !(from->dtype == m.node.type.tensor.dtype)) return {};
    if (from->shape.size() != m.node.type.tensor.shape.size() || from->shape.size() == 0) return {};
    const Value same = m.emit(ops().reshape, {m.arg(0), Value::ints(m.node.type.tensor.shape)});
    return m.is_float_result() ? m.emit(ops().add, {same, Value(0.0)}) : same;
}

// If every part has been reshaped so that the axis consists of several axes, the parts are joined along the first of
// these: a part that is not dense in memory, like the heads of an attention, is then copied once and not twice.
Value join_before_reshape(const Match& m) {
    const auto& parts = m.arg(0).is_list() ? m.arg(0).items() : std::span<const Value>();
    if (parts.empty() || m.arg(1).kind() != Value::Kind::integer) return {};
    const int rank = m.node.type.tensor.shape.rank();
    const auto axis = static_cast<int>(m.arg(1).integer() + (m.arg(1).integer() < 0 ? rank : 0));
    std::vector<Value> wholes;
    Shape behind;  // the sizes after the axis, in every part
    for (const Value& part : parts) {
        if (!call_of(part, ops().reshape)) return {};
        auto from = static_type(part.node()->args[0]), to = static_type(part);
        if (!from || !to || !from->shape.known() || !to->shape.known() || from->shape.rank() <= rank) return {};
        if (!(from->dtype == m.node.type.tensor.dtype)) return {};
        const std::span<const int64_t> whole = from->shape.dims(), merged = to->shape.dims();
        const auto split = static_cast<size_t>(axis);
        const size_t tail = merged.size() - split - 1;
        if (!std::equal(merged.begin(), merged.begin() + axis, whole.begin()) ||
            !std::equal(merged.end() - static_cast<ptrdiff_t>(tail), merged.end(),
                        whole.end() - static_cast<ptrdiff_t>(tail)))
            return {};
        const Shape rest(whole.subspan(split + 1));
        if (!wholes.empty() && !(rest == behind)) return {};
        behind = rest;
        wholes.push_back(part.node()->args[0]);
    }
    const Value joined = m.emit(ops().concat, {Value::list(std::move(wholes)), Value(static_cast<int64_t>(axis))});
    return m.emit(ops().reshape, {joined, Value::ints(m.node.type.tensor.shape)});
}

struct Row {
    const Op& op;
    Peephole rule;
};
const std::vector<Row>& rules() {
    static const std::vector<Row> list{
        {ops().add, add_nothing},
        {ops().sub, subtract_nothing},
        {ops().mul, multiply_by_one},
        {ops().div, divide_by_one},
        {ops().div, divide_by_power_of_two},
        {ops().neg, undone_twice},
        {ops().logical_not, undone_twice},
        {ops().invert, undone_twice},
        {ops().abs, done_once},
        {ops().relu, done_once},
        {ops().floor, done_once},
        {ops().ceil, done_once},
        {ops().trunc, done_once},
        {ops().round_to_even, done_once},
        {ops().sign, done_once},
        {ops().pow, small_power},
        {ops().clamp, one_limit},
        {ops().cast, cast_chain},
        {ops().where, same_choice},
        {ops().sum, sum_of_one},
        {ops().concat, join_before_reshape},
        {ops().full, filled},
        {ops().full_like, filled},
    };
    return list;
}

}  // namespace

bool simplify_algebra(ir::Graph& graph) {
    return rewrite(graph, [](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        if (!node.op || node.type.kind != ir::NodeType::Kind::tensor) return {};
        for (const Row& row : rules()) {
            if (&row.op != node.op) continue;
            Value v = row.rule({node, builder});
            if (!v.is_nil()) return v;
        }
        return {};
    });
}

}  // namespace lunaria::graph
