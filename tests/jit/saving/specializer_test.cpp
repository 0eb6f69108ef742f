// Programs that are texts of the IR, specialised for a file, written as MindIR, read back and run, from records too.
#include "jit/saving/specializer.h"

#include <gtest/gtest.h>

#include "core/io/file.h"
#include "core/ir/mindir.h"
#include "core/ir/verifier.h"
#include "jit/language.h"
#include "jit/saving/program_check.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using vm::PlainHost;

// A plain host has no libraries: functions of the outside have their own names.
class PlainKnown final : public Known {
  public:
    using Known::Known;
    std::optional<std::vector<Value>> called(const Value& f, const std::vector<Value>& args) override {
        std::optional<std::vector<Value>> results;
        const vm::Host::Protected outcome = host.call_protected([&] {
            if (!vm::object_as<vm::Closure>(f)) {
                results = host.call(f, args).vector();
                return;
            }
            vm::Machine machine(host);
            results = machine.run(f, args).vector();
        });
        return outcome.ok ? results : std::nullopt;
    }
    std::optional<DType> dtype_of(const Value&) override { return std::nullopt; }
    Content content_of(const Value& table) override {
        Content content;
        auto* t = vm::object_as<PlainHost::Table>(table);
        content.plain = t->metatable.is_nil();
        t->for_each([&](const Value& key, const Value& value) {
            content.keys.push_back(key);
            content.values.push_back(value);
        });
        return content;
    }
    std::optional<Named> named(const Value& f) override {
        const auto* function = vm::object_as<PlainHost::Function>(f);
        if (!function || function->native != Native::pure) return std::nullopt;
        return Named{function->name, Saved::folded, true};
    }
    bool is_ipairs_step(const Value&) override { return false; }
    Made made_by(const Value&) override { return {}; }
};

class SpecializerTest : public CpuTest {};

// An operator that a file refers to by its name.
Value operator_named_in(const std::string& name) {
    constexpr std::string_view kPrefix = "ms.ops.";
    const Op* op = name.starts_with(kPrefix) ? registry().find(name.substr(kPrefix.size())) : nullptr;
    return op ? PlainHost::operator_value(*op) : Value();
}

// A program as it comes from a file.
class SavedProgram {
  public:
    SavedProgram(PlainHost& host, const Value& f, std::vector<Value> example) : host_(host) {
        PlainKnown known(host);
        const std::unique_ptr<ir::Graph> program = specialize(known, f, example);
        const std::string bytes = ir::mindir_of(*program);
        parsed_ = ir::read_mindir(*memory_source("saved", bytes),
                                  {&lua::language(), nullptr, is_saved_primitive,
                                   [](const std::string& name) { return operator_named_in(name); }});
        check_program(parsed_);
        ir::verify(*parsed_.graph);
        function_ = vm::make_object<vm::Closure>(vm::function_of(*parsed_.graph), nullptr, vm::Values());
        recorded_.emplace(host_, function_);
    }
    // The results of the machine; those of the records must be the same.
    std::vector<Value> run(std::vector<Value> args) {
        vm::Machine machine(host_);
        std::vector<Value> expected = machine.run(function_, args).vector();
        const std::vector<Value> got = recorded_->call(args).vector();
        EXPECT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
            EXPECT_TRUE(same_value(got[i], expected[i])) << to_string(got[i]) << ", not " << to_string(expected[i]);
        return expected;
    }
    // How often the program and what it calls have that primitive.
    int count(std::string_view name) const {
        int n = count_in(*parsed_.graph, name);
        for (const auto& other : parsed_.others) n += count_in(*other, name);
        return n;
    }
    int64_t recordings() { return recorded_->compiled().recorded; }
    int64_t runs() { return recorded_->compiled().runs; }

  private:
    static int count_in(const ir::Graph& graph, std::string_view name) {
        int n = 0;
        for (const ir::Node* node : graph.body()) n += node->op && node->op->name() == name;
        for (const auto& inner : graph.inner()) n += count_in(*inner, name);
        return n;
    }
    PlainHost& host_;
    ir::ParsedGraph parsed_;
    Value function_;
    std::optional<trace::PlainFunction> recorded_;
};

