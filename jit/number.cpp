#include "jit/number.h"

#include <cmath>
#include <compare>
#include <limits>
#include <numbers>

#include "jit/language_rows.h"

namespace lunaria::lua {

namespace rules = autodiff::rules;

namespace {

using NumberFn = Value (*)(const Value* args);

bool is_integer_number(const Value& v) { return v.kind() == Value::Kind::integer; }
bool are_integers(const Value* v) { return is_integer_number(v[0]) && is_integer_number(v[1]); }

uint64_t bits(int64_t i) { return static_cast<uint64_t>(i); }
Value wrapped(uint64_t u) { return Value(static_cast<int64_t>(u)); }

Error arithmetic_error(const char* message) { return {ErrorKind::arithmetic, "", message}; }

Value add(const Value* v) {
    if (are_integers(v)) return wrapped(bits(v[0].integer()) + bits(v[1].integer()));
    return Value(v[0].number() + v[1].number());
}
Value sub(const Value* v) {
    if (are_integers(v)) return wrapped(bits(v[0].integer()) - bits(v[1].integer()));
    return Value(v[0].number() - v[1].number());
}
Value mul(const Value* v) {
    if (are_integers(v)) return wrapped(bits(v[0].integer()) * bits(v[1].integer()));
    return Value(v[0].number() * v[1].number());
}
Value div(const Value* v) { return Value(v[0].number() / v[1].number()); }
Value neg(const Value* v) {
    if (is_integer_number(v[0])) return wrapped(0 - bits(v[0].integer()));
    return Value(-v[0].number());
}
// A square as a product, as in Lua: it is exact more often than a library's pow.
Value pow(const Value* v) {
    double a = v[0].number(), b = v[1].number();
    return Value(b == 2 ? a * a : std::pow(a, b));
}

// Division by -1 is separate: the smallest integer over -1 traps the processor.
Value floor_div(const Value* v) {
    if (!are_integers(v)) return Value(std::floor(v[0].number() / v[1].number()));
    int64_t a = v[0].integer(), b = v[1].integer();
    if (b == 0) throw arithmetic_error("attempt to divide by zero");
    if (b == -1) return wrapped(0 - bits(a));
    int64_t q = a / b;
    return Value(a % b != 0 && (a ^ b) < 0 ? q - 1 : q);
}
Value mod(const Value* v) {
    if (are_integers(v)) {
        int64_t a = v[0].integer(), b = v[1].integer();
        if (b == 0) throw arithmetic_error("attempt to perform 'n%0'");
        if (b == -1) return Value(int64_t{0});
        int64_t r = a % b;
        return Value(r != 0 && (r ^ b) < 0 ? r + b : r);
    }
    double b = v[1].number(), r = std::fmod(v[0].number(), b);
    bool other_sign = r > 0 ? b < 0 : r < 0 && b > 0;
    return Value(other_sign ? r + b : r);
}
Value fmod(const Value* v) {
    if (!are_integers(v)) return Value(std::fmod(v[0].number(), v[1].number()));
    int64_t a = v[0].integer(), b = v[1].integer();
    if (b == 0) throw argument_error("", "bad argument #2 to 'fmod' (zero)");
    return Value(b == -1 ? int64_t{0} : a % b);
}

bool fits_integer(double x) { return x >= -0x1p63 && x < 0x1p63; }

int64_t exact_integer(const Value& v) {
    if (is_integer_number(v)) return v.integer();
    double x = v.number();
    if (!fits_integer(x) || x != std::floor(x)) throw value_error("", "number has no integer representation");
    return static_cast<int64_t>(x);
}

Value bit_and(const Value* v) { return Value(exact_integer(v[0]) & exact_integer(v[1])); }
Value bit_or(const Value* v) { return Value(exact_integer(v[0]) | exact_integer(v[1])); }
Value bit_xor(const Value* v) { return Value(exact_integer(v[0]) ^ exact_integer(v[1])); }
Value bit_not(const Value* v) { return Value(~exact_integer(v[0])); }

// Logical shifts; a negative distance shifts in the other direction, and a distance of 64 or more gives 0.
Value shifted_left(int64_t a, int64_t by) {
    if (by <= -64 || by >= 64) return Value(int64_t{0});
    return by >= 0 ? wrapped(bits(a) << by) : wrapped(bits(a) >> -by);
}
Value shift_left(const Value* v) { return shifted_left(exact_integer(v[0]), exact_integer(v[1])); }
Value shift_right(const Value* v) {
    int64_t a = exact_integer(v[0]), by = exact_integer(v[1]);
    return by == std::numeric_limits<int64_t>::min() ? Value(int64_t{0}) : shifted_left(a, -by);
}

// Compares an integer and a float without rounding the integer.
std::partial_ordering order(int64_t i, double x) {
    if (std::isnan(x)) return std::partial_ordering::unordered;
    if (x >= 0x1p63) return std::partial_ordering::less;
    if (x < -0x1p63) return std::partial_ordering::greater;
    double below = std::floor(x);
    auto whole = i <=> static_cast<int64_t>(below);
    return whole == 0 && x > below ? std::partial_ordering::less : std::partial_ordering(whole);
}
std::partial_ordering order(const Value& a, const Value& b) {
    if (is_integer_number(a))
        return is_integer_number(b) ? std::partial_ordering(a.integer() <=> b.integer())
                                    : order(a.integer(), b.number());
    return is_integer_number(b) ? 0 <=> order(b.integer(), a.number()) : a.number() <=> b.number();
}

Value equal(const Value* v) { return Value(order(v[0], v[1]) == 0); }
Value less(const Value* v) { return Value(order(v[0], v[1]) < 0); }
Value less_equal(const Value* v) { return Value(order(v[0], v[1]) <= 0); }
Value equal_weight(const Value* v) { return Value(int64_t{order(v[0], v[1]) == 0}); }
Value less_weight(const Value* v) { return Value(int64_t{order(v[0], v[1]) < 0}); }
Value less_equal_weight(const Value* v) { return Value(int64_t{order(v[0], v[1]) <= 0}); }

Value integer_if_it_fits(double x) { return fits_integer(x) ? Value(static_cast<int64_t>(x)) : Value(x); }

Value abs(const Value* v) {
    if (is_integer_number(v[0])) return v[0].integer() < 0 ? neg(v) : v[0];
    return Value(std::fabs(v[0].number()));
}
Value sign(const Value* v) {
    double x = v[0].number();
    return Value(std::isnan(x) ? x : x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0);
}
Value floor(const Value* v) { return is_integer_number(v[0]) ? v[0] : integer_if_it_fits(std::floor(v[0].number())); }
Value ceil(const Value* v) { return is_integer_number(v[0]) ? v[0] : integer_if_it_fits(std::ceil(v[0].number())); }
Value trunc(const Value* v) { return is_integer_number(v[0]) ? v[0] : integer_if_it_fits(std::trunc(v[0].number())); }
Value frac(const Value* v) {
    double x = v[0].number();
    return Value(is_integer_number(v[0]) || std::isinf(x) ? 0.0 : x - std::trunc(x));
}
Value max(const Value* v) { return order(v[0], v[1]) < 0 ? v[1] : v[0]; }
Value min(const Value* v) { return order(v[1], v[0]) < 0 ? v[1] : v[0]; }
// Bases 2 and 10 have functions of their own, which are exact at powers of them.
Value log_base(const Value* v) {
    double x = v[0].number(), base = v[1].number();
    if (base == 2) return Value(std::log2(x));
    if (base == 10) return Value(std::log10(x));
    return Value(std::log(x) / std::log(base));
}
Value select(const Value* v) { return v[0].number() == 0 ? v[2] : v[1]; }

template <double (*f)(double)>
Value function(const Value* v) {
    return Value(f(v[0].number()));
}

// By Operation.
constexpr NumberFn kOperations[] = {add,     sub,        mul,         mod, pow,     div,   floor_div, bit_and,   bit_or,
                                    bit_xor, shift_left, shift_right, neg, bit_not, equal, less,      less_equal};

static_assert(std::size(kOperations) == static_cast<size_t>(Operation::concat));

const char* kind_name(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::nil:
            return "nil";
        case Value::Kind::boolean:
            return "boolean";
        case Value::Kind::string:
            return "string";
        case Value::Kind::tensor:
            return "tensor";
        default:
            return "table";
    }
}

}  // namespace

