// Each primitive of the language runs in a program that is a text of the IR, or in what is made of one: its
// derivatives, its record, the machine's own functions.
#include <gtest/gtest.h>

#include "jit/language.h"
#include "jit/number.h"
#include "jit/vm/prelude.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

class EachPrimitiveTest : public CpuTest {};

// f(a) or f(a, b), and its derivative by a where it has one.
std::string call_text(const Op& op) {
    std::string parameters, args;
    for (size_t i = 0; i < op.signature.params.size(); ++i) {
        parameters += str(i ? ", %" : "%", i, " a: ?");
        args += str(i ? ", %" : "%", i);
    }
    return str("graph f(", parameters, ") {\n  %9 = ", op.name(), "(", args, ") : ?\n  return {%9}\n}\n");
}

Value number_for(const Op& op, size_t position) {
    return Value(op.name() == "num_acos" || op.name() == "num_asin" ? 0.5 : position == 0 ? 2.25 : 1.5);
}

TEST_F(EachPrimitiveTest, those_of_numbers_run_alone_in_records_and_under_derivatives) {
    int count = 0;
    for (const auto& op : lua::language().all()) {
        if (!op->name().starts_with("num_")) continue;
        ++count;
        std::vector<Value> args;
        for (size_t i = 0; i < op->signature.params.size(); ++i) args.push_back(number_for(*op, i));
        const Value expected = lua::run_number(*op, args);
        RecordedProgram f(call_text(*op));
        for (int i = 0; i < 3; ++i) {
            const std::vector<Value> got = args.size() == 1   ? f.call({args[0]})
                                           : args.size() == 2 ? f.call({args[0], args[1]})
                                                              : f.call({args[0], args[1], args[2]});
            EXPECT_TRUE(same_value(got.at(0), expected)) << op->name() << ": " << to_string(got[0]);
        }
        if (args.size() > 1 || expected.kind() != Value::Kind::number) continue;
        const double step = 1e-6, x = args[0].number();
        const Value above[] = {Value(x + step)}, below[] = {Value(x - step)};
        const double slope = (lua::run_number(*op, above).number() - lua::run_number(*op, below).number()) / (2 * step);
        const Value derivative = f.program().gradient({args[0]}).second;
        const double got = derivative.is_nil()      ? 0
                           : derivative.is_tensor() ? derivative.tensor().at(0)
                                                    : derivative.number();
        EXPECT_NEAR(got, slope, 1e-4 * (1 + std::abs(slope))) << op->name();
    }
    EXPECT_EQ(count, 37);
}

// Tables, closures, variables, loops, elements that are written, variables to close.
constexpr const char* kEverything =
    "graph f(%0 t: ?, %1 x: ?, %2 n: ?, %3 ...: ?) variadic {\n"
    "  graph f.loop(%4 i: ?, %5 count: ?, %6 limit: ?, %7 sum: ?, %8 t: ?, %9 x: ?) {\n"
    "    %10 = for_more(%4, %6, 1, %5) : ?\n"
    "    %11 = branch(%10, @f.body, {%4, %5, %6, %7, %8, %9}, @f.end, {%7, %8, %9}) : ?\n"
    "    return %11\n"
    "  }\n"
    "  graph f.body(%12 i: ?, %13 count: ?, %14 limit: ?, %15 sum: ?, %16 t: ?, %17 x: ?) {\n"
    "    %18 = mul(%17, %12) : ?\n"
    "    %19 = add(%15, %18) : ?\n"
    "    %20 = set_index(%16, %12, %19) : ?\n"
    "    %21 = add(%12, 1) : ?\n"
    "    %22 = for_count(%13) : ?\n"
    "    %23 = @f.loop(%21, %22, %14, %19, %16, %17) : ?\n"
    "    return %23\n"
    "  }\n"
    "  graph f.end(%24 sum: ?, %25 t: ?, %26 x: ?) {\n"
    "    graph scale(%27 c: ?, %28 y: ?) captures 1 {\n"
    "      %29 = cell_get(%27) : ?\n"
    "      %30 = mul(%28, %29) : ?\n"
    "      %31 = cell_set(%27, %30) : ?\n"
    "      %32 = current_function() : ?\n"
    "      return {%30, %32}\n"
    "    }\n"
    "    %33 = cell(%26) : ?\n"
    "    %34 = closure(@scale, {%33}) : ?\n"
    "    %35 = call(%34, {%24}) : ?\n"
    "    %36 = result(%35, 0) : ?\n"
    "    %37 = length(%25) : ?\n"
    "    %38 = index(%25, %37) : ?\n"
    "    %39 = sub(%36, %38) : ?\n"
    "    %40 = table({\"y\"}, {%39}, 0, nil) : ?\n"
    "    %41 = index(%40, \"y\") : ?\n"
    "    %42 = minus(%41) : ?\n"
    "    return {%42}\n"
    "  }\n"
    "  %43 = results_from(%3, 0) : ?\n"
    "  %44 = spread({%1}, %43) : ?\n"
    "  %45 = result(%44, 0) : ?\n"
    "  %46 = for_prepare(1, %2, 1) : ?\n"
    "  %47 = result(%46, 0) : ?\n"
    "  %48 = result(%46, 1) : ?\n"
    "  %49 = result(%46, 3) : ?\n"
    "  %50 = @f.loop(%47, %49, %48, %45, %0, %45) : ?\n"
    "  return %50\n"
    "}\n";

