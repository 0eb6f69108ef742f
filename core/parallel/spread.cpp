// Operators whose axis is reduced first and used afterwards, as compositions of reductions and elementwise operators:
// each of them has a rule of its own, so that a softmax along a cut axis takes two small merges, one for the largest
// elements and one for the sums. Rows that an entry has formulas for (core/operator/row_pass.h) are read from them.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/operator/expansion.h"
#include "core/operator/row_pass.h"
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// Runs the formulas of a row on whole tensors.
class RowExpansion final : public RowPass {
  public:
    RowExpansion(const Call& of, Builder& b, DType dtype) : RowPass(of), builder_(b), dtype_(dtype) {
        axes_ = of.op.axes_fn(of);
        for (int64_t axis : axes_) length_ *= static_cast<double>(of.shape(0)[static_cast<int>(axis)]);
    }

    RowValue in(size_t i) override { return keep(Expr(builder_, call.args[i]).cast(dtype_)); }
    RowValue number(double x) override { return keep(builder_.call("full", {Shape{}, x, dtype_})); }
    double length() const override { return length_; }
    bool as_host() const override { return false; }
    RowValue formula(std::string_view name, std::initializer_list<RowValue> args) override {
        std::vector<Arg> list;
        for (const RowValue& v : args) list.emplace_back(value(v));
        return keep(builder_.call_args(name, list));
    }
    RowValue sum(RowValue x) override { return keep(value(x).sum(axes_, true)); }
    RowValue squares(RowValue x) override { return sum(keep(value(x) * value(x))); }
    RowValue max(RowValue x) override { return keep(builder_.call("amax", {value(x), axes_, true})); }
    RowValue min(RowValue x) override { return keep(builder_.call("amin", {value(x), axes_, true})); }

    const Expr& value(const RowValue& v) const { return values_[v.index()]; }

  private:
    RowValue keep(Expr e) {
        values_.push_back(std::move(e));
        return {*this, static_cast<uint16_t>(values_.size() - 1)};
    }

    Builder& builder_;
    DType dtype_;
    Shape axes_;
    double length_ = 1;
    std::vector<Expr> values_;
};

DType wide(DType t) { return is_half(t) ? DType::f32 : t; }

// What the compositions work with: operands in a dtype that sums fit.
struct Parts {
    const Rule& rule;
    Builder& b;
    std::span<const Value> args;
    Call call = rule.call();

    DType dtype() const { return wide(rule.results[0].type.dtype); }
    Expr in(size_t i) const { return Expr(b, args[i]).cast(dtype()); }
    Value out(const Expr& y, size_t result = 0) const {
        const TensorType& type = rule.results[result].type;
        return (y.shape() == type.shape ? y : y.reshape(type.shape)).cast(type.dtype).value();
    }
    Expr mean(const Expr& x, const Shape& axes) const { return b.call("mean", {x, axes, true}); }
    double length(const Shape& axes) const {
        double n = 1;
        for (int64_t axis : axes) n *= static_cast<double>(call.shape(0)[static_cast<int>(axis)]);
        return n;
    }
};

template <bool root>
Value variance(const Parts& p) {
    const Shape axes = p.call.axes(1, 0);
    const Expr x = p.in(0), centred = x - p.mean(x, axes);
    const Value& ddof = p.call.args[2];
    const double free = p.length(axes) - (ddof.kind() == Value::Kind::boolean ? ddof.boolean() : ddof.number());
    const Expr v = (centred * centred).sum(axes, true) / free;
    return p.out(root ? p.b.call("sqrt", {v}) : v);
}

Value log_sum_exp(const Parts& p) {
    const Shape axes = p.call.axes(1, 0);
    const Expr x = p.in(0), largest = p.b.call("amax", {x, axes, true});
    // An infinite maximum is the result itself; subtracting it would give NaN.
    const Expr shift = p.b.call("where", {p.b.call("isfinite", {largest}), largest, 0.0});
    return p.out(p.b.call("log", {p.b.call("exp", {x - shift}).sum(axes, true)}) + shift);
}

