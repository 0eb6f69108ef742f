#include "jit/frontend/parser.h"

#include <gtest/gtest.h>

#include "jit/frontend/printer.h"

namespace lunaria::lua {
namespace {

std::string tree(const std::string& text) { return dump(*parse(text, "test")); }
std::string expression(const std::string& text) {
    const auto chunk = parse_expression_list(text, "test");
    return dump(*chunk->main().body->statements[0]->as<Return>().values[0]);
}

TEST(Parser, BindsOperatorsAsTheManualSays) {
    EXPECT_EQ(expression("a or b and c"), "(or :a (and :b :c))");
    EXPECT_EQ(expression("a and b or c"), "(or (and :a :b) :c)");
    EXPECT_EQ(expression("a < b == c"), "(== (< :a :b) :c)");
    EXPECT_EQ(expression("a | b ~ c & d << e .. f + g * -h ^ i"),
              "(| :a (~ :b (& :c (<< :d (.. :e (+ :f (* :g (- (^ :h :i)))))))))");
    EXPECT_EQ(expression("a - b - c"), "(- (- :a :b) :c)");
    EXPECT_EQ(expression("a .. b .. c"), "(.. :a (.. :b :c))");
    EXPECT_EQ(expression("a ^ b ^ c"), "(^ :a (^ :b :c))");
    EXPECT_EQ(expression("2 ^ -3"), "(^ 2 (- 3))");
    EXPECT_EQ(expression("not a == b"), "(== (not :a) :b)");
    EXPECT_EQ(expression("-a .. b"), "(.. (- :a) :b)");
    EXPECT_EQ(expression("# t * ~ 1"), "(* (# :t) (~ 1))");
    EXPECT_EQ(expression("a // b % c / d"), "(/ (% (// :a :b) :c) :d)");
    EXPECT_EQ(expression("a >> b ~= c >= d <= e > f"), "(> (<= (>= (~= (>> :a :b) :c) :d) :e) :f)");
    EXPECT_EQ(expression("(a + b) * c"), "(* (paren (+ :a :b)) :c)");
}

TEST(Parser, ReadsLiterals) {
    EXPECT_EQ(expression("nil"), "nil");
    EXPECT_EQ(expression("true"), "true");
    EXPECT_EQ(expression("0x10"), "16");
    EXPECT_EQ(expression("1e2"), "100.0");
    EXPECT_EQ(expression("[[a]]"), "\"a\"");
    EXPECT_EQ(expression("..."), "...");
    EXPECT_EQ(expression("{1; x = 2, [3] = 4, f(), ...}"), "(table 1 .\"x\"=2 []3=4 (call :f) ...)");
    EXPECT_EQ(expression("{x, y = 1, z}"), "(table :x .\"y\"=1 :z)");
    EXPECT_EQ(expression("{}"), "(table)");
    EXPECT_EQ(expression("{{},}"), "(table (table))");
}

TEST(Parser, ReadsCallsAndFields) {
    EXPECT_EQ(expression("f()"), "(call :f)");
    EXPECT_EQ(expression("f(a, b)(c)"), "(call (call :f :a :b) :c)");
    EXPECT_EQ(expression("f'x'"), "(call :f \"x\")");
    EXPECT_EQ(expression("f[[x]]"), "(call :f \"x\")");
    EXPECT_EQ(expression("f{1}"), "(call :f (table 1))");
    EXPECT_EQ(expression("a.b[c].d"), "(. ([] (. :a \"b\") :c) \"d\")");
    EXPECT_EQ(expression("a:m(1):n{}"), "(method (method :a m 1) n (table))");
    EXPECT_EQ(expression("('x'):rep(3)"), "(method (paren \"x\") rep 3)");
    EXPECT_EQ(tree("f\n(g)"), "(call :f :g)");
}

TEST(Parser, ReadsStatements) {
    EXPECT_EQ(tree(";;;"), "");
    EXPECT_EQ(tree("a, b.c, d[1] = 1, f()"), "(set :a (. :b \"c\") ([] :d 1) = 1 (call :f))");
    EXPECT_EQ(tree("local a, b <const>, c <close> = 1"), "(local a@1 b@2<const> c@3<close> = 1)");
    EXPECT_EQ(tree("local a"), "(local a@1)");
    EXPECT_EQ(tree("do local a = 1 end"), "(do (local a@1 = 1))");
    EXPECT_EQ(tree("while a do f() break end"), "(while :a (call :f) (break))");
    EXPECT_EQ(tree("repeat local a until a"), "(repeat (local a@1) a@1)");
    EXPECT_EQ(tree("if a then elseif b then f() else g() end"), "(if (:a) (:b (call :f)) (else (call :g)))");
    EXPECT_EQ(tree("for i = 1, 2 do f(i) end"), "(for i@1 1 2 - (call :f i@1))");
    EXPECT_EQ(tree("for i = i, 2, -1 do end"), "(for i@1 :i 2 (- 1))");
    EXPECT_EQ(tree("for k, v in f, g do h(k, v) end"), "(for-in k@1 v@2 = :f :g (call :h k@1 v@2))");
    EXPECT_EQ(tree("function f(a, ...) return a, ... end"), "(define :f (function (a@1 ...) [] (return a@1 ...)))");
    EXPECT_EQ(tree("function a.b.c:m(x) end"), "(define (. (. (. :a \"b\") \"c\") \"m\") (function (self@1 x@2) []))");
    EXPECT_EQ(tree("local function f() return f end"), "(local-function f@1 (function () [f] (return ^f@0)))");
    EXPECT_EQ(tree("return"), "(return)");
    EXPECT_EQ(tree("return 1, 2;"), "(return 1 2)");
    EXPECT_EQ(tree("goto a; ::a::"), "(goto a) (label a at end)");
    EXPECT_EQ(tree("::a:: goto a"), "(label a) (goto a back)");
    EXPECT_EQ(tree("#!shebang\nf()"), "(call :f)");
}

TEST(Parser, GivesEveryNodeItsSpan) {
    const auto chunk = parse("local x =\n  a.b + f(1) -- c\nif x then\n  g()\nend", "test");
    const auto& statements = chunk->main().body->statements;
    const auto& sum = statements[0]->as<LocalDecl>().values[0]->as<Binary>();
    EXPECT_EQ(chunk->text(statements[0]->span), "local x =\n  a.b + f(1)");
    EXPECT_EQ(chunk->text(sum.span), "a.b + f(1)");
    EXPECT_EQ(sum.span.line, 2u);
    EXPECT_EQ(sum.span.column, 3u);
    EXPECT_EQ(chunk->text(sum.operator_span), "+");
    EXPECT_EQ(chunk->text(sum.left->as<Index>().key->span), "b");
    EXPECT_EQ(chunk->text(sum.right->as<Call>().open), "(");
    EXPECT_EQ(chunk->text(statements[0]->as<LocalDecl>().locals[0]->span), "x");
    const auto& branch = statements[1]->as<If>();
    EXPECT_EQ(chunk->text(branch.span), "if x then\n  g()\nend");
    EXPECT_EQ(chunk->text(branch.clauses[0].body->span), "g()");
    EXPECT_EQ(branch.clauses[0].body->span.line, 4u);
    EXPECT_EQ(chunk->text(chunk->main().body->span), chunk->source());
}

TEST(Parser, DescribesFunctions) {
    const auto chunk = parse(R"(
--- Adds.
--- Twice.
local function add(a, b)
  return function(...) return a, ... end
end

--- not directly above

function m.x.y:go()
end
local a, b = 1, function() end
t.f, t[1] = function() end, function() end
return {
  --- A field.
  g = function()
  end,
  function() end }
)",
                             "test");
    const auto functions = chunk->functions();
    ASSERT_EQ(functions.size(), 9u);
    EXPECT_EQ(functions[0], &chunk->main());
    EXPECT_TRUE(functions[0]->is_vararg);
    EXPECT_EQ(functions[0]->first_line, 0u);
    EXPECT_EQ(functions[1]->name, "add");
    EXPECT_EQ(functions[1]->doc, "Adds.\nTwice.");
    EXPECT_EQ(functions[1]->first_line, 4u);
    EXPECT_EQ(functions[1]->last_line, 6u);
    EXPECT_EQ(functions[1]->parameters.size(), 2u);
    EXPECT_FALSE(functions[1]->is_vararg);
    EXPECT_EQ(functions[1]->functions.size(), 1u);
    EXPECT_EQ(functions[2]->name, "");
    EXPECT_EQ(functions[2]->parent, functions[1]);
    EXPECT_TRUE(functions[2]->is_vararg);
    EXPECT_EQ(functions[3]->name, "m.x.y:go");
    EXPECT_EQ(functions[3]->doc, "");
    EXPECT_TRUE(functions[3]->is_method);
    EXPECT_EQ(functions[3]->parameters[0]->kind, LocalKind::self);
    EXPECT_EQ(functions[4]->name, "b");
    EXPECT_EQ(functions[5]->name, "t.f");
    EXPECT_EQ(functions[6]->name, "t[...]");
    EXPECT_EQ(functions[7]->name, "g");
    EXPECT_EQ(functions[7]->doc, "A field.");
    EXPECT_EQ(functions[8]->name, "");
}

TEST(Parser, FindsFunctionsByLineAndStructure) {
    const auto chunk =
        parse("local a, b\nf(function(x) return a end, function(x) return b end, function(x, ...) end)\n", "t");
    EXPECT_EQ(chunk->functions_at(2, 2).size(), 3u);
    EXPECT_EQ(chunk->functions_at(1, 2).size(), 0u);
    const std::string_view a[] = {"a"}, b[] = {"b"};
    EXPECT_EQ(chunk->find_function(2, 2, 1, false, a), chunk->functions()[1]);
    EXPECT_EQ(chunk->find_function(2, 2, 1, false, b), chunk->functions()[2]);
    EXPECT_EQ(chunk->find_function(2, 2, 1, true, {}), chunk->functions()[3]);
    EXPECT_EQ(chunk->find_function(2, 2, 0, false, {}), nullptr);
    const auto twins = parse("f(function() end, function() end)", "t");
    EXPECT_EQ(twins->find_function(1, 1, 0, false, {}), nullptr);
}

TEST(Parser, ReadsListsOfExpressions) {
    const auto chunk = parse_expression_list("1, f(x); -- done", "test");
    EXPECT_TRUE(chunk->is_expression());
    EXPECT_TRUE(chunk->is_silent());
    const auto& list = chunk->main().body->statements[0]->as<Return>();
    EXPECT_EQ(list.values.size(), 2u);
    EXPECT_EQ(chunk->text(list.span), "1, f(x)");
    EXPECT_FALSE(parse_expression_list("1", "test")->is_silent());
    EXPECT_FALSE(parse("f()", "test")->is_expression());
    EXPECT_EQ(expression("#t"), "(# :t)");
    EXPECT_THROW(parse("#t", "test", TextKind::fragment), SyntaxError);
    EXPECT_THROW(parse_expression_list("x = 1", "test"), SyntaxError);
    EXPECT_THROW(parse_expression_list("", "test"), SyntaxError);
}

TEST(Parser, DispatchesOnTheClassOfANode) {
    const auto chunk = parse("f(1)", "test");
    const Stat& statement = *chunk->main().body->statements[0];
    const auto kind = dispatch(
        statement, Overloads{[](const CallStatement&) { return "call"; }, [](const Stat&) { return "other"; }});
    EXPECT_STREQ(kind, "call");
    const Expr& call = *statement.as<CallStatement>().call;
    EXPECT_EQ(dispatch(call, Overloads{[](const Call& c) { return c.arguments.size(); },
                                       [](const Expr&) { return std::size_t{9}; }}),
              1u);
    EXPECT_EQ(call.get_if<Table>(), nullptr);
}

TEST(Parser, LimitsNestingInsteadOfOverflowingTheStack) {
    const auto repeat = [](const char* text, int n) {
        std::string out;
        for (int i = 0; i < n; ++i) out += text;
        return out;
    };
    const std::string too_deep[] = {
        "x = " + repeat("(", 10000),   "x = " + repeat("{", 10000),
        repeat("do ", 10000),          "x = " + repeat("-", 10000).substr(0, 1) + repeat(" -", 10000),
        "x = " + repeat("a..", 10000), "x = " + repeat("function() return ", 10000),
        "x = " + repeat("f(", 10000),  repeat("if x then ", 10000),
        "x = " + repeat("2^", 10000)};
    for (const std::string& text : too_deep) {
        try {
            parse(text, "deep");
            ADD_FAILURE() << text.substr(0, 20);
        } catch (const SyntaxError& error) {
            EXPECT_TRUE(error.headline().starts_with("too many nested levels (limit is 200)")) << error.what();
            EXPECT_FALSE(error.incomplete());
            EXPECT_LT(std::string(error.what()).size(), 1000u);
        }
    }
    EXPECT_NO_THROW(parse("x = " + repeat("(", 190) + "1" + repeat(")", 190), "deep"));
}

TEST(Parser, TakesLeftDeepTreesOfAnyLength) {
    std::string sum = "x = 1", fields = "x = a", calls = "f", logic = "x = a";
    for (int i = 0; i < 200000; ++i) {
        sum += "+1";
        fields += ".b";
        calls += "()";
        logic += " and b";
    }
    for (const std::string& text : {sum, fields, calls, logic, "local x <const> " + sum.substr(2)}) {
        const auto chunk = parse(text, "long");
        EXPECT_EQ(dump(*parse(print(*chunk), "again")), dump(*chunk));
    }
}

}  // namespace
}  // namespace lunaria::lua
