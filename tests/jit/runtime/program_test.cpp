// Programs that are texts of the IR, written as MindIR and run as lunaria-run does.
#include "jit/runtime/program.h"

#include <gtest/gtest.h>

#include <random>

#include "core/ir/mindir.h"
#include "jit/language.h"
#include "jit/runtime/command_line.h"
#include "jit/runtime/values.h"
#include "jit/saving/names.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using runtime::Program;

class ProgramTest : public CpuTest {};

std::string saved(std::string_view text) {
    return ir::mindir_of(*ir::parse(text, {&lua::language(), operator_name}, "text").graph);
}

// y = x; for i = 1, n do y = tanh(y + x) end; return y, {last = y, n}
constexpr const char* kLoop =
    "graph f(%0 x: float32(3), %1 n: ?) {\n"
    "  graph f.loop(%2 i: ?, %3 y: ?, %4 x: ?, %5 n: ?) {\n"
    "    %6 = less_equal(%2, %5) : ?\n"
    "    %7 = branch(%6, @f.body, {%2, %3, %4, %5}, @f.end, {%3, %5}) : ?\n"
    "    return %7\n"
    "  }\n"
    "  graph f.body(%8 i: ?, %9 y: ?, %10 x: ?, %11 n: ?) {\n"
    "    %12 = add(%9, %10) : ?\n"
    "    %13 = ops.tanh(%12) : ?\n"
    "    %14 = add(%8, 1) : ?\n"
    "    %15 = @f.loop(%14, %13, %10, %11) : ?\n"
    "    return %15\n"
    "  }\n"
    "  graph f.end(%16 y: ?, %17 n: ?) {\n"
    "    %18 = table({\"last\", 1}, {%16, %17}, 0, nil) : ?\n"
    "    return {%16, %18}\n"
    "  }\n"
    "  %19 = @f.loop(1, %0, %0, %1) : ?\n"
    "  return %19\n"
    "}\n";

Program program_of(std::string_view text) { return Program(*memory_source("saved.mindir", saved(text))); }

