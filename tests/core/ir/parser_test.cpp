#include "core/ir/parser.h"

#include <gtest/gtest.h>

#include "core/ir/printer.h"
#include "core/ir/verifier.h"

namespace lunaria::ir {
namespace {

// The text as it is printed after it was read.
std::string again(const std::string& text) { return print(*parse(text).graph); }

std::string message_of(const std::string& text) {
    try {
        parse(text, {}, "t");
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::syntax);
        return e.what();
    }
    ADD_FAILURE() << "no error for: " << text;
    return "";
}

TEST(Parser, reads_parameters_calls_types_names_and_places) {
    const std::string text =
        "graph f(%0 x: float32(2, ?), %1 : ?, %3 ...: {value, int64()}) captures 1 variadic order 2 {  -- a b.lua:1\n"
        "  %2 = float32() {2.5}\n"
        "  %7 = ops.mul(%0, %2)                   : float32(2, ?)  y  -- a b.lua:3\n"
        "  %5 = %3[1]                             : int64()\n"
        "  return {%7, %5, {}}\n"
        "}\n";
    ParsedGraph parsed = parse(text);
    EXPECT_EQ(print(*parsed.graph), text);
    const Graph& f = *parsed.graph;
    EXPECT_EQ(f.captures, 1u);
    EXPECT_TRUE(f.variadic);
    EXPECT_EQ(f.order, 2);
    EXPECT_EQ(f.body()[0]->op, registry().find("mul"));
    EXPECT_EQ(f.body()[0]->span.line, 3);
    EXPECT_EQ(*f.body()[0]->span.chunk, "a b.lua");
    // Ids that are given later do not meet those of the text.
    EXPECT_EQ(parsed.graph->add_parameter("z", {})->id, 8);
}

TEST(Parser, inner_graphs_see_nodes_that_are_defined_after_them) {
    const std::string text =
        "graph f(%0 x: float32(2)) {\n"
        "  graph g(%1 y: float32(2)) {\n"
        "    graph g.inner() {\n"
        "      return {%1, %2, @f}\n"
        "    }\n"
        "    %3 = ops.add(%1, %2)                 : float32(2)\n"
        "    return @g.inner\n"
        "  }\n"
        "  %2 = ops.relu(%0)                      : float32(2)\n"
        "  %4 = @g(%2)                            : ?\n"
        "  %5 = %4(%0)                            : ?\n"
        "  return %5\n"
        "}\n";
    EXPECT_EQ(again(text), text);
    ParsedGraph parsed = parse(text);
    EXPECT_EQ(parsed.graph->inner()[0]->free_variables().size(), 1u);
    EXPECT_EQ(parsed.graph->body()[1]->callee->function, parsed.graph->inner()[0].get());
}

TEST(Parser, graphs_of_one_name_are_told_apart) {
    const std::string text =
        "graph f() {\n"
        "  graph f#2() {\n"
        "    return nil\n"
        "  }\n"
        "  graph f#3() {\n"
        "    return @f#2\n"
        "  }\n"
        "  return {@f, @f#2, @f#3, @\"a-b (c)\"}\n"
        "}\n"
        "graph \"a-b (c)\"() {\n"
        "  return 1\n"
        "}\n";
    EXPECT_EQ(again(text), text);
    EXPECT_EQ(parse(text).others.size(), 1u);
}

TEST(Parser, values_keep_their_kind_and_their_bits) {
    const std::string text =
        "graph f() {\n"
        "  %0 = {1, 1.0, -0.0, 1e+300, 0.1, inf, -inf, nan, nil, true, false, float16, -9223372036854775808}\n"
        "  %1 = \"a\\n\\\"b\\\\\\x01\\x7f\xc3\xa9\"\n"
        "  %2 = float32(2, 2) {0.1, -0.0, inf, 3.4028235e+38}\n"
        "  %3 = int64(1) {9007199254740993}\n"
        "  %4 = float16(2) {0.099975586, nan}\n"
        "  %5 = complex64(1) {{1, -2.5}}\n"
        "  %6 = bool(2) {true, false}\n"
        "  %10 = float64(2) {9223372036854775808.0, -1}\n"
        "  %7 = float64() {0.1}  layer.0.weight  -- a.lua:2\n"
        "  %8 = float32(0, 3) {}\n"
        "  %9 = ops.sum(%2, {0}, false, nil)      : float32(2)\n"
        "  return {float32, uint8(1) {255}}\n"
        "}\n";
    EXPECT_EQ(again(text), text);
}

TEST(Parser, a_tensor_without_its_elements_is_refused) {
    Graph f("f");
    f.result = Value(f.add_constant(Value(Tensor::zeros(DType::f32, {3, 4}))));
    EXPECT_NE(print(f).find("float32(3, 4) {...}"), std::string::npos);
    EXPECT_NE(message_of(print(f)).find("elements"), std::string::npos);
    const std::string whole = print(f, {.most_elements = 100});
    EXPECT_EQ(print(*parse(whole).graph, {.most_elements = 100}), whole);
}

TEST(Parser, errors_show_the_line_and_the_place) {
    EXPECT_EQ(message_of("graph f() {\n  %0 = ops.reluu(1) : ?\n  return %0\n}\n"),
              "t:2: there is no operator 'ops.reluu'; did you mean ops.relu, ops.relu6, ops.celu\n"
              "    %0 = ops.reluu(1) : ?\n"
              "         ^");
}

TEST(Parser, bad_texts_are_errors) {
    const std::pair<const char*, const char*> cases[] = {
        {"", "'graph' expected"},
        {"graph f", "'(' expected"},
        {"graph f() {", "'return' expected"},
        {"graph f() {\n return 1", "'}' expected"},
        {"graph f() {\n return %1\n}", "there is no node %1"},
        {"graph f(%0 x: ?, %0 y: ?) {\n return 1\n}", "there is a node %0 already"},
        {"graph f() {\n return @g\n}", "there is no graph 'g'"},
        {"graph f() {\n return 1\n}\ngraph f() {\n return 1\n}", "there is a graph 'f' already"},
        {"graph f(%0 x: {value}) {\n %1 = %0[1] : ?\n return 1\n}", "1 results, not 2"},
        {"graph f() {\n %1 = add(1, 2) : ?\n return 1\n}", "operators on tensors are written ops.add"},
        {"graph f() {\n return object\n}", "no text form"},
        {"graph f() {\n return ops.relu\n}", "operator as a value"},
        {"graph f() {\n return float32(2) {1}\n}", "does not have 1 elements"},
        {"graph f() {\n return float32(4294967296, 4294967296) {}\n}", "does not have 0 elements"},
        {"graph f() {\n return uint8(1) {256}\n}", "no uint8"},
        {"graph f() {\n return 99999999999999999999\n}", "64 bits"},
        {"graph f() {\n return \"abc\n}", "without an end"},
        {"graph f() {\n return \"\\q\"\n}", "escape"},
        {"graph f() {\n return 1 2\n}", "end of the line"},
        {"graph f() {\n graph g() {\n return 1\n", "has no end"},
        {"graph f() {\n graph g(%1 y: ?) {\n return 1\n }\n return %1\n}", "no node %1"},
        {"graph f(%0 x: float33()) {\n return 1\n}", "a type expected"},
        {"graph f(%99999999999 x: ?) {\n return 1\n}", "between 0 and"},
        {"graph f() {\n %0 = ops.relu(1) : ? -- here\n return 1\n}", "file.lua:3"},
    };
    for (auto [text, part] : cases) {
        const std::string message = message_of(text);
        EXPECT_NE(message.find(part), std::string::npos) << text << "\n" << message;
    }
}

TEST(Parser, deep_texts_are_errors) {
    EXPECT_NE(message_of("graph f() {\n return " + std::string(100000, '{')).find("deep"), std::string::npos);
    std::string graphs;
    for (int i = 0; i < 1000; ++i) graphs += "graph g" + std::to_string(i) + "() {\n";
    for (int i = 0; i < 1000; ++i) graphs += "return 1\n}\n";
    EXPECT_NE(message_of(graphs).find("deep"), std::string::npos);
}

}  // namespace
}  // namespace lunaria::ir
