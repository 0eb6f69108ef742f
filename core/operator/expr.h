// Expressions over operators. Gradient rules and composite operators are written with them once; the builder decides
// whether an operator runs now (eager) or becomes a node of a graph.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria {

class Op;
class Builder;

class Expr {
  public:
    Expr() = default;  // nothing: a zero cotangent, or an omitted argument
    Expr(Builder& b, Value v) : builder_(&b), value_(std::move(v)) {}

    explicit operator bool() const { return !value_.is_nil(); }
    const Value& value() const { return value_; }
    Builder& builder() const { return *builder_; }
    DType dtype() const;
    Shape shape() const;
    int rank() const { return shape().rank(); }
    Expr operator[](size_t i) const;  // i-th result of an operator with several, or i-th item of a list

    // Frequent operators; everything else by call("name", …).
    Expr reshape(const Shape& shape) const;
    Expr transpose(const Shape& perm) const;
    Expr sum(const Shape& axes, bool keepdim = false) const;  // without axes nothing is summed
    Expr cast(DType t) const;
    Expr broadcast_to(const Shape& shape) const;

  private:
    Builder* builder_ = nullptr;
    Value value_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator+(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator/(double a, const Expr& b);

// An argument of call(): an expression or a constant, by position or by name: call("sum", {x, {"keepdim", true}}).
struct Arg {
    std::string_view name;  // empty: by position
    Value value;
    Builder* builder = nullptr;
    Arg(const Expr& e) : value(e.value()), builder(e ? &e.builder() : nullptr) {}
    template <class T>
    requires std::constructible_from<Value, T> Arg(T&& v) : value(std::forward<T>(v)) {}
    Arg(const Shape& s) : value(Value::ints(s)) {}
    Arg(std::string_view n, Value v) : name(n), value(std::move(v)) {}
    Arg(std::string_view n, const Shape& s) : name(n), value(Value::ints(s)) {}
    Arg(std::string_view n, const Expr& e) : name(n), value(e.value()), builder(e ? &e.builder() : nullptr) {}
};

class Builder {
  public:
    virtual ~Builder() = default;
    // `args`: complete, in the order of the signature.
    virtual Value emit(const Op& op, std::span<const Value> args) = 0;
    // The i-th result of a call with several.
    virtual Value item(const Value& results, size_t i) = 0;
    virtual Value tuple(std::vector<Value> items) = 0;

    // Applies an operator; left-out parameters get their defaults. Throws when a name is unknown or an argument is
    // missing.
    Expr call(std::string_view op, std::initializer_list<Arg> args) {
        return call_args(op, {args.begin(), args.size()});
    }
    Expr call_args(std::string_view op, std::span<const Arg> args);
    Expr list(std::span<const Expr> items);
    Expr constant(Value v) { return {*this, std::move(v)}; }
    // A tensor that a rule has made for this call: it is moved to the device of the operands.
    Expr constant(Tensor made) {
        made.set_goes_along();
        return {*this, Value(std::move(made))};
    }
    // Tensors of one value that broadcast against anything.
    Expr zeros_like(const Expr& e);
    Expr ones_like(const Expr& e);
};

// Applies an operator to expressions; the builder is that of the first one.
Expr call(std::string_view op, std::initializer_list<Arg> args);

}  // namespace lunaria