Value norm_of_vectors(const Parts& p) {
    const Shape axes = p.call.axes(2, 0);
    const Expr size = p.b.call("abs", {p.in(0)});
    const double order = p.call.args[1].is_number() ? p.call.number(1) : std::numeric_limits<double>::quiet_NaN();
    auto extreme = [&](const char* name) { return p.out(p.b.call(name, {size, axes, true})); };
    if (std::isnan(order)) return {};
    if (std::isinf(order)) return extreme(order > 0 ? "amax" : "amin");
    if (order == 0) return p.out(p.b.call("not_equal", {size, 0}).cast(p.dtype()).sum(axes, true));
    if (order == 1) return p.out(size.sum(axes, true));
    // Squares and higher powers of large elements overflow where the norm does not.
    const Expr largest = p.b.call("amax", {size, axes, true});
    const Expr usable = p.b.call("logical_and", {p.b.call("isfinite", {largest}), p.b.call("not_equal", {largest, 0})});
    const Expr scale = p.b.call("where", {usable, largest, 1.0});
    const Expr sum = p.b.call("pow", {size / scale, order}).sum(axes, true);
    return p.out(p.b.call("pow", {sum, 1 / order}) * scale);
}

// The first of the largest (smallest) elements: the least position of all that equal the extreme. NaN is larger and
// smaller than everything.
Expr first_of(const Parts& p, const Expr& x, const Expr& extreme, const Shape& axes) {
    const Shape shape = x.shape();
    Expr position;
    int64_t stride = 1;
    for (int k = axes.rank() - 1; k >= 0; --k) {
        const int axis = static_cast<int>(axes[k]);
        Shape line;
        for (int m = 0; m < shape.rank(); ++m) line.push_back(m == axis ? shape[m] : 1);
        const Expr along = p.b.call("arange", {int64_t{0}, shape[axis], int64_t{1}, DType::i64}).reshape(line);
        const Expr part = stride == 1 ? along : p.b.call("mul", {along, stride});
        position = position ? position + part : part;
        stride *= shape[axis];
    }
    Expr chosen = p.b.call("equal", {x, extreme});
    if (is_float(x.dtype())) chosen = p.b.call("logical_or", {chosen, p.b.call("isnan", {x})});
    return p.b.call("amin", {p.b.call("where", {chosen, position, stride}), axes, true});
}

template <bool largest>
Value place_of_extreme(const Parts& p) {
    const Shape axes = p.call.axes(1, 0);
    const Expr x(p.b, p.args[0]);
    const Expr extreme = p.b.call(largest ? "amax" : "amin", {x, axes, true});
    return p.out(first_of(p, x, extreme, axes));
}

template <bool largest>
Value extreme_and_place(const Parts& p) {
    const Shape axes = {p.call.axis(1, 0)};
    const Expr x(p.b, p.args[0]);
    const Expr extreme = p.b.call(largest ? "amax" : "amin", {x, axes, true});
    return Value::list({p.out(extreme), p.out(first_of(p, x, extreme, axes), 1)});
}

Shape last_of(int rank, int count) {
    Shape axes;
    for (int k = rank - count; k < rank; ++k) axes.push_back(k);
    return axes;
}

Value root_mean_square_norm(const Parts& p) {
    const Shape axes = last_of(p.call.rank(0), p.call.rank(1));
    const Expr x = p.in(0);
    const Expr rstd = p.b.call("rsqrt", {p.mean(x * x, axes) + p.call.number(2)});
    return Value::list({p.out(x * rstd * p.in(1)), p.out(rstd, 1)});
}

struct Statistics {
    Shape axes, weight_axes;  // reduced for the statistics; for the gradients of weight and bias
    Shape beside;             // the shape of a weight beside x
    double eps;
};

