// Derivatives of programs that are texts of the IR, against closed forms and differences.
#include "jit/autodiff/transform.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/device.h"
#include "tests/jit/vm/text_program.h"

namespace lunaria::testing {
namespace {

class TransformTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

Value vector(std::initializer_list<double> values) {
    Tensor t = Tensor::empty(DType::f64, {static_cast<int64_t>(values.size())});
    int64_t i = 0;
    for (double v : values) t.set_at(i++, v);
    return Value(t);
}

void expect_vector(const Value& got, std::initializer_list<double> expected) {
    ASSERT_TRUE(got.is_tensor()) << to_string(got);
    ASSERT_EQ(got.tensor().size(), static_cast<int64_t>(expected.size()));
    int64_t i = 0;
    for (double v : expected) EXPECT_NEAR(got.tensor().at(i++), v, 1e-12 * std::max(1.0, std::abs(v)));
}

// Values and derivatives of first and second order of a function of the argument at `position`.
void expect_slopes(TextProgram& program, std::initializer_list<Value> args, int64_t position, double value,
                   double slope, double bend) {
    const auto [y, d] = program.gradient(args, position);
    EXPECT_NEAR(y.number(), value, 1e-12 * std::max(1.0, std::abs(value)));
    if (d.is_nil() && slope == 0) return;  // nothing depends on it
    ASSERT_TRUE(d.is_number()) << to_string(d);
    EXPECT_NEAR(d.number(), slope, 1e-12 * std::max(1.0, std::abs(slope)));
    const Value second = program.second_derivative(args, position);
    EXPECT_NEAR(second.is_nil() ? 0 : second.number(), bend, 1e-11 * std::max(1.0, std::abs(bend)));
}

TEST_F(TransformTest, straight_lines) {
    // x^3 / y - x
    TextProgram program(
        "graph f(%0 x: ?, %1 y: ?) {\n"
        "  %2 = pow(%0, 3) : ?\n"
        "  %3 = div(%2, %1) : ?\n"
        "  %4 = sub(%3, %0) : ?\n"
        "  return {%4}\n"
        "}\n");
    for (double x : {-2.0, 0.5, 3.0}) {
        const double y = 4;
        expect_slopes(program, {Value(x), Value(y)}, 0, x * x * x / y - x, 3 * x * x / y - 1, 6 * x / y);
        expect_slopes(program, {Value(x), Value(y)}, 1, x * x * x / y - x, -x * x * x / y / y,
                      2 * x * x * x / y / y / y);
    }
}

TEST_F(TransformTest, branches) {
    // x < 1 and x^2 or 2 x - 1, whose second derivative has a jump.
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  graph f.then(%1 x: ?) {\n"
        "    %2 = mul(%1, %1) : ?\n"
        "    %3 = @f.join(%2) : ?\n"
        "    return %3\n"
        "  }\n"
        "  graph f.else(%4 x: ?) {\n"
        "    %5 = mul(2, %4) : ?\n"
        "    %6 = sub(%5, 1) : ?\n"
        "    %7 = @f.join(%6) : ?\n"
        "    return %7\n"
        "  }\n"
        "  graph f.join(%8 y: ?) {\n"
        "    return {%8}\n"
        "  }\n"
        "  %9 = less(%0, 1) : ?\n"
        "  %10 = branch(%9, @f.then, {%0}, @f.else, {%0}) : ?\n"
        "  return %10\n"
        "}\n");
    expect_slopes(program, {Value(0.25)}, 0, 0.0625, 0.5, 2);
    expect_slopes(program, {Value(3.0)}, 0, 5, 2, 0);
}

// x ^ n by a loop, whose number of turns depends on an argument.
constexpr const char* kPower =
    "graph f(%0 x: ?, %1 n: ?) {\n"
    "  graph f.loop(%2 x: ?, %3 n: ?, %4 y: ?) {\n"
    "    %5 = less(0, %3) : ?\n"
    "    %6 = branch(%5, @f.body, {%2, %3, %4}, @f.end, {%4}) : ?\n"
    "    return %6\n"
    "  }\n"
    "  graph f.body(%7 x: ?, %8 n: ?, %9 y: ?) {\n"
    "    %10 = mul(%9, %7) : ?\n"
    "    %11 = sub(%8, 1) : ?\n"
    "    %12 = @f.loop(%7, %11, %10) : ?\n"
    "    return %12\n"
    "  }\n"
    "  graph f.end(%13 y: ?) {\n"
    "    return {%13}\n"
    "  }\n"
    "  %14 = @f.loop(%0, %1, 1) : ?\n"
    "  return %14\n"
    "}\n";

TEST_F(TransformTest, loops) {
    TextProgram program(kPower);
    for (int n : {0, 1, 2, 7})
        for (double x : {-1.5, 0.75, 2.0})
            expect_slopes(program, {Value(x), Value(n)}, 0, std::pow(x, n), n == 0 ? 0 : n * std::pow(x, n - 1),
                          n < 2 ? 0 : n * (n - 1) * std::pow(x, n - 2));
    // The residuals of a long loop are on no stack.
    EXPECT_NEAR(program.gradient({Value(1.0), Value(100000)}).second.number(), 100000, 1e-6);
}

TEST_F(TransformTest, recursion) {
    // f(x, n) = n == 0 and x or x * f(x, n - 1)
    TextProgram program(
        "graph f(%0 x: ?, %1 n: ?) {\n"
        "  graph f.then(%2 x: ?) {\n"
        "    return {%2}\n"
        "  }\n"
        "  graph f.else(%3 f: ?, %4 x: ?, %5 n: ?) {\n"
        "    %6 = sub(%5, 1) : ?\n"
        "    %7 = call(%3, {%4, %6}) : ?\n"
        "    %8 = result(%7, 0) : ?\n"
        "    %9 = mul(%4, %8) : ?\n"
        "    return {%9}\n"
        "  }\n"
        "  %10 = current_function() : ?\n"
        "  %11 = equal(%1, 0) : ?\n"
        "  %12 = branch(%11, @f.then, {%0}, @f.else, {%10, %0, %1}) : ?\n"
        "  return %12\n"
        "}\n");
    expect_slopes(program, {Value(1.5), Value(3)}, 0, std::pow(1.5, 4), 4 * std::pow(1.5, 3), 12 * 1.5 * 1.5);
}

TEST_F(TransformTest, closures_and_their_free_variables) {
    // g(y) = a * y + x where a is a cell that g doubles; f = g(x) + g(1): a starts as x.
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  graph g(%1 a: ?, %2 x: ?, %3 y: ?) captures 2 {\n"
        "    %4 = cell_get(%1) : ?\n"
        "    %5 = mul(%4, %3) : ?\n"
        "    %6 = mul(2, %4) : ?\n"
        "    %7 = cell_set(%1, %6) : ?\n"
        "    %8 = add(%5, %2) : ?\n"
        "    return {%8}\n"
        "  }\n"
        "  %9 = cell(%0) : ?\n"
        "  %10 = closure(@g, {%9, %0}) : ?\n"
        "  %11 = call(%10, {%0}) : ?\n"
        "  %12 = call(%10, {1}) : ?\n"
        "  %13 = result(%11, 0) : ?\n"
        "  %14 = result(%12, 0) : ?\n"
        "  %15 = add(%13, %14) : ?\n"
        "  return {%15}\n"
        "}\n");
    // x * x + x + 2 x + x
    for (double x : {-1.0, 2.5}) expect_slopes(program, {Value(x)}, 0, x * x + 4 * x, 2 * x + 4, 2);
}

TEST_F(TransformTest, tables_that_are_written) {
    // t = {x, k = x * x}; t[1] = t.k * t[1]; t.k = 3; f = t[1] + t.k * x
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  %1 = mul(%0, %0) : ?\n"
        "  %2 = table({1, \"k\"}, {%0, %1}, 1, nil) : ?\n"
        "  %3 = index(%2, \"k\") : ?\n"
        "  %4 = index(%2, 1) : ?\n"
        "  %5 = mul(%3, %4) : ?\n"
        "  %6 = set_index(%2, 1, %5) : ?\n"
        "  %7 = set_index(%2, \"k\", 3) : ?\n"
        "  %8 = index(%2, 1) : ?\n"
        "  %9 = index(%2, \"k\") : ?\n"
        "  %10 = mul(%9, %0) : ?\n"
        "  %11 = add(%8, %10) : ?\n"
        "  return {%11}\n"
        "}\n");
    for (double x : {-1.0, 2.0}) expect_slopes(program, {Value(x)}, 0, x * x * x + 3 * x, 3 * x * x + 3, 6 * x);
}

TEST_F(TransformTest, several_results_and_lists_of_open_length) {
    // g(a, b, ...) gives a * b and all further arguments; f = g(x, x, 5, x): first * third result.
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  graph g(%1 a: ?, %2 b: ?, %3 ...: ?) variadic {\n"
        "    %4 = mul(%1, %2) : ?\n"
        "    %5 = spread({%4}, %3) : ?\n"
        "    return %5\n"
        "  }\n"
        "  %6 = closure(@g, {}) : ?\n"
        "  %7 = call(%6, {%0, %0, 5, %0}) : ?\n"
        "  %8 = result(%7, 0) : ?\n"
        "  %9 = results_from(%7, 1) : ?\n"
        "  %10 = result(%9, 1) : ?\n"
        "  %11 = mul(%8, %10) : ?\n"
        "  return {%11, %8}\n"
        "}\n");
    for (double x : {-2.0, 1.5}) expect_slopes(program, {Value(x)}, 0, x * x * x, 3 * x * x, 6 * x);
}

TEST_F(TransformTest, functions_as_arguments) {
    // twice(g)(x) with g(y) = y * y: x^4.
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  graph square(%1 y: ?) {\n"
        "    %2 = mul(%1, %1) : ?\n"
        "    return {%2}\n"
        "  }\n"
        "  graph twice(%3 g: ?, %4 y: ?) captures 1 {\n"
        "    %5 = call(%3, {%4}) : ?\n"
        "    %6 = call(%3, %5) : ?\n"
        "    return %6\n"
        "  }\n"
        "  %7 = closure(@square, {}) : ?\n"
        "  %8 = closure(@twice, {%7}) : ?\n"
        "  %9 = call(%8, {%0}) : ?\n"
        "  return %9\n"
        "}\n");
    for (double x : {-1.25, 2.0}) expect_slopes(program, {Value(x)}, 0, x * x * x * x, 4 * x * x * x, 12 * x * x);
}

TEST_F(TransformTest, tensors) {
    // sum(tanh(x) * x) and its derivative t + x (1 - t^2).
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.tanh(%0) : ?\n"
        "  %2 = mul(%1, %0) : ?\n"
        "  %3 = call(ops.sum, {%2}) : ?\n"
        "  %4 = result(%3, 0) : ?\n"
        "  return {%4}\n"
        "}\n");
    const auto [y, d] = program.gradient({vector({0.5, -1.0})});
    auto f = [](double x) { return std::tanh(x) * x; };
    auto slope = [](double x) { return std::tanh(x) + x * (1 - std::tanh(x) * std::tanh(x)); };
    expect_vector(y, {f(0.5) + f(-1.0)});
    expect_vector(d, {slope(0.5), slope(-1.0)});
}