Value capturing(const TextProgram& program, Value captured) {
    return vm::make_object<vm::Closure>(vm::function_of(program.graph()), nullptr, vm::Values{std::move(captured)});
}

// if options.train then return x * options.rate else return -x end
constexpr const char* kOptions =
    "graph f(%0 options: ?, %1 x: ?) captures 1 {\n"
    "  graph f.then(%2 options: ?, %3 x: ?) {\n"
    "    %4 = index(%2, \"rate\") : ?\n"
    "    %5 = mul(%3, %4) : ?\n"
    "    return {%5}\n"
    "  }\n"
    "  graph f.else(%6 x: ?) {\n"
    "    %7 = ops.neg(%6) : ?\n"
    "    return {%7}\n"
    "  }\n"
    "  %8 = index(%0, \"train\") : ?\n"
    "  %9 = branch(%8, @f.then, {%0, %1}, @f.else, {%1}) : ?\n"
    "  return %9\n"
    "}\n";

TEST_F(SpecializerTest, what_is_known_is_decided_when_the_program_is_saved) {
    TextProgram f(kOptions);
    const Value options = PlainHost::table({{Value("train"), Value(true)}, {Value("rate"), Value(4)}});
    SavedProgram saved(f.host(), capturing(f, options), {floats({1, 2})});
    EXPECT_EQ(saved.count("branch"), 0);
    EXPECT_EQ(saved.count("index"), 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(saved.run({floats({1, 2})})[0].tensor().at(1), 8);
    EXPECT_EQ(saved.recordings(), 1);
    EXPECT_EQ(saved.runs(), 2);
}

TEST_F(SpecializerTest, a_branch_by_an_argument_stays_a_branch) {
    TextProgram f(
        "graph f(%0 x: ?) {\n"
        "  graph f.then(%1 x: ?) {\n"
        "    %2 = ops.neg(%1) : ?\n"
        "    return {%2}\n"
        "  }\n"
        "  graph f.else(%3 x: ?) {\n"
        "    return {%3}\n"
        "  }\n"
        "  %7 = call(ops.sum, {%0}) : ?\n"
        "  %4 = result(%7, 0) : ?\n"
        "  %5 = less(%4, 0) : ?\n"
        "  %6 = branch(%5, @f.then, {%0}, @f.else, {%0}) : ?\n"
        "  return %6\n"
        "}\n");
    SavedProgram saved(f.host(), f.function(), {floats({1, 2})});
    EXPECT_EQ(saved.count("branch"), 1);
    for (double a : {3.0, -9.0, 4.0, -8.0}) EXPECT_EQ(saved.run({floats({a, 1})})[0].tensor().at(0), std::abs(a));
    EXPECT_EQ(saved.recordings(), 2);
}

TEST_F(SpecializerTest, a_loop_by_an_argument_stays_a_loop) {
    // for i = 1, n do x = tanh(x) end
    TextProgram f(
        "graph f(%0 x: ?, %1 n: ?) {\n"
        "  graph f.loop(%2 i: ?, %3 x: ?, %4 n: ?) {\n"
        "    %5 = less_equal(%2, %4) : ?\n"
        "    %6 = branch(%5, @f.body, {%2, %3, %4}, @f.end, {%3}) : ?\n"
        "    return %6\n"
        "  }\n"
        "  graph f.body(%7 i: ?, %8 x: ?, %9 n: ?) {\n"
        "    %10 = ops.tanh(%8) : ?\n"
        "    %11 = add(%7, 1) : ?\n"
        "    %12 = @f.loop(%11, %10, %9) : ?\n"
        "    return %12\n"
        "  }\n"
        "  graph f.end(%13 x: ?) {\n"
        "    return {%13}\n"
        "  }\n"
        "  %14 = @f.loop(1, %0, %1) : ?\n"
        "  return %14\n"
        "}\n");
    SavedProgram saved(f.host(), f.function(), {floats({0.5, 2}), Value(3)});
    EXPECT_EQ(saved.count("tanh"), 1);
    for (int n : {3, 5, 7, 4, 60, 0, 200}) saved.run({floats({0.5, 2}), Value(n)});
    EXPECT_LE(saved.recordings(), 5);
    EXPECT_EQ(saved.run({floats({0.5, 2}), Value(0)})[0].tensor().at(1), 2);
}

TEST_F(SpecializerTest, a_function_that_calls_itself_is_a_function_of_the_program) {
    TextProgram f(
        "graph f(%0 n: ?, %1 x: ?) {\n"
        "  graph f.then(%2 x: ?) {\n"
        "    return {%2}\n"
        "  }\n"
        "  graph f.else(%3 f: ?, %4 n: ?, %5 x: ?) {\n"
        "    %6 = sub(%4, 1) : ?\n"
        "    %7 = call(%3, {%6, %5}) : ?\n"
        "    %8 = result(%7, 0) : ?\n"
        "    %9 = add(%8, 1) : ?\n"
        "    return {%9}\n"
        "  }\n"
        "  %10 = current_function() : ?\n"
        "  %11 = equal(%0, 0) : ?\n"
        "  %12 = branch(%11, @f.then, {%1}, @f.else, {%10, %0, %1}) : ?\n"
        "  return %12\n"
        "}\n");
    SavedProgram saved(f.host(), f.function(), {Value(2), floats({1})});
    for (int n : {2, 5, 2, 5, 0}) EXPECT_EQ(saved.run({Value(n), floats({1})})[0].tensor().at(0), 1 + n);
}

TEST_F(SpecializerTest, parameters_are_weights_of_the_program) {
    TextProgram f(
        "graph f(%0 net: ?, %1 x: ?) captures 1 {\n"
        "  %2 = index(%0, \"weight\") : ?\n"
        "  %4 = call(ops.matmul, {%1, %2}) : ?\n"
        "  %3 = result(%4, 0) : ?\n"
        "  return {%3}\n"
        "}\n");
    Tensor weight = Tensor::full(DType::f32, {2, 3}, 2);
    weight.set_parameter({"weight", true});
    const Value net = PlainHost::table({{Value("weight"), Value(weight)}});
    SavedProgram saved(f.host(), capturing(f, net), {floats({1, 2}, {1, 2})});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(saved.run({floats({1, 2}, {1, 2})})[0].tensor().at(2), 6);
}

TEST_F(SpecializerTest, functions_of_known_values_are_called_when_the_program_is_saved) {
    TextProgram f(
        "graph f(%0 double: ?, %1 x: ?) captures 1 {\n"
        "  %2 = call(%0, {21}) : ?\n"
        "  %3 = result(%2, 0) : ?\n"
        "  %4 = mul(%1, %3) : ?\n"
        "  return {%4}\n"
        "}\n");
    const Value twice = PlainHost::function(
        "twice", Native::pure, [](std::span<const Value> args) { return vm::Values{Value(2 * args[0].integer())}; });
    SavedProgram saved(f.host(), capturing(f, twice), {floats({1})});
    EXPECT_EQ(saved.run({floats({1})})[0].tensor().at(0), 42);
}

TEST_F(SpecializerTest, what_a_file_cannot_hold_is_refused_with_its_name) {
    TextProgram f(
        "graph f(%0 g: ?, %1 x: ?) captures 1 {\n"
        "  %2 = call(%0, {%1}) : ?\n"
        "  return %2\n"
        "}\n");
    const Value g =
        PlainHost::function("measure", Native::unknown, [](std::span<const Value>) { return vm::Values(); });
    PlainKnown known(f.host());
    const std::vector<Value> example{floats({1})};
    try {
        specialize(known, capturing(f, g), example);
        FAIL() << "it was saved";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("function 'measure', which a file cannot hold"), std::string::npos)
            << e.what();
    }
}

}  // namespace
}  // namespace lunaria::testing