Turns turns_of(int64_t start, const Value& limit, int64_t step) {
    Turns turns;
    bool none = false;
    if (limit.kind() == Value::Kind::integer) {
        turns.last = limit.integer();
    } else {
        const double last = step > 0 ? std::floor(limit.number()) : std::ceil(limit.number());
        if (std::isnan(last))
            none = true;
        else if (last >= 0x1p63)
            step < 0 ? void(none = true) : void(turns.last = INT64_MAX);
        else if (last < -0x1p63)
            step > 0 ? void(none = true) : void(turns.last = INT64_MIN);
        else
            turns.last = static_cast<int64_t>(last);
    }
    if (none || (step > 0 ? start > turns.last : start < turns.last)) return turns;
    const uint64_t distance = step > 0 ? bits(turns.last) - bits(start) : bits(start) - bits(turns.last);
    turns.count = distance / (step > 0 ? bits(step) : ~bits(step) + 1) + 1;
    return turns;
}

const Op& on_numbers(const Op& op) {
    static const std::unordered_map<const Op*, const Op*> table = [] {
        std::unordered_map<const Op*, const Op*> t;
        for (const auto& primitive : language().all())
            if (facts(*primitive).of_numbers) t[facts(*primitive).on_tensors] = primitive.get();
        return t;
    }();
    if (auto found = table.find(&op); found != table.end()) return *found->second;
    throw state_error(op.name(), "is no arithmetic on plain numbers");
}

