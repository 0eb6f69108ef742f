#include "jit/runtime/natives.h"

#include <cinttypes>
#include <cmath>
#include <limits>

#include "core/tensor/tensor_text.h"
#include "jit/frontend/literals.h"
#include "jit/language.h"
#include "jit/number.h"

namespace lunaria::runtime {

using vm::PlainHost;
using vm::Values;

namespace {

using Table = PlainHost::Table;

std::optional<Value> number_argument(const Value& v) {
    if (v.is_number()) return v;
    if (v.kind() != Value::Kind::string) return std::nullopt;
    const auto number = lua::read_number(v.string());
    if (!number) return std::nullopt;
    if (const auto* i = std::get_if<int64_t>(&*number)) return Value(*i);
    return Value(std::get<double>(*number));
}

// The integer that a number is, where it is one.
std::optional<int64_t> whole(const Value& v) {
    if (v.kind() == Value::Kind::integer) return v.integer();
    const double x = v.number();
    if (x >= -0x1p63 && x < 0x1p63 && x == std::floor(x)) return static_cast<int64_t>(x);
    return std::nullopt;
}

// A primitive on numbers at the arguments; texts count as floats.
Value at_numbers(const Arguments& a, const char* primitive) {
    const Op& op = lua::primitive(primitive);
    const size_t count = op.signature.params.size();
    Value numbers[2];
    for (size_t i = 0; i < count; ++i)
        numbers[i] = a.at(i).kind() == Value::Kind::integer ? a.at(i) : Value(a.number(i));
    return lua::run_number(op, {numbers, count});
}

LibraryBody of_numbers(const char* name, const char* primitive) {
    return {"math", name, [name, primitive](std::span<const Value> args) {
                return Values{at_numbers(Arguments(name, args), primitive)};
            }};
}

LibraryBody least(const char* name, bool most) {
    return {"math", name, [name, most](std::span<const Value> args) {
                const Arguments a(name, args);
                static const Op& less = lua::primitive("less");
                Value best = number_argument(a.any(0)).value_or(Value());
                for (size_t i = 0; i < a.size(); ++i) {
                    a.number(i);
                    const Value x = *number_argument(a.at(i)), pair[] = {most ? best : x, most ? x : best};
                    if (lua::run_number(less, pair).boolean()) best = x;
                }
                return Values{best};
            }};
}

Values logarithm(std::span<const Value> args) {
    const Arguments a("log", args);
    return {at_numbers(a, a.has(1) ? "num_log_base" : "num_log")};
}

Values arc_tangent(std::span<const Value> args) {
    const Arguments a("atan", args);
    return {at_numbers(a, a.has(1) ? "num_atan2" : "num_atan")};
}

Values parts_of(std::span<const Value> args) {
    const Arguments a("modf", args);
    return {at_numbers(a, "num_trunc"), at_numbers(a, "num_frac")};
}

Values to_integer(std::span<const Value> args) {
    const Arguments a("tointeger", args);
    const auto number = number_argument(a.any(0));
    const auto i = number ? whole(*number) : std::nullopt;
    return {i ? Value(*i) : Value()};
}

Values math_type(std::span<const Value> args) {
    const Value& v = Arguments("type", args).any(0);
    if (!v.is_number()) return {Value()};
    return {Value(v.kind() == Value::Kind::integer ? "integer" : "float")};
}

// A digit of a numeral in a base up to 36; beyond it, what is none.
int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

Values to_number(std::span<const Value> args) {
    const Arguments a("tonumber", args);
    if (!a.has(1)) return {number_argument(a.any(0)).value_or(Value())};
    const int64_t base = a.integer(1);
    if (a.at(0).kind() != Value::Kind::string) a.fail(0, str("string expected, got ", PlainHost::type_name(a.at(0))));
    if (base < 2 || base > 36) a.fail(1, "base out of range");
    constexpr std::string_view kBlanks = " \f\n\r\t\v";
    std::string_view text = a.at(0).string();
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    uint64_t n = 0;
    for (char c : text) {
        if (digit_of(c) >= base) return {Value()};
        n = n * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit_of(c));
    }
    if (text.empty()) return {Value()};
    return {Value(static_cast<int64_t>(negative ? -n : n))};
}

Values type_of_value(std::span<const Value> args) {
    return {Value(PlainHost::type_name(Arguments("type", args).any(0)))};
}

Values print_values(std::span<const Value> args) {
    std::string line;
    for (const Value& v : args) line += (line.empty() && &v == args.data() ? "" : "\t") + text_of(v);
    std::fputs((line + "\n").c_str(), stdout);
    return {};
}

Values select_values(std::span<const Value> args) {
    const Arguments a("select", args);
    const auto given = static_cast<int64_t>(args.size()) - 1;
    if (a.any(0).kind() == Value::Kind::string && a.at(0).string() == "#") return {Value(given)};
    int64_t n = a.integer(0);
    if (n < 0) n = given + n + 1;
    if (n < 1) a.fail(0, "index out of range");
    Values rest;
    for (int64_t i = n; i <= given; ++i) rest.push_back(args[static_cast<size_t>(i)]);
    return rest;
}

Values next_field(std::span<const Value> args) {
    const Arguments a("next", args);
    const Table& t = a.table(0);
    const Value key = t.next(a.at(1));
    if (key.is_nil()) return {Value()};
    return {key, t.get(key)};
}

Values fail_assertion(std::span<const Value> args) {
    const Arguments a("assert", args);
    const Value& v = a.any(0);
    if (!v.is_nil() && !(v.kind() == Value::Kind::boolean && !v.boolean())) return Values(args);
    if (args.size() == 1) throw argument_error("", "assertion failed!");
    throw vm::Raised{args[1]};
}

Values set_metatable(std::span<const Value> args) {
    const Arguments a("setmetatable", args);
    Table& t = a.table(0);
    if (a.size() < 2 || (a.has(1) && !vm::object_as<Table>(a.at(1)))) a.fail(1, "nil or table expected");
    if (const auto* old = vm::object_as<Table>(t.metatable); old && !old->get(Value("__metatable")).is_nil())
        throw argument_error("", "cannot change a protected metatable");
    t.metatable = a.at(1);
    return {args[0]};
}

Values get_metatable(std::span<const Value> args) {
    const Table* t = vm::object_as<Table>(Arguments("getmetatable", args).any(0));
    if (!t) return {Value()};
    const Table* meta = vm::object_as<Table>(t->metatable);
    const Value guarded = meta ? meta->get(Value("__metatable")) : Value();
    return {guarded.is_nil() ? t->metatable : guarded};
}

Values raw_length(std::span<const Value> args) {
    const Arguments a("rawlen", args);
    if (a.at(0).kind() == Value::Kind::string) return {Value(static_cast<int64_t>(a.at(0).string().size()))};
    if (!vm::object_as<Table>(a.at(0))) a.fail(0, "table or string expected");
    return {Value(a.table(0).length())};
}

bool raw_equal(const Value& a, const Value& b) {
    if (a.is_number() && b.is_number()) {
        const Value pair[] = {a, b};
        static const Op& equal = lua::primitive("equal");
        return lua::run_number(equal, pair).boolean();
    }
    return vm::KeyEqual()(a, b);
}

}  // namespace

