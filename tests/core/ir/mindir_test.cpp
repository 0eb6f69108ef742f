// MindIR files: those that MindSpore wrote read as our operators, ours read back as they were, damaged ones are errors.
#include "core/ir/mindir.h"

#include <gtest/gtest.h>

#include <random>

#include "core/io/protobuf.h"
#include "core/ir/builder.h"
#include "core/ir/printer.h"
#include "core/ir/text.h"
#include "core/ir/verifier.h"
#include "tests/core/io/scratch.h"

namespace lunaria::ir {
namespace {

using test::error_of;
using test::kSamples;

std::string file(const std::string& name) { return read_file(kSamples + "mindir/" + name); }
ParsedGraph read(std::string_view bytes) { return read_mindir(*memory_source("m.mindir", bytes)); }

// x * w + 1, with a named weight, an unnamed constant, a list and an inner graph.
std::unique_ptr<Graph> example() {
    auto f = std::make_unique<Graph>("f");
    GraphBuilder b(*f);
    b.span = {std::make_shared<const std::string>("demo.lua"), 3, 1};
    Node* x = f->add_parameter("x", NodeType::of({DType::f32, {2}}));
    const float values[] = {1.5f, -2};
    Node* w = f->add_constant(Value(Tensor::from<float>(values, {2})));
    w->name = "layer.weight";
    const Expr y = Expr(b, Value(x)) * Expr(b, Value(w)) + 1.0;
    y.value().node()->name = "y";
    Graph& g = f->add_inner("g h");
    g.result = Value::list({y.value(), Value("text"), Value(DType::f16), Value(), Value(true)});
    const Expr parts = b.call("concat", {Expr(b, Value::list({y.value(), Value(x)})), int64_t{0}});
    f->result = Value::list({parts.value(), Value(f->add_function(g))});
    return f;
}

TEST(MindIr, a_network_of_mindspore_is_read_as_our_operators) {
    const ParsedGraph parsed = read_mindir(*open_source(kSamples + "mindir/ms_mlp.mindir"));
    EXPECT_TRUE(parsed.others.empty());
    verify(*parsed.graph);
    std::vector<std::string> names;
    for (const Node* node : parsed.graph->body()) names.emplace_back(node->op->name());
    EXPECT_EQ(names,
              (std::vector<std::string>{"swapaxes", "matmul", "bias_add", "relu", "swapaxes", "matmul", "bias_add"}));
    ASSERT_EQ(parsed.graph->parameters().size(), 1u);
    EXPECT_EQ(parsed.graph->parameters()[0]->tensor_type(), (TensorType{DType::f32, {2, 4}}));
    ASSERT_EQ(parsed.graph->result.items().size(), 1u);
    EXPECT_EQ(parsed.graph->result.items()[0].node()->tensor_type(), (TensorType{DType::f32, {2, 2}}));
    std::vector<std::string> weights;
    for (auto& node : parsed.graph->nodes())
        if (node->kind == NodeKind::constant) weights.push_back(node->name);
    EXPECT_EQ(weights, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
}

TEST(MindIr, a_network_with_convolution_and_normalisation_is_read) {
    const ParsedGraph parsed = read(file("ms_convnet.mindir"));
    std::vector<std::string> names;
    for (const Node* node : parsed.graph->body()) names.emplace_back(node->op->name());
    EXPECT_EQ(names, (std::vector<std::string>{"conv2d", "bias_add", "batch_norm", "relu", "max_pool2d", "flatten",
                                               "swapaxes", "matmul", "bias_add"}));
}

TEST(MindIr, our_own_files_read_back_as_they_were) {
    const auto f = example();
    const std::string bytes = mindir_of(*f);
    const ParsedGraph parsed = read(bytes);
    EXPECT_EQ(print(*parsed.graph), print(*f));
    EXPECT_EQ(mindir_of(*parsed.graph), bytes);
    EXPECT_NE(print(*f).find("layer.weight"), std::string::npos);
}

struct Named final : Object, NameHolder {
    std::string_view held_name() const override { return "string.format"; }
};

TEST(MindIr, functions_of_the_language_are_kept_by_their_names) {
    Graph f("f");
    f.result = Value::list({Value::adopt(new Named), Value(f.add_constant(Value(int64_t{1})))});
    const std::string bytes = mindir_of(f);
    Vocabulary vocabulary;
    EXPECT_NE(error_of([&] { read_mindir(*memory_source("m.mindir", bytes), vocabulary); }).find("string.format"),
              std::string::npos);
    vocabulary.function = [](const std::string& name) { return Value("found " + name); };
    const ParsedGraph parsed = read_mindir(*memory_source("m.mindir", bytes), vocabulary);
    EXPECT_EQ(parsed.graph->result.items()[0].string(), "found string.format");
    vocabulary.function = [](const std::string&) { return Value(); };
    EXPECT_NE(error_of([&] { read_mindir(*memory_source("m.mindir", bytes), vocabulary); }).find("cannot refer"),
              std::string::npos);
}

TEST(MindIr, primitives_that_a_program_may_not_have_are_unknown_operators) {
    Registry primitives;
    primitives.add("twice(a: any)").doc("Two times a.");
    Graph f("f");
    Node* x = f.add_parameter("x", {});
    f.result = Value::list({Value(f.add_call(primitives.get("twice"), {Value(x)}, {}))});
    const std::string bytes = mindir_of(f);
    Vocabulary vocabulary;
    vocabulary.primitives = &primitives;
    EXPECT_EQ(read_mindir(*memory_source("m.mindir", bytes), vocabulary).graph->body().size(), 1u);
    vocabulary.allows = [](const Op&) { return false; };
    EXPECT_NE(error_of([&] { read_mindir(*memory_source("m.mindir", bytes), vocabulary); }).find("'twice'"),
              std::string::npos);
}

TEST(MindIr, every_dtype_and_value_is_kept) {
    Graph f("f");
    std::vector<Value> all;
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto t = static_cast<DType>(i);
        if (!is_stored_only(t)) all.push_back(Value(f.add_constant(Value(Tensor::full(t, {2, 1}, 1)))));
    }
    for (double d : {0.1, -0.0, 1e300, std::numeric_limits<double>::infinity()}) all.emplace_back(d);
    all.emplace_back(std::numeric_limits<int64_t>::min());
    all.emplace_back(std::string_view("\0\xff\n", 3));
    all.push_back(Value::list({Value(1), Value::list({}), Value(2.0)}));
    f.result = Value::list(all);
    EXPECT_EQ(print(*read(mindir_of(f)).graph), print(f));
}

TEST(MindIr, a_file_cut_anywhere_is_an_error_or_a_whole_graph) {
    for (const std::string& bytes : {file("ms_mlp.mindir"), mindir_of(*example())}) {
        int errors = 0;
        for (size_t n = 0; n < bytes.size(); ++n) {
            try {
                verify(*read(std::string_view(bytes).substr(0, n)).graph);
            } catch (const Error& e) {
                ++errors;
                EXPECT_TRUE(std::string(e.what()).starts_with("m.mindir: ")) << n << ": " << e.what();
            }
        }
        // Only cuts between the last fields leave a whole graph.
        EXPECT_GT(errors, static_cast<int>(bytes.size()) - 10);
    }
}

TEST(MindIr, damaged_bytes_are_an_error_or_a_valid_graph) {
    std::mt19937 random(7);
    for (const std::string& bytes : {file("ms_mlp.mindir"), file("ms_convnet.mindir"), mindir_of(*example())}) {
        for (int i = 0; i < 2000; ++i) {
            std::string damaged = bytes;
            for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
            try {
                verify(*read(damaged).graph);
            } catch (const Error&) {
            }
        }
    }
}

// The sample with one text in it replaced by another of the same length.
std::string changed(const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    std::string bytes = file("ms_convnet.mindir");
    bool found = false;
    for (size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += to.size()) {
        bytes.replace(at, from.size(), to);
        found = true;
    }
    EXPECT_TRUE(found) << from;
    return bytes;
}

TEST(MindIr, what_is_wrong_is_said) {
    error_of([] { read(""); }, "is empty");
    error_of([] { read("not a model at all"); }, "m.mindir: ");
    error_of([] { read(ProtoWriter().bytes(1, "1.1").text()); }, "is no MindIR file");
    // Both unknown operators at once.
    error_of(
        [] {
            std::string bytes = changed("MaxPool", "MaxPoo_");
            size_t at = 0;
            while ((at = bytes.find("Flatten", at)) != std::string::npos) bytes.replace(at, 7, "Flat___");
            read(bytes);
        },
        "operators that are not supported: Flat___, MaxPoo_");
    error_of([] { read(changed("REF::MaxPool:19", "REF::MaxPool:99")); }, "which is not in the list");
    error_of([] { read(changed("REF::MaxPool:19", "Gre::MaxPool:19")); }, "has the type 'Gre::MaxPool:19'");
    error_of([] { read(changed("construct_41:c.bias", "construct_41:d.bias")); }, "two nodes are called");
    error_of([] { read(changed("VALID", "WRONG")); }, "only pad_mode 'valid'");
    error_of(
        [] {
            std::string bytes = file("ms_convnet.mindir");
            read(bytes.replace(bytes.rfind("CNode_54:16"), 11, "CNode_99:16"));
        },
        "is used before it is made, or nowhere made");
}

std::string model_of(const ProtoWriter& graph, const std::string& producer = "MindSpore") {
    return ProtoWriter().bytes(1, "1.1").bytes(2, producer).message(7, graph).text();
}

TEST(MindIr, tensors_whose_data_does_not_fit_are_refused) {
    auto with = [](const ProtoWriter& tensor) { return model_of(ProtoWriter().message(3, tensor)); };
    auto tensor = [](int64_t type, std::initializer_list<int64_t> dims) {
        ProtoWriter t;
        for (int64_t d : dims) t.integer(1, d);
        t.integer(2, type).bytes(7, "g:w");
        return t;
    };
    error_of([&] { read(with(tensor(1, {2, 2}).bytes(9, "abc"))); }, "has 3 bytes of data");
    error_of([&] { read(with(tensor(1, {2}).float32(3, 1).bytes(9, "12345678"))); }, "twice");
    error_of([&] { read(with(tensor(1, {3}).float32(3, 1).float32(3, 1))); }, "has 2 elements");
    error_of([&] { read(with(tensor(1, {-1}).float32(3, 1))); }, "tensor 'g:w'");
    error_of([&] { read(with(tensor(1, {int64_t{1} << 40, int64_t{1} << 40}))); }, "tensor 'g:w'");
    error_of([&] { read(with(tensor(1, {1, 1, 1, 1, 1, 1, 1, 1, 1}).float32(3, 1))); }, "tensor 'g:w'");
    error_of([&] { read(with(tensor(8, {1}).float32(3, 1))); }, "data type 8");
    error_of([&] { read(with(tensor(1, {1}).message(12, ProtoWriter().bytes(1, "../secret")))); }, "in another file");
    // A length of 2 GiB in a short file.
    error_of([] { read(std::string("\x0a\x03") + "1.1\x3a\xff\xff\xff\xff\x07"); },
             "promises 2147483647 bytes, but 0 are left");
    error_of([] { read("\x0b"); }, "is a group");
    error_of([] { read("\x08" + std::string(10, '\xff') + "\x01"); }, "longer than 64 bits");
    error_of([] { read(ProtoWriter().bytes(1, "\xff\xfe").text()); }, "not UTF-8");
}

TEST(MindIr, deep_and_recursive_files_are_refused) {
    ProtoWriter attribute;
    for (int i = 0; i < 1000; ++i) {
        ProtoWriter outer;
        outer.message(17, attribute);
        attribute = outer;
    }
    error_of([&] { read(model_of(ProtoWriter().message(1, ProtoWriter().message(5, attribute)))); }, "nested");

    // main calls g, g calls g.
    auto call = [](const char* output) { return ProtoWriter().bytes(2, output).bytes(3, output).bytes(4, "REF::g"); };
    auto body = [&](const char* name, const char* output) {
        return ProtoWriter().message(1, call(output)).bytes(2, name).message(6, ProtoWriter().bytes(1, output));
    };
    const std::string bytes =
        ProtoWriter().bytes(1, "1.1").message(7, body("main", "main:a")).message(8, body("g", "g:a")).text();
    error_of([&] { read(bytes); }, "graph 'g' calls itself");
}

TEST(MindIr, a_primitive_without_a_name_in_our_own_files_is_refused) {
    const ProtoWriter node =
        ProtoWriter().bytes(2, "f:0").bytes(3, "f:0").bytes(4, "REF::").message(5, ProtoWriter().bytes(1, "shape"));
    const ProtoWriter name = ProtoWriter().bytes(1, "name").bytes(5, "f").integer(16, 8);
    const std::string bytes = ProtoWriter()
                                  .bytes(1, "1.1")
                                  .bytes(2, "Lunaria")
                                  .message(7, ProtoWriter().message(1, node).bytes(2, "f").message(8, name))
                                  .message(12, ProtoWriter().bytes(1, ""))
                                  .text();
    error_of([&] { read(bytes); }, "not known here: ''");
}

TEST(MindIr, arguments_of_a_wrong_kind_in_our_own_files_are_refused) {
    Graph f("f");
    Node* x = f.add_parameter("x", NodeType::of({DType::f32, {2}}));
    f.result = Value(f.add_call(registry().get("sum"), {Value(x), Value("axis"), Value(false), Value()}, {}));
    error_of([&] { read(mindir_of(f)); }, "cannot be \"axis\"");
    Graph g("g");
    Node* y = g.add_parameter("y", NodeType::of({DType::f32, {2}}));
    g.result = Value(g.add_call(registry().get("relu"), {Value(y)}, NodeType::of({DType::f32, {3}})));
    error_of([&] { read(mindir_of(g)); }, "the graph is not valid");
}

}  // namespace
}  // namespace lunaria::ir