// (dx, dweight, dbias) of a normalisation of x over `axes`.
Value gradients_of_norm(const Parts& p, const Statistics& s) {
    const Expr dy = p.in(0), x = p.in(1);
    const Expr centred = x - p.mean(x, s.axes);
    const Expr rstd = p.b.call("rsqrt", {p.mean(centred * centred, s.axes) + s.eps});
    const Expr normal = centred * rstd;
    const Expr v = p.call.has(2) ? dy * p.in(2).reshape(s.beside) : dy;
    const Expr dx = (v - p.mean(v, s.axes) - normal * p.mean(v * normal, s.axes)) * rstd;
    return Value::list(
        {p.out(dx), p.out((dy * normal).sum(s.weight_axes, true), 1), p.out(dy.sum(s.weight_axes, true), 2)});
}

Value layer_norm_gradients(const Parts& p) {
    const int rank = p.call.rank(1), count = static_cast<int>(p.call.integer(3));
    Shape rows;
    for (int k = 0; k < rank - count; ++k) rows.push_back(k);
    const Shape whole = p.call.shape(1);
    Shape beside;
    for (int k = 0; k < rank; ++k) beside.push_back(k < rank - count ? 1 : whole[k]);
    return gradients_of_norm(p, {last_of(rank, count), rows, beside, p.call.number(4)});
}

Shape all_but_channels(int rank) {
    Shape axes{0};
    for (int k = 2; k < rank; ++k) axes.push_back(k);
    return axes;
}

Shape beside_channels(const Shape& x) {
    Shape shape;
    for (int k = 0; k < x.rank(); ++k) shape.push_back(k == 1 ? x[1] : 1);
    return shape;
}

Value batch_norm_gradients(const Parts& p) {
    const Shape axes = all_but_channels(p.call.rank(1));
    return gradients_of_norm(p, {axes, axes, beside_channels(p.call.shape(1)), p.call.number(3)});
}

Value batch_norm(const Parts& p) {
    const Shape axes = all_but_channels(p.call.rank(0)), beside = beside_channels(p.call.shape(0));
    const Expr x = p.in(0), mean = p.mean(x, axes), centred = x - mean;
    const Expr variance = p.mean(centred * centred, axes);
    Expr y = centred * p.b.call("rsqrt", {variance + p.call.number(3)});
    if (p.call.has(1)) y = y * p.in(1).reshape(beside);
    if (p.call.has(2)) y = y + p.in(2).reshape(beside);
    return Value::list({p.out(y), p.out(mean, 1), p.out(variance, 2)});
}

struct Row {
    std::string_view name;
    Value (*expand)(const Parts&);
};
constexpr std::array kExpansions = {
    Row{"var", variance<false>},
    Row{"std", variance<true>},
    Row{"logsumexp", log_sum_exp},
    Row{"vector_norm", norm_of_vectors},
    Row{"argmax", place_of_extreme<true>},
    Row{"argmin", place_of_extreme<false>},
    Row{"max", extreme_and_place<true>},
    Row{"min", extreme_and_place<false>},
    Row{"rms_norm", root_mean_square_norm},
    Row{"layer_norm_grad", layer_norm_gradients},
    Row{"batch_norm_train", batch_norm},
    Row{"batch_norm_grad", batch_norm_gradients},
};

const Row* row_of(const Op& op) {
    const auto* row = std::ranges::find(kExpansions, op.name(), &Row::name);
    return row == kExpansions.end() ? nullptr : row;
}

bool has_row_pass(const Op& op) { return op.row_fn && op.fuses_as == Fusion::row_pass; }

}  // namespace

bool has_spread_expansion(const Op& op) { return row_of(op) || has_row_pass(op) || op.expand_fn; }

Value spread_expansion(const Rule& rule, Builder& b, std::span<const Value> global) {
    const Op& op = rule.op();
    const Call call(op, global, rule.call().dtype);
    if (const Row* row = row_of(op)) return speaking_of(op, [&] { return row->expand({rule, b, global}); });
    if (has_row_pass(op)) {
        RowExpansion pass(call, b, wide(rule.results[0].type.dtype));
        const RowValue y = op.row_fn(pass);
        return pass.value(y).cast(rule.results[0].type.dtype).value();
    }
    if (!op.expand_fn) return {};
    const std::vector<Value> args = expansion_args(op, global, call.dtype);
    return expand(ExpandCall(Call(op, args, call.dtype), b));
}

}  // namespace lunaria::parallel