const Value& Arguments::at(size_t i) const {
    static const Value kNil;
    return i < args_.size() ? args_[i] : kNil;
}

const Value& Arguments::any(size_t i) const {
    if (i >= args_.size()) fail(i, "value expected");
    return args_[i];
}

void Arguments::fail(size_t i, std::string_view what) const {
    throw argument_error("", str("bad argument #", i + 1, " to '", function_, "' (", what, ")"));
}

void Arguments::wrong_type(size_t i, std::string_view wanted) const {
    fail(i, str(wanted, " expected, got ", i < args_.size() ? PlainHost::type_name(args_[i]) : "no value"));
}

double Arguments::number(size_t i) const {
    if (const auto number = number_argument(at(i))) return number->number();
    wrong_type(i, "number");
}

int64_t Arguments::integer(size_t i) const {
    const auto number = number_argument(at(i));
    if (!number) wrong_type(i, "number");
    if (const auto n = whole(*number)) return *n;
    fail(i, "number has no integer representation");
}

std::string Arguments::text(size_t i) const {
    if (at(i).kind() == Value::Kind::string) return at(i).string();
    if (at(i).is_number()) return lua::number_text(at(i));
    wrong_type(i, "string");
}

Table& Arguments::table(size_t i) const {
    if (auto* t = vm::object_as<Table>(at(i))) return *t;
    wrong_type(i, "table");
}

std::string text_of(const Value& v) {
    switch (v.kind()) {
        case Value::Kind::nil:
            return "nil";
        case Value::Kind::boolean:
            return v.boolean() ? "true" : "false";
        case Value::Kind::integer:
        case Value::Kind::number:
            return lua::number_text(v);
        case Value::Kind::string:
            return v.string();
        case Value::Kind::dtype:
            return dtype_text(v.dtype());
        case Value::Kind::tensor:
            return tensor_text(v.tensor());
        default: {
            char address[24];
            std::snprintf(address, sizeof address, "0x%012" PRIxPTR, reinterpret_cast<uintptr_t>(vm::identity_of(v)));
            return PlainHost::type_name(v) + ": " + address;
        }
    }
}