TEST_F(TransformTest, tensors_in_loops_twice) {
    // y = y * x, n times, and its sum: n x^(n-1), then by the product with a vector v: n (n-1) x^(n-2) v.
    TextProgram program(
        "graph f(%0 gradient: ?, %1 v: ?, %2 x: ?, %3 n: ?) {\n"
        "  graph power(%4 x: ?, %5 n: ?) {\n"
        "    graph power.loop(%6 x: ?, %7 n: ?, %8 y: ?) {\n"
        "      %9 = less(0, %7) : ?\n"
        "      %10 = branch(%9, @power.body, {%6, %7, %8}, @power.end, {%8}) : ?\n"
        "      return %10\n"
        "    }\n"
        "    graph power.body(%11 x: ?, %12 n: ?, %13 y: ?) {\n"
        "      %14 = mul(%13, %11) : ?\n"
        "      %15 = sub(%12, 1) : ?\n"
        "      %16 = @power.loop(%11, %15, %14) : ?\n"
        "      return %16\n"
        "    }\n"
        "    graph power.end(%17 y: ?) {\n"
        "      %18 = call(ops.sum, {%17}) : ?\n"
        "      return %18\n"
        "    }\n"
        "    %19 = @power.loop(%4, %5, 1.0) : ?\n"
        "    return %19\n"
        "  }\n"
        "  %20 = closure(@power, {}) : ?\n"
        "  %21 = call(%0, {\"grad\", %20, 0, %2, %3}) : ?\n"
        "  %22 = result(%21, 1) : ?\n"
        "  %23 = mul(%22, %1) : ?\n"
        "  %24 = call(ops.sum, {%23}) : ?\n"
        "  return %24\n"
        "}\n");
    const Value gradient = function_value(vm::prelude(vm::Prelude::gradient));
    const auto [y, d] = program.gradient({gradient, vector({1, -2}), vector({0.5, 3}), Value(4)}, 2);
    expect_vector(y, {4 * 0.125 - 2 * 4 * 27});
    expect_vector(d, {12 * 0.25, -2 * 12 * 9.0});
}