TEST_F(EachPrimitiveTest, a_program_of_all_that_lua_has_runs_from_its_record_and_has_a_derivative) {
    RecordedProgram f(kEverything);
    // s = x (1 + 1 + 2 + ... + n); f = t[n] - s x = s - s x
    for (int n : {3, 2, 4, 3}) {
        const double x = 0.5 * n, s = x * (1 + n * (n + 1) / 2);
        const std::vector<Value> got = f.call({vm::PlainHost::table({}), Value(x), Value(n)});
        EXPECT_DOUBLE_EQ(got.at(0).number(), s - s * x) << n;
        const auto [y, slope] = f.program().gradient({vm::PlainHost::table({}), Value(x), Value(n)}, 1);
        EXPECT_DOUBLE_EQ(slope.number(), (1 + n * (n + 1) / 2) * (1 - 2 * x)) << n;
    }
}

TEST_F(EachPrimitiveTest, operations_of_numbers_and_texts_have_luas_results) {
    const std::pair<const char*, Value> kCases[] = {{"add(7, 2)", Value(9)},
                                                    {"sub(7, 2)", Value(5)},
                                                    {"mul(7, 2)", Value(14)},
                                                    {"div(7, 2)", Value(3.5)},
                                                    {"mod(-7, 2)", Value(1)},
                                                    {"pow(7, 2)", Value(49.0)},
                                                    {"floor_div(-7, 2)", Value(-4)},
                                                    {"bit_and(7, 2)", Value(2)},
                                                    {"bit_or(5, 2)", Value(7)},
                                                    {"bit_xor(7, 2)", Value(5)},
                                                    {"shift_left(7, 2)", Value(28)},
                                                    {"shift_right(7, 2)", Value(1)},
                                                    {"bit_not(7)", Value(-8)},
                                                    {"minus(7)", Value(-7)},
                                                    {"not(nil)", Value(true)},
                                                    {"concat(\"a\", 1.5)", Value("a1.5")},
                                                    {"length(\"abc\")", Value(3)},
                                                    {"equal(1, 1.0)", Value(true)},
                                                    {"less(\"a\", \"b\")", Value(true)},
                                                    {"less_equal(2, 1)", Value(false)}};
    for (const auto& [text, expected] : kCases) {
        RecordedProgram f(str("graph f() {\n  %1 = ", text, " : ?\n  return {%1}\n}\n"));
        for (int i = 0; i < 2; ++i)
            EXPECT_TRUE(same_value(f.call({}).at(0), expected)) << text << ": " << to_string(f.call({})[0]);
    }
}

// Fails where a primitive of the language ran in no test of this program: each is to be in one, in a text of the IR, in
// its derivative or in its record.
class AllPrimitives : public ::testing::Environment {
  public:
    void TearDown() override {
        if (::testing::GTEST_FLAG(filter) != "*") return;
        for (int i = 0; i < static_cast<int>(vm::Prelude::count); ++i)
            note_primitives(vm::prelude(static_cast<vm::Prelude>(i)).function->graph);
        for (const auto& op : lua::language().all())
            EXPECT_TRUE(primitives_that_ran().contains(std::string(op->name())))
                << "the primitive " << op->name() << " is in no test";
    }
};

const auto* const kAllPrimitives = ::testing::AddGlobalTestEnvironment(new AllPrimitives);

}  // namespace
}  // namespace lunaria::testing