std::vector<LibraryBody> basic_functions() {
    return {
        of_numbers("abs", "num_abs"),
        of_numbers("acos", "num_acos"),
        of_numbers("asin", "num_asin"),
        of_numbers("ceil", "num_ceil"),
        of_numbers("cos", "num_cos"),
        of_numbers("deg", "num_deg"),
        of_numbers("exp", "num_exp"),
        of_numbers("floor", "num_floor"),
        of_numbers("fmod", "num_fmod"),
        of_numbers("rad", "num_rad"),
        of_numbers("sin", "num_sin"),
        of_numbers("sqrt", "num_sqrt"),
        of_numbers("tan", "num_tan"),
        least("max", true),
        least("min", false),
        {"math", "atan", arc_tangent},
        {"math", "log", logarithm},
        {"math", "modf", parts_of},
        {"math", "tointeger", to_integer},
        {"math", "type", math_type},
        {"math", "ult",
         [](std::span<const Value> args) {
             const Arguments a("ult", args);
             return Values{Value(static_cast<uint64_t>(a.integer(0)) < static_cast<uint64_t>(a.integer(1)))};
         }},
        {"_G", "assert", fail_assertion},
        {"_G", "getmetatable", get_metatable},
        {"_G", "next", next_field},
        {"_G", "print", print_values},
        {"_G", "rawequal",
         [](std::span<const Value> args) {
             const Arguments a("rawequal", args);
             return Values{Value(raw_equal(a.any(0), a.any(1)))};
         }},
        {"_G", "rawget",
         [](std::span<const Value> args) {
             const Arguments a("rawget", args);
             return Values{a.table(0).get(a.any(1))};
         }},
        {"_G", "rawlen", raw_length},
        {"_G", "rawset",
         [](std::span<const Value> args) {
             const Arguments a("rawset", args);
             a.table(0).set(a.any(1), a.any(2));
             return Values{args[0]};
         }},
        {"_G", "select", select_values},
        {"_G", "setmetatable", set_metatable},
        {"_G", "tonumber", to_number},
        {"_G", "tostring",
         [](std::span<const Value> args) { return Values{Value(text_of(Arguments("tostring", args).any(0)))}; }, false},
        {"_G", "type", type_of_value}};
}

std::vector<LibraryBody> table_functions() {
    // The machine runs the texts of the adjoints in place of these; what comes here has arguments that they do not
    // take.
    const auto refuses = [](const char* name, const char* what) {
        return LibraryBody{"table", name,
                           [name, what](std::span<const Value> args) -> Values {
                               Arguments(name, args).table(0);
                               throw argument_error("", str("wrong arguments to '", name, "': ", what));
                           },
                           false};
    };
    return {{"table", "concat",
             [](std::span<const Value> args) {
                 const Arguments a("concat", args);
                 const Table& t = a.table(0);
                 const std::string between = a.has(1) ? a.text(1) : "";
                 std::string all;
                 const int64_t from = a.integer(2, 1), to = a.integer(3, a.has(3) ? 0 : t.length());
                 for (int64_t i = from; i <= to; ++i) {
                     const Value v = t.get(Value(i));
                     if (v.kind() != Value::Kind::string && !v.is_number())
                         throw argument_error("", str("invalid value (at index ", i, ") in table for 'concat'"));
                     all += (i > from ? between : "") + text_of(v);
                     if (i == std::numeric_limits<int64_t>::max()) break;
                 }
                 return Values{Value(all)};
             }},
            {"table", "pack",
             [](std::span<const Value> args) {
                 Value t = PlainHost::table({});
                 auto& list = *vm::object_as<Table>(t);
                 for (size_t i = 0; i < args.size(); ++i) list.set(Value(static_cast<int64_t>(i) + 1), args[i]);
                 list.set(Value("n"), Value(static_cast<int64_t>(args.size())));
                 return Values{t};
             }},
            {"table", "unpack",
             [](std::span<const Value> args) {
                 const Arguments a("unpack", args);
                 const Table& t = a.table(0);
                 const int64_t from = a.integer(1, 1), to = a.integer(2, a.has(2) ? 0 : t.length());
                 if (from <= to && static_cast<uint64_t>(to) - static_cast<uint64_t>(from) >= 1000000)
                     throw argument_error("", "too many results to unpack");
                 Values list;
                 for (int64_t i = from; i <= to; ++i) list.push_back(t.get(Value(i)));
                 return list;
             }},
            refuses("insert", "the position is out of bounds, or there are too many"),
            refuses("remove", "the position is out of bounds"),
            refuses("move", "positions are integers"),
            refuses("sort", "the order is a function")};
}

}  // namespace lunaria::runtime