std::string message(const std::function<void()>& body) {
    try {
        body();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "no error";
}

TEST_F(ProgramTest, a_loaded_program_is_recorded_and_then_run_from_its_record) {
    Program program = program_of(kLoop);
    TextProgram text(kLoop);
    for (int n : {3, 5, 2, 9, 7}) {
        const std::vector<Value> args{floats({0.1, -0.2, 0.3}), Value(n)};
        const std::vector<Value> expected = text.run(args), got = program.run(args);
        ASSERT_EQ(got.size(), 2u);
        EXPECT_TRUE(same_value(got[0], expected[0])) << n;
        const auto fields = Program::fields(got[1]);
        ASSERT_TRUE(fields && fields->size() == 2u);
        EXPECT_TRUE(same_value((*fields)[0].second, expected[0])) << n;
    }
    const runtime::Counts counts = program.counts();
    EXPECT_LE(counts.recorded, 3);
    EXPECT_GE(counts.from_records, 2);
    EXPECT_EQ(counts.refusal, "");
}

TEST_F(ProgramTest, the_signature_says_what_the_file_says) {
    Program program = program_of(kLoop);
    const runtime::Signature& s = program.signature();
    ASSERT_EQ(s.inputs.size(), 2u);
    EXPECT_EQ(s.inputs[0].name, "x");
    EXPECT_TRUE(s.gives_any);
    EXPECT_EQ(runtime::describe(s),
              "inputs:\n  0 x: float32 (3)\n  1 n: any value\nresults: known when it has run\nweights: none\n"
              "functions: none\n");
    EXPECT_NE(message([&] { program.run(std::vector<Value>(3)); }).find("takes 2 inputs, got 3"), std::string::npos);
}

TEST_F(ProgramTest, errors_have_their_place_in_the_program) {
    Program program = program_of(
        "graph f(%0 a: ?, %1 b: ?) {\n"
        "  %2 = ops.matmul(%0, %1) : ?  -- net.lua:7\n"
        "  return {%2}\n"
        "}\n");
    for (int i = 0; i < 3; ++i) {
        try {
            program.run(std::vector{floats({1, 2}, {1, 2}), floats({1, 2, 3}, {3, 1})});
            FAIL() << "no error";
        } catch (const Error& e) {
            EXPECT_EQ(e.place(), "net.lua:7");
            EXPECT_EQ(e.where(), "matmul");
        }
    }
}

TEST_F(ProgramTest, functions_of_the_library_are_there_by_their_names) {
    const auto named = [](std::string_view name) {
        ir::Graph graph("f");
        Value x(graph.add_parameter("x", {})), n(graph.add_parameter("n", {}));
        graph.result = Value(graph.add_call(lua::primitive("call"), {name_value(name), Value::list({x, n})}, {}));
        return ir::mindir_of(graph);
    };
    const auto run = [&](std::string_view name, std::vector<Value> args) {
        const std::string bytes = named(name);
        return Program(*memory_source("saved.mindir", bytes)).run(args);
    };
    EXPECT_EQ(run("math.max", {Value(3), Value(4.5)})[0].number(), 4.5);
    // As Lua 5.4 has them: the first part of 3.7 is an integer, and so is abs(-3).
    const auto parts = run("math.modf", {Value(3.7), Value()});
    EXPECT_EQ(parts[0].integer(), 3);
    EXPECT_NEAR(parts[1].number(), 0.7, 1e-15);
    EXPECT_EQ(run("math.abs", {Value(-3), Value()})[0].integer(), 3);
    EXPECT_EQ(run("math.abs", {Value("-3.5"), Value()})[0].number(), 3.5);
    EXPECT_EQ(run("math.floor", {Value("3.7"), Value()})[0].integer(), 3);
    EXPECT_EQ(run("math.log", {Value(8), Value(2)})[0].number(), 3.0);
    EXPECT_EQ(run("math.log", {Value(1), Value()})[0].number(), 0.0);
    EXPECT_EQ(run("math.atan", {Value(0), Value(-1)})[0].number(), std::atan2(0.0, -1.0));
    EXPECT_EQ(run("math.fmod", {Value(-6), Value(4)})[0].integer(), -2);
    EXPECT_EQ(message([&] { run("math.fmod", {Value(1), Value(0)}); }), "bad argument #2 to 'fmod' (zero)");
    EXPECT_EQ(run("string.rep", {Value("ab"), Value(3)})[0].string(), "ababab");
    EXPECT_EQ(run("string.format", {Value("%5.2f|"), Value(2.5)})[0].string(), " 2.50|");
    EXPECT_EQ(run("string.match", {Value("x = 12"), Value("%d+")})[0].string(), "12");
    EXPECT_EQ(message([&] {
                  run("string.rep", {Value(), Value(3)});
              }),
              "bad argument #1 to 'rep' (string expected, got nil)");
}

TEST_F(ProgramTest, what_only_the_full_program_has_is_refused_with_its_name) {
    ir::Graph graph("f");
    Value x(graph.add_parameter("x", {}));
    graph.result = Value(graph.add_call(lua::primitive("call"), {name_value("string.pack"), Value::list({x})}, {}));
    const std::string bytes = ir::mindir_of(graph);
    const std::string said = message([&] { Program(*memory_source("net.mindir", bytes)); });
    EXPECT_EQ(said.find("net.mindir: the program calls string.pack, which only the full program has"), 0u) << said;
}

TEST_F(ProgramTest, damaged_files_are_errors_or_programs_that_end) {
    const std::string whole = saved(kLoop);
    std::mt19937 random(5);
    int errors = 0;
    for (int i = 0; i < 3000; ++i) {
        std::string bytes = whole;
        for (unsigned k = random() % 3 + 1; k > 0; --k) {
            const size_t at = random() % bytes.size();
            if (random() % 4 == 0)
                bytes.resize(at + 1);
            else if (random() % 2 == 0)
                bytes[at] = static_cast<char>(random());
            else
                bytes.replace(at, 1, bytes.substr(random() % bytes.size(), random() % 6));
        }
        try {
            Program program(*memory_source("damaged.mindir", bytes));
            for (int run = 0; run < 2; ++run) program.run(std::vector{floats({1, 2, 3}), Value(2)});
        } catch (const std::exception& e) {
            ++errors;
            EXPECT_NE(std::string(e.what()), "");
        }
    }
    EXPECT_GT(errors, 1000);
}

TEST(RuntimeCommandLine, options_stand_anywhere_and_mistakes_are_told) {
    const auto read = [](std::vector<const char*> words) { return runtime::read_command_line(words); };
    const runtime::CommandLine c = read({"--repeat=3", "net.mindir", "-2.5", "--out", "y", "x.npy"});
    EXPECT_EQ(c.program, "net.mindir");
    EXPECT_EQ(c.inputs, (std::vector<std::string>{"-2.5", "x.npy"}));
    EXPECT_EQ(c.repeat, 3);
    EXPECT_EQ(c.out, "y");
    EXPECT_EQ(message([&] {
                  read({"--repeat", "0", "net.mindir"});
              }),
              "--repeat takes a number from 1 to 1000000000, got '0'");
    EXPECT_EQ(message([&] { read({"--fast", "net.mindir"}); }), "there is no option --fast; --help lists them");
    EXPECT_EQ(message([&] { read({"--print=1", "net.mindir"}); }), "--print takes no value");
    EXPECT_EQ(message([&] { read({"net.mindir", "--out"}); }), "--out needs PREFIX");
    EXPECT_NE(message([&] { read({}); }).find("no program is given"), std::string::npos);
}

TEST_F(ProgramTest, words_of_the_command_line_are_values) {
    const ir::NodeType any, tensor = ir::NodeType::of({DType::f16, {2}});
    EXPECT_EQ(runtime::input_of("-3", any).integer(), -3);
    EXPECT_EQ(runtime::input_of("\"mean\"", any).string(), "mean");
    EXPECT_TRUE(runtime::input_of("nil", any).is_nil());
    EXPECT_EQ(Program::text(runtime::input_of("{1, {2.5, true}}", any)), "{1, {2.5, true}}");
    const Value x = runtime::input_of("{1, 2.5}", tensor);
    ASSERT_TRUE(x.is_tensor());
    EXPECT_EQ(x.tensor().dtype(), DType::f16);
    EXPECT_EQ(x.tensor().at(1), 2.5);
    EXPECT_EQ(
        message([&] { runtime::input_of("mean", any); }).find("input 'mean' is no .npy or .npz file and no value"), 0u);
    EXPECT_NE(message([&] { runtime::input_of("missing.npy", any); }).find("missing.npy"), std::string::npos);
}

}  // namespace
}  // namespace lunaria::testing