bool is_number_primitive(const Op& op) { return facts(op).compute != nullptr; }

Value run_number(const Op& op, std::span<const Value> args) {
    const NumberFn f = facts(op).compute;
    if (!f) throw state_error(op.name(), "is not a primitive on numbers");
    if (args.size() != op.signature.params.size())
        throw state_error(op.name(), str("takes ", op.signature.params.size(), " numbers, not ", args.size()));
    for (const Value& v : args)
        if (!v.is_number())
            throw argument_error("", str("attempt to perform arithmetic on a ", kind_name(v), " value"));
    return f(args.data());
}

// Arithmetic on plain numbers alone, without metamethods, of which the derivatives of Lua's arithmetic and math library
// consist. The set is closed under differentiation (jit/autodiff/number_rules.cpp).
void add_number_primitives(Rows& r) {
    // Concatenation and lengths are not about numbers.
    for (Facts& f : r.facts)
        if (f.operation < Operation::concat) f.compute = kOperations[static_cast<size_t>(f.operation)];
    r.number("num_add(a: any, b: any)", "a + b of numbers.", add, "add");
    r.number("num_sub(a: any, b: any)", "a - b of numbers.", sub, "sub");
    r.number("num_mul(a: any, b: any)", "a * b of numbers.", mul, "mul");
    r.number("num_div(a: any, b: any)", "a / b of numbers.", div, "div", rules::num_div);
    r.number("num_mod(a: any, b: any)", "a % b of numbers.", mod, "remainder", rules::num_mod);
    r.number("num_pow(a: any, b: any)", "a ^ b of numbers.", pow, "pow", rules::num_pow);
    r.number("num_floor_div(a: any, b: any)", "a // b of numbers.", floor_div, "floor_divide");
    r.number("num_neg(a: any)", "-a of a number.", neg, "neg");
    r.number("num_abs(a: any)", "math.abs(a).", abs, "abs");
    r.number("num_sign(a: any)", "-1.0, 0.0 or 1.0; NaN of NaN.", sign, "sign");
    r.number("num_floor(a: any)", "math.floor(a).", floor, "floor");
    r.number("num_ceil(a: any)", "math.ceil(a).", ceil, "ceil");
    r.number("num_trunc(a: any)", "The first result of math.modf(a).", trunc, "trunc");
    r.number("num_frac(a: any)", "The second result of math.modf(a).", frac, "frac");
    r.number("num_fmod(a: any, b: any)", "math.fmod(a, b).", fmod, "fmod", rules::num_fmod);
    r.number("num_max(a: any, b: any)", "math.max(a, b).", max, "maximum", rules::num_max);
    r.number("num_min(a: any, b: any)", "math.min(a, b).", min, "minimum", rules::num_min);
    r.number("num_sqrt(a: any)", "math.sqrt(a).", function<std::sqrt>, "sqrt");
    r.number("num_exp(a: any)", "math.exp(a).", function<std::exp>, "exp");
    r.number("num_log(a: any)", "math.log(a).", function<std::log>, "log");
    r.number("num_log_base(a: any, base: any)", "math.log(a, base).", log_base, nullptr, rules::num_log_base);
    r.number("num_sin(a: any)", "math.sin(a).", function<std::sin>, "sin");
    r.number("num_cos(a: any)", "math.cos(a).", function<std::cos>, "cos");
    r.number("num_tan(a: any)", "math.tan(a).", function<std::tan>, "tan");
    r.number("num_asin(a: any)", "math.asin(a).", function<std::asin>, "asin", rules::num_asin);
    r.number("num_acos(a: any)", "math.acos(a).", function<std::acos>, "acos", rules::num_acos);
    r.number(
        "num_atan(a: any)", "math.atan(a).", [](const Value* v) { return Value(std::atan2(v[0].number(), 1.0)); },
        "atan", rules::num_atan);
    r.number(
        "num_atan2(y: any, x: any)", "math.atan(y, x).",
        [](const Value* v) { return Value(std::atan2(v[0].number(), v[1].number())); }, "atan2", rules::num_atan2);
    r.number("num_sinh(a: any)", "The hyperbolic sine of a.", function<std::sinh>, "sinh");
    r.number("num_cosh(a: any)", "The hyperbolic cosine of a.", function<std::cosh>, "cosh");
    r.number("num_tanh(a: any)", "The hyperbolic tangent of a.", function<std::tanh>, "tanh", rules::num_tanh);
    r.number(
        "num_deg(a: any)", "math.deg(a).",
        [](const Value* v) { return Value(v[0].number() * (180.0 / std::numbers::pi)); }, "rad2deg");
    r.number(
        "num_rad(a: any)", "math.rad(a).",
        [](const Value* v) { return Value(v[0].number() * (std::numbers::pi / 180.0)); }, "deg2rad");
    r.number("num_equal(a: any, b: any)", "1 if a == b, otherwise 0.", equal_weight, "equal");
    r.number("num_less(a: any, b: any)", "1 if a < b, otherwise 0.", less_weight, "less");
    r.number("num_less_equal(a: any, b: any)", "1 if a <= b, otherwise 0.", less_equal_weight, "less_equal");
    r.number("num_select(condition: any, a: any, b: any)", "b if the condition is 0, otherwise a.", select, "where",
             rules::num_select);
    r.add("for_turns(start: any, limit: any, step: any)", "How many turns a numeric loop over integers has.",
          {.compute = [](const Value* v) { return wrapped(turns_of(v[0].integer(), v[1], v[2].integer()).count); }});
}

std::string number_text(const Value& number) {
    if (number.kind() == Value::Kind::integer) return std::to_string(number.integer());
    char text[40];
    std::snprintf(text, sizeof text, "%.14g", number.number());
    const bool integral = std::string_view(text).find_first_not_of("-0123456789") == std::string_view::npos;
    return integral ? std::string(text) + ".0" : text;
}

}  // namespace lunaria::lua
