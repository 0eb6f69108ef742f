#include "jit/frontend/constants.h"

#include <cmath>

#include "jit/frontend/literals.h"

namespace lunaria::lua {

namespace {

using MaybeConstant = std::optional<Constant>;

std::uint64_t wrap(std::int64_t x) { return static_cast<std::uint64_t>(x); }
std::int64_t unwrap(std::uint64_t x) { return static_cast<std::int64_t>(x); }

std::optional<NumberValue> to_number(const MaybeConstant& c) {
    if (!c) return std::nullopt;
    if (const auto* i = std::get_if<std::int64_t>(&*c)) return *i;
    if (const auto* d = std::get_if<double>(&*c)) return *d;
    return std::nullopt;
}

double as_float(const NumberValue& v) {
    return std::visit([](auto x) { return static_cast<double>(x); }, v);
}

std::optional<std::int64_t> as_integer(const NumberValue& v) {
    if (const auto* i = std::get_if<std::int64_t>(&v)) return *i;
    const double d = std::get<double>(v);
    // The bounds are exact: the largest double below 2^63 is an integer that fits.
    if (d != std::floor(d) || d < -0x1p63 || d >= 0x1p63) return std::nullopt;
    return static_cast<std::int64_t>(d);
}

std::int64_t shifted_left(std::int64_t x, std::int64_t by) {
    if (by <= -64 || by >= 64) return 0;
    return unwrap(by >= 0 ? wrap(x) << by : wrap(x) >> -by);
}

// Stock Lua folds no float that is zero (it may be -0.0) or not a number.
MaybeConstant folded(double value) {
    if (std::isnan(value) || value == 0) return std::nullopt;
    return value;
}

MaybeConstant fold_integers(BinaryOp op, std::int64_t a, std::int64_t b) {
    switch (op) {
        case BinaryOp::add:
            return unwrap(wrap(a) + wrap(b));
        case BinaryOp::sub:
            return unwrap(wrap(a) - wrap(b));
        case BinaryOp::mul:
            return unwrap(wrap(a) * wrap(b));
        case BinaryOp::mod: {
            if (b == 0) return std::nullopt;
            if (b == -1) return std::int64_t{0};  // the smallest integer would overflow in C++
            const std::int64_t r = a % b;
            return r != 0 && (r ^ b) < 0 ? r + b : r;
        }
        case BinaryOp::floor_div: {
            if (b == 0) return std::nullopt;
            if (b == -1) return unwrap(0 - wrap(a));
            const std::int64_t q = a / b;
            return a % b != 0 && (a ^ b) < 0 ? q - 1 : q;
        }
        default:
            return std::nullopt;
    }
}

MaybeConstant fold_floats(BinaryOp op, double a, double b) {
    switch (op) {
        case BinaryOp::add:
            return folded(a + b);
        case BinaryOp::sub:
            return folded(a - b);
        case BinaryOp::mul:
            return folded(a * b);
        case BinaryOp::div:
            return b == 0 ? std::nullopt : folded(a / b);
        case BinaryOp::floor_div:
            return b == 0 ? std::nullopt : folded(std::floor(a / b));
        case BinaryOp::pow:
            return folded(b == 2 ? a * a : std::pow(a, b));
        case BinaryOp::mod: {
            if (b == 0) return std::nullopt;
            double r = std::fmod(a, b);
            if (r > 0 ? b < 0 : (r < 0 && b != r)) r += b;
            return folded(r);
        }
        default:
            return std::nullopt;
    }
}

MaybeConstant fold_bits(BinaryOp op, std::int64_t a, std::int64_t b) {
    switch (op) {
        case BinaryOp::bit_and:
            return a & b;
        case BinaryOp::bit_or:
            return a | b;
        case BinaryOp::bit_xor:
            return a ^ b;
        case BinaryOp::shift_left:
            return shifted_left(a, b);
        default:
            return shifted_left(a, unwrap(0 - wrap(b)));
    }
}

MaybeConstant fold_binary(BinaryOp op, const MaybeConstant& left, const MaybeConstant& right) {
    const auto a = to_number(left), b = to_number(right);
    if (!a || !b || op >= BinaryOp::concat) return std::nullopt;
    if (op >= BinaryOp::bit_and) {
        const auto x = as_integer(*a), y = as_integer(*b);
        return x && y ? fold_bits(op, *x, *y) : std::nullopt;
    }
    const auto *x = std::get_if<std::int64_t>(&*a), *y = std::get_if<std::int64_t>(&*b);
    if (x && y && op != BinaryOp::div && op != BinaryOp::pow) return fold_integers(op, *x, *y);
    return fold_floats(op, as_float(*a), as_float(*b));
}

bool is_truthy(const Constant& c) {
    const bool* boolean = std::get_if<bool>(&c);
    return boolean ? *boolean : !std::holds_alternative<std::nullptr_t>(c);
}

MaybeConstant fold_unary(const Unary& unary) {
    const MaybeConstant operand = fold_constant(*unary.operand);
    if (!operand) return std::nullopt;
    if (unary.op == UnaryOp::not_) return !is_truthy(*operand);
    const auto number = to_number(operand);
    if (!number || unary.op == UnaryOp::length) return std::nullopt;
    if (unary.op == UnaryOp::bit_not) {
        const auto i = as_integer(*number);
        return i ? MaybeConstant(~*i) : std::nullopt;
    }
    if (const auto* i = std::get_if<std::int64_t>(&*number)) return unwrap(0 - wrap(*i));
    return folded(-std::get<double>(*number));
}

MaybeConstant fold_leaf(const Expr& e) {
    switch (e.kind) {
        case ExprKind::nil:
            return nullptr;
        case ExprKind::boolean:
            return e.as<Boolean>().value;
        case ExprKind::integer:
            return e.as<Integer>().value;
        case ExprKind::number:
            return e.as<Number>().value;
        case ExprKind::string:
            return e.as<String>().value;
        case ExprKind::constant:
            return e.as<ConstantName>().local->constant;
        case ExprKind::paren:
            return fold_constant(*e.as<Paren>().inner);
        case ExprKind::unary:
            return fold_unary(e.as<Unary>());
        default:
            return std::nullopt;
    }
}

}  // namespace

std::optional<Constant> fold_constant(const Expr& expr) {
    const auto spine = left_spine(expr);
    MaybeConstant value = fold_leaf(*spine.back());
    for (std::size_t i = spine.size() - 1; i-- > 0 && value;) {
        if (const auto* binary = spine[i]->get_if<Binary>()) {
            value = fold_binary(binary->op, value, fold_constant(*binary->right));
        } else if (const auto* logical = spine[i]->get_if<Logical>()) {
            // Only expressions that compile to no jump: `true and x`, `nil or x`.
            const bool goes_on = is_truthy(*value) == (logical->op == LogicalOp::and_);
            value = goes_on ? fold_constant(*logical->right) : std::nullopt;
        } else {
            return std::nullopt;
        }
    }
    return value;
}

}  // namespace lunaria::lua