TEST_F(TransformTest, parts_of_tensors) {
    // x[1] * x[2] + x[1]
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  %1 = index(%0, 1) : ?\n"
        "  %2 = index(%0, 2) : ?\n"
        "  %3 = mul(%1, %2) : ?\n"
        "  %4 = add(%3, %1) : ?\n"
        "  return {%4}\n"
        "}\n");
    expect_vector(program.gradient({vector({7, 2, 3})}).second, {0, 4, 2});
}

TEST_F(TransformTest, what_ran_before_an_error) {
    // t.y = x * x; pcall(function() t.y = t.y * x; error("stop"); t.y = 0 end); f = t.y
    TextProgram program(
        "graph f(%0 pcall: ?, %1 error: ?, %2 x: ?) {\n"
        "  graph risky(%3 error: ?, %4 t: ?, %5 x: ?) captures 3 {\n"
        "    %6 = index(%4, \"y\") : ?\n"
        "    %7 = mul(%6, %5) : ?\n"
        "    %8 = set_index(%4, \"y\", %7) : ?\n"
        "    %9 = call(%3, {\"stop\"}) : ?\n"
        "    %10 = set_index(%4, \"y\", 0) : ?\n"
        "    return {}\n"
        "  }\n"
        "  %11 = mul(%2, %2) : ?\n"
        "  %12 = table({\"y\"}, {%11}, 0, nil) : ?\n"
        "  %13 = closure(@risky, {%1, %12, %2}) : ?\n"
        "  %14 = call(%0, {%13}) : ?\n"
        "  %15 = index(%12, \"y\") : ?\n"
        "  return {%15}\n"
        "}\n");
    const Value pcall = function_value(vm::prelude(vm::Prelude::pcall)),
                error = function_value(vm::prelude(vm::Prelude::error));
    for (double x : {-1.0, 2.0}) expect_slopes(program, {pcall, error, Value(x)}, 2, x * x * x, 3 * x * x, 6 * x);
}

