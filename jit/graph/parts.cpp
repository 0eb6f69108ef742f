// The operators that may be part of generated code, and the axes along which they work.
#include "core/loops/graph_backend.h"
#include "core/loops/loop.h"
#include "core/loops/small_product.h"
#include "core/loops/sum_order.h"
#include "core/operator/infer.h"
#include "core/tensor/device.h"
#include "jit/graph/fusion.h"
#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

// Longer rows are split among threads by the operator's own kernel.
constexpr int64_t kLongestRow = 32 * 1024;

// A cast whose every result is defined: casts of floats to integers are left to the kernel.
bool is_plain_cast(DType from, DType to) {
    if (!is_lane(from) || !is_lane(to)) return false;
    return !(is_float(from) && is_integer(to));
}

bool takes_element_operands(const ir::Node& node) {
    for (size_t i = 0; i < node.args.size(); ++i) {
        const Value& v = node.args[i];
        ArgType type = node.op->signature.params[i].type;
        if (is_tensor_type(type) && type != ArgType::tensors) {
            auto t = static_type(v);
            if (!v.is_number() && !(t && t->shape.known() && is_lane(t->dtype))) return false;
        } else if (type == ArgType::number) {
            if (!v.is_number()) return false;
        } else if (!v.is_nil()) {
            return false;  // an attribute that asks for another computation (div's rounding_mode)
        }
    }
    return true;
}

// The axes that the operator works along.
Shape axes_of(const ir::Node& node) { return node.op->axes_fn(Call(*node.op, node.args, DType::f32)); }

bool are_last(const Shape& axes, int rank) {
    uint32_t mask = 0;
    for (int64_t a : axes) mask |= 1u << a;
    uint32_t last = ((1u << axes.rank()) - 1) << (rank - axes.rank());
    return axes.rank() > 0 && mask == last;
}

// The kernel distributes more rows than this better.
constexpr int64_t kMostRows = 4096;

// A sum that keeps the last axis, which is long enough for whole vectors. In the order of sums the rows of a result
// follow each other, so that the reduced axes must be adjacent.
bool adds_rows(const Shape& axes, const Shape& shape) {
    const int last = shape.rank() - 1;
    int64_t rows = 1, results = 1;
    for (int axis = 0; axis < last; ++axis)
        (std::find(axes.begin(), axes.end(), axis) == axes.end() ? results : rows) *= shape[axis];
    if (std::find(axes.begin(), axes.end(), last) != axes.end() || (results > 1 && adds_in_order())) return false;
    return rows > 1 && rows <= kMostRows && shape.back() >= kSumLanes;
}

bool is_whole(const Value& v) {
    const auto type = static_type(v);
    return type && (is_integer(type->dtype) || type->dtype == DType::boolean);
}

bool is_small_product(const ir::Node& node, const Arrangements& arrangements) {
    const Shape& shape = node.type.tensor.shape;
    const DType t = node.type.tensor.dtype;
    if (shape.rank() != 2 || (t != DType::f32 && t != DType::f64)) return false;
    for (int i = 0; i < 2; ++i) {
        auto type = static_type(node.args[static_cast<size_t>(i)]);
        if (!type || !node.args[static_cast<size_t>(i)].is_node() || type->dtype != t || type->shape.rank() != 2)
            return false;
    }
    const Arrangement &a = *arrangements.find(node.args[0].node()), &b = *arrangements.find(node.args[1].node());
    const int64_t depth = b.type.shape[0];
    return lunaria::is_small_product(shape[0], depth, shape[1]) && (a.strides[1] == 1 || depth == 1) &&
           b.strides[1] == 1;
}

// The role of an operator that works along rows in a piece.
Part part_of_rows(const ir::Node& node) {
    auto from = static_type(node.args[0]);
    if (!from || from->shape.rank() == 0 || from->shape.size() == 0) return Part::none;
    // Other dtypes are summed in other ways.
    if (from->dtype != DType::f32 && from->dtype != DType::f64) return Part::none;
    if (node.type.tensor.dtype != from->dtype) return Part::none;
    for (const Value& arg : node.args)
        if (auto t = static_type(arg); t && t->dtype != from->dtype) return Part::none;
    // The kernels add up in f64, which is exact for integers.
    if (const ir::Node* cast = call_of(node.args[0], ops().cast); cast && is_whole(cast->args[0])) return Part::none;
    Shape axes = axes_of(node);
    if (node.op->fuses_as == Fusion::sum && adds_rows(axes, from->shape)) return Part::sum;
    if (!are_last(axes, from->shape.rank())) return Part::none;
    int64_t length = 1;
    for (int64_t a : axes) length *= from->shape[static_cast<int>(a)];
    if (length > kLongestRow || length < 2) return Part::none;
    return node.op->fuses_as == Fusion::row_pass ? Part::row : Part::reduce;
}

}  // namespace

DType element_dtype(const ir::Node& node) {
    const auto first = static_type(node.args[0]);
    const DType given = node.op->promotes ? promoted_dtype(*node.op, node.args) : first ? first->dtype : DType::f32;
    // Functions with real results compute integers in the dtype of the result.
    const DType result = node.type.tensor.dtype;
    return !is_float(given) && is_float(result) ? result : given;
}

int row_axes(const ir::Node& node) {
    Call call(*node.op, node.args, DType::f32);
    return call.rank(0) - axes_of(node).rank();
}

bool adds_in_order() {
    Backend* const loops = current_place() ? current_place()->graphs() : nullptr;
    return !loops || loops->adds_as_host();
}

Part part_of(const ir::Node& node, const Arrangements& arrangements) {
    if (!node.op || has_effect(node) || node.type.kind != ir::NodeType::Kind::tensor) return Part::none;
    const TensorType& type = node.type.tensor;
    if (!type.shape.known() || type.shape.size() == 0 || !is_lane(type.dtype)) return Part::none;
    for (const Value& arg : node.args)
        if (arg.is_node() && !arrangements.find(arg.node())) return Part::none;
    const Fusion role = node.op->fuses_as;
    if (role == Fusion::none) return Part::none;
    if (role == Fusion::element) {
        const DType computed = element_dtype(node);
        const bool fits = formula_cost(node.op->name(), computed) > 0 && !node.op->may_raise(computed);
        if (!current_device()->is_host() && is_done_by_loop(node.op->name(), computed)) return Part::none;
        return fits && takes_element_operands(node) ? Part::element : Part::none;
    }
    if (role == Fusion::cast) {
        auto from = static_type(node.args[0]);
        return from && is_plain_cast(from->dtype, type.dtype) ? Part::element : Part::none;
    }
    if (role == Fusion::product) return is_small_product(node, arrangements) ? Part::product : Part::none;
    return part_of_rows(node);
}

}  // namespace lunaria::graph
