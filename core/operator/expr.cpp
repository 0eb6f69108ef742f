#include "core/operator/expr.h"

#include "core/operator/op.h"

namespace lunaria {

DType Expr::dtype() const { return type_of(value_).dtype; }
Shape Expr::shape() const { return type_of(value_).shape; }
Expr Expr::operator[](size_t i) const { return {*builder_, builder_->item(value_, i)}; }

Expr Expr::reshape(const Shape& shape) const {
    return shape == this->shape() ? *this : builder_->call("reshape", {*this, shape});
}
Expr Expr::transpose(const Shape& perm) const { return builder_->call("transpose", {*this, perm}); }
Expr Expr::sum(const Shape& axes, bool keepdim) const {
    return axes.rank() == 0 ? *this : builder_->call("sum", {*this, axes, keepdim});
}
Expr Expr::cast(DType t) const { return t == dtype() ? *this : builder_->call("cast", {*this, t}); }
Expr Expr::broadcast_to(const Shape& shape) const {
    return shape == this->shape() ? *this : builder_->call("broadcast_to", {*this, shape});
}

Expr operator+(const Expr& a, const Expr& b) { return call("add", {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return call("sub", {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return call("mul", {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return call("div", {a, b}); }
Expr operator-(const Expr& a) { return call("neg", {a}); }
Expr operator+(const Expr& a, double b) { return call("add", {a, b}); }
Expr operator-(const Expr& a, double b) { return call("sub", {a, b}); }
Expr operator*(const Expr& a, double b) { return call("mul", {a, b}); }
Expr operator/(const Expr& a, double b) { return call("div", {a, b}); }
Expr operator+(double a, const Expr& b) { return call("add", {a, b}); }
Expr operator-(double a, const Expr& b) { return call("sub", {a, b}); }
Expr operator*(double a, const Expr& b) { return call("mul", {a, b}); }
Expr operator/(double a, const Expr& b) { return call("div", {a, b}); }

Expr Builder::call_args(std::string_view name, std::span<const Arg> given) {
    const Op& op = registry().get(name);
    const auto& params = op.signature.params;
    std::vector<Value> args(params.size());
    std::vector<bool> set(params.size());
    size_t position = 0;
    for (const Arg& arg : given) {
        int at = arg.name.empty() ? static_cast<int>(position++) : op.signature.find(arg.name);
        if (at < 0 || static_cast<size_t>(at) >= params.size())
            throw argument_error(
                name, arg.name.empty() ? "too many arguments" : str("there is no parameter '", arg.name, "'"));
        args[static_cast<size_t>(at)] = arg.value;
        set[static_cast<size_t>(at)] = true;
    }
    for (size_t i = 0; i < params.size(); ++i) {
        if (set[i]) continue;
        if (!params[i].has_default) throw argument_error(name, str("argument ", params[i].name, " is missing"));
        args[i] = params[i].default_value;
    }
    return {*this, emit(op, args)};
}

Expr Builder::list(std::span<const Expr> items) {
    std::vector<Value> values;
    for (const Expr& e : items) values.push_back(e.value());
    return {*this, tuple(std::move(values))};
}

Expr Builder::zeros_like(const Expr& e) { return call("zeros_like", {e}); }
Expr Builder::ones_like(const Expr& e) { return call("ones_like", {e}); }

Expr call(std::string_view op, std::initializer_list<Arg> args) {
    for (const Arg& arg : args)
        if (arg.builder) return arg.builder->call_args(op, {args.begin(), args.size()});
    return eager_builder().call_args(op, {args.begin(), args.size()});
}

Expr GradRule::unbroadcast(const Expr& dx, size_t i) const {
    if (!dx) return dx;
    Shape from = dx.shape(), to = shape(i);
    if (from == to) return dx;
    // Axes of one element need no sum.
    if (from.known() && to.known() && from.size() == to.size()) return dx.reshape(to);
    Shape summed;
    int extra = from.rank() - to.rank();
    for (int axis = 0; axis < from.rank(); ++axis)
        if (axis < extra || (to[axis - extra] == 1 && from[axis] != 1)) summed.push_back(axis);
    bool only_leading = summed.rank() == extra;
    return dx.sum(summed, !only_leading).reshape(to);
}

}  // namespace lunaria
