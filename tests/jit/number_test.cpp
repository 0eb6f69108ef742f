// Arithmetic on plain numbers against Lua itself, and its derivatives against finite differences.
#include "jit/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <lua.hpp>

#include "core/ir/printer.h"
#include "jit/autodiff/pullback.h"
#include "jit/language.h"
#include "tests/jit/autodiff/graph_runner.h"

namespace lunaria {
namespace {

using lua::primitive;
using lua::run_number;
using testing::cotangents_of_call;
using testing::GraphRun;

constexpr uint64_t kAll = ~uint64_t{0};
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min(), kLargest = std::numeric_limits<int64_t>::max();

struct Expression {
    const char *primitive, *lua;
};
constexpr Expression kExpressions[] = {
    {"add", "a + b"},
    {"sub", "a - b"},
    {"mul", "a * b"},
    {"div", "a / b"},
    {"mod", "a % b"},
    {"pow", "a ^ b"},
    {"floor_div", "a // b"},
    {"minus", "-a"},
    {"bit_and", "a & b"},
    {"bit_or", "a | b"},
    {"bit_xor", "a ~ b"},
    {"bit_not", "~a"},
    {"shift_left", "a << b"},
    {"shift_right", "a >> b"},
    {"equal", "a == b"},
    {"less", "a < b"},
    {"less_equal", "a <= b"},
    {"num_neg", "-a"},
    {"num_abs", "math.abs(a)"},
    {"num_floor", "math.floor(a)"},
    {"num_ceil", "math.ceil(a)"},
    {"num_trunc", "(math.modf(a))"},
    {"num_frac", "select(2, math.modf(a))"},
    {"num_fmod", "math.fmod(a, b)"},
    {"num_max", "math.max(a, b)"},
    {"num_min", "math.min(a, b)"},
    {"num_sqrt", "math.sqrt(a)"},
    {"num_exp", "math.exp(a)"},
    {"num_log", "math.log(a)"},
    {"num_log_base", "math.log(a, b)"},
    {"num_sin", "math.sin(a)"},
    {"num_cos", "math.cos(a)"},
    {"num_tan", "math.tan(a)"},
    {"num_asin", "math.asin(a)"},
    {"num_acos", "math.acos(a)"},
    {"num_atan", "math.atan(a)"},
    {"num_atan2", "math.atan(a, b)"},
    {"num_deg", "math.deg(a)"},
    {"num_rad", "math.rad(a)"},
};

// A value as text that tells its kind and every bit.
std::string exactly(const Value& v) {
    if (v.kind() == Value::Kind::boolean) return v.boolean() ? "true" : "false";
    if (v.kind() == Value::Kind::integer) return std::to_string(v.integer());
    char text[64];
    std::snprintf(text, sizeof text, "%a", v.number());
    return std::isnan(v.number()) ? "float nan" : str("float ", text);
}

std::string by_lua(lua_State* L, const char* expression, const std::vector<Value>& operands) {
    std::string code = str("local a, b = ...; return ", expression);
    if (luaL_loadbuffer(L, code.data(), code.size(), "=x") != LUA_OK) return lua_tostring(L, -1);
    for (const Value& v : operands)
        if (v.kind() == Value::Kind::integer)
            lua_pushinteger(L, v.integer());
        else
            lua_pushnumber(L, v.number());
    if (lua_pcall(L, static_cast<int>(operands.size()), 1, 0) != LUA_OK) return lua_tostring(L, -1);
    if (lua_isboolean(L, -1)) return lua_toboolean(L, -1) ? "true" : "false";
    return exactly(lua_isinteger(L, -1) ? Value(int64_t{lua_tointeger(L, -1)}) : Value(lua_tonumber(L, -1)));
}

// Lua's errors name the place and the variable; ours leave both to the caller.
std::string without_place(std::string text) {
    if (text.rfind("x:1: ", 0) == 0) text = text.substr(5);
    for (const char* variable : {" (local 'a')", " (local 'b')"})
        if (size_t at = text.find(variable); at != std::string::npos) text.erase(at, std::strlen(variable));
    return text;
}

TEST(Number, arithmetic_is_that_of_lua) {
    lua_State* L = luaL_newstate();
    luaL_openlibs(L);
    double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Value> operands{int64_t{0},
                                int64_t{1},
                                int64_t{-1},
                                int64_t{7},
                                int64_t{-7},
                                int64_t{3},
                                int64_t{64},
                                int64_t{-65},
                                kSmallest,
                                kLargest,
                                int64_t{1} << 53,
                                (int64_t{1} << 53) + 1,
                                0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                0.5,
                                -2.5,
                                3.75,
                                2.0,
                                10.0,
                                -7.0,
                                0x1p53,
                                0x1p63,
                                -0x1p63,
                                1e300,
                                infinity,
                                -infinity,
                                nan,
                                0x1.fffffffffffffp62};
    for (const Expression& e : kExpressions) {
        const Op& op = primitive(e.primitive);
        bool unary = op.signature.params.size() == 1;
        for (const Value& a : operands)
            for (const Value& b : operands) {
                std::vector<Value> args = unary ? std::vector<Value>{a} : std::vector<Value>{a, b};
                std::string got;
                try {
                    got = exactly(run_number(op, args));
                } catch (const Error& error) {
                    got = error.what();
                }
                std::string want = without_place(by_lua(L, e.lua, args));
                lua_settop(L, 0);
                ASSERT_EQ(got, want) << e.lua << " with a = " << exactly(a) << ", b = " << exactly(b);
                if (unary) break;
            }
    }
    lua_close(L);
}

TEST(Number, other_operands_and_primitives_are_refused) {
    EXPECT_THROW(run_number(primitive("add"), std::vector<Value>{1, Value()}), Error);
    EXPECT_THROW(run_number(primitive("add"), std::vector<Value>{1}), Error);
    EXPECT_THROW(run_number(primitive("table"), std::vector<Value>{1, 2, 3, 4}), Error);
    EXPECT_FALSE(lua::is_number_primitive(primitive("index")));
    EXPECT_THROW(autodiff::number_pullback(primitive("index"), kAll), Error);
}

double value_of(const Op& op, std::vector<Value> at, size_t i, double step) {
    at[i] = Value(at[i].number() + step);
    return run_number(op, at).number();
}

// The cotangents of a call, and their own derivatives by the derivative of the rule.
TEST(Number, derivatives_agree_with_finite_differences_twice_over) {
    for (const auto& entry : lua::language().all()) {
        const Op& op = *entry;
        if (!lua::is_number_primitive(op) || op.name().rfind("bit_", 0) == 0 || op.name().rfind("shift_", 0) == 0)
            continue;
        if (op.name() == "equal" || op.name() == "less" || op.name() == "less_equal") continue;  // booleans
        for (double base : {0.3, 0.7}) {
            std::vector<Value> args;
            for (size_t i = 0; i < op.signature.params.size(); ++i) args.emplace_back(base + 0.11 * double(i));
            // The derivatives by argument i alone, as functions of it.
            for (size_t i = 0; i < args.size(); ++i) {
                auto slope_at = [&](double x) {
                    auto at = args;
                    at[i] = Value(x);
                    Value c = cotangents_of_call(op, at, run_number(op, at), Value(1.0))[i];
                    return c.is_nil() ? 0.0 : c.number();
                };
                double x = args[i].number(), h = 1e-5;
                double want = (value_of(op, args, i, h) - value_of(op, args, i, -h)) / (2 * h);
                EXPECT_NEAR(slope_at(x), want, 1e-7 * (1 + std::abs(want))) << op.name() << ", operand " << i;

                auto curvature_at = [&](double y) {
                    auto at = args;
                    at[i] = Value(y);
                    Value result = run_number(op, at);
                    auto rule = autodiff::number_pullback(op, uint64_t{1} << i);
                    if (rule->graph->result.items()[i].is_nil()) return 0.0;
                    std::vector<Value> one{1.0}, seed(args.size());
                    seed[i] = Value(1.0);
                    auto inputs = testing::pullback_inputs(rule->saved, rule->saved_item, at, result, one);
                    auto second = GraphRun(*rule->graph, inputs).backward(Value::list(seed));
                    double sum = 0, by_result = 0;
                    for (size_t k = 0; k < rule->saved.size(); ++k) {
                        if (second[k].is_nil()) continue;
                        if (rule->saved[k] == static_cast<int>(i)) sum += second[k].number();
                        if (rule->saved[k] == static_cast<int>(args.size())) by_result += second[k].number();
                    }
                    return sum + by_result * slope_at(y);
                };
                want = (slope_at(x + h) - slope_at(x - h)) / (2 * h);
                EXPECT_NEAR(curvature_at(x), want, 1e-6 * (1 + std::abs(want))) << op.name() << ", operand " << i;
            }
        }
    }
}

TEST(Number, powers_have_finite_slopes_at_zero) {
    auto slopes = [](double a, double b) {
        std::vector<Value> args{a, b};
        return cotangents_of_call(primitive("pow"), args, run_number(primitive("pow"), args), Value(1.0));
    };
    EXPECT_EQ(slopes(0, 0)[0].number(), 0);
    EXPECT_EQ(slopes(0, 1)[0].number(), 1);
    EXPECT_EQ(slopes(0, 2)[0].number(), 0);
    EXPECT_EQ(slopes(0, 2)[1].number(), 0);
    EXPECT_EQ(slopes(-2, 3)[0].number(), 12);
    EXPECT_TRUE(std::isnan(slopes(-2, 3)[1].number()));
}

TEST(Number, only_what_is_asked_for_is_computed_and_saved) {
    auto both = autodiff::number_pullback(primitive("mul"), 3), first = autodiff::number_pullback(primitive("mul"), 1);
    EXPECT_EQ(both->saved, (std::vector<int>{0, 1}));
    EXPECT_EQ(first->saved, std::vector<int>{1});
    EXPECT_TRUE(first->graph->result.items()[1].is_nil());
    EXPECT_EQ(first, autodiff::number_pullback(primitive("mul"), 1));
    EXPECT_EQ(autodiff::number_pullback(primitive("num_exp"), kAll)->saved, std::vector<int>{1});
    EXPECT_EQ(autodiff::number_pullback(primitive("add"), kAll)->saved, std::vector<int>{});
    for (const ir::Node* node : autodiff::number_pullback(primitive("pow"), 3)->graph->body())
        EXPECT_EQ(node->op->name().substr(0, 4), "num_");
}

}  // namespace
}  // namespace lunaria