Value native(vm::NativeFunction::Kind kind) { return function_value(vm::native_function(kind, Value())); }

TEST_F(TransformTest, coroutines) {
    // It yields x * x, is given the square of that, and returns the product of all it knows.
    TextProgram program(
        "graph f(%0 create: ?, %1 resume: ?, %2 yield: ?, %3 x: ?) {\n"
        "  graph part(%4 yield: ?, %5 x: ?) captures 1 {\n"
        "    %6 = mul(%5, %5) : ?\n"
        "    %7 = call(%4, {%6}) : ?\n"
        "    %8 = result(%7, 0) : ?\n"
        "    %9 = mul(%8, %5) : ?\n"
        "    return {%9}\n"
        "  }\n"
        "  %10 = closure(@part, {%2}) : ?\n"
        "  %11 = call(%0, {%10}) : ?\n"
        "  %12 = result(%11, 0) : ?\n"
        "  %13 = call(%1, {%12, %3}) : ?\n"
        "  %14 = result(%13, 1) : ?\n"
        "  %15 = mul(%14, %14) : ?\n"
        "  %16 = call(%1, {%12, %15}) : ?\n"
        "  %17 = result(%16, 1) : ?\n"
        "  return {%17}\n"
        "}\n");
    using Kind = vm::NativeFunction::Kind;
    const Value create = native(Kind::create), resume = native(Kind::resume), yield = native(Kind::yield);
    for (double x : {-1.0, 1.5})
        expect_slopes(program, {create, resume, yield, Value(x)}, 3, std::pow(x, 5), 5 * std::pow(x, 4),
                      20 * std::pow(x, 3));
}

TEST_F(TransformTest, the_result_has_to_be_a_scalar) {
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  return {%0}\n"
        "}\n");
    EXPECT_THROW(program.gradient({vector({1, 2})}), Error);
    EXPECT_THROW(program.gradient({Value("text")}), Error);
}

}  // namespace
}  // namespace lunaria::testing
