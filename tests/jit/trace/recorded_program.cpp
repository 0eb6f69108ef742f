#include "tests/jit/trace/recorded_program.h"

#include <gtest/gtest.h>

#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "jit/language.h"
#include "jit/trace/region.h"

namespace lunaria::testing {

namespace {

void for_each_block(const trace::Block& block, const std::function<void(const trace::Block&)>& f) {
    f(block);
    for (const auto& next : block.next) for_each_block(*next, f);
}

}  // namespace

bool has_same_bits(const Value& a, const Value& b) {
    if (a.is_tensor() && b.is_tensor() && !a.tensor().same_body(b.tensor())) {
        const Tensor &x = a.tensor(), &y = b.tensor();
        if (x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
        for (int64_t i = 0; i < x.size(); ++i)
            if (!trace::identical(Value(x.at(i)), Value(y.at(i)))) return false;
        return true;
    }
    return same_value(a, b);
}

RecordedProgram::~RecordedProgram() {
    const std::function<void(const ir::Graph&)> note = [&](const ir::Graph& graph) {
        for (const auto& node : graph.nodes())
            if (node->op && lua::is_primitive(*node->op)) primitives_that_ran().insert(std::string(node->op->name()));
        for (const auto& inner : graph.inner()) note(*inner);
    };
    if (compiled().tree.graph) note(*compiled().tree.graph);
}

void RecordedProgram::check(std::initializer_list<Value> args, int line) {
    const std::vector<Value> expected = eager(args), got = call(args);
    ASSERT_EQ(got.size(), expected.size()) << "line " << line;
    for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(has_same_bits(got[i], expected[i]))
            << "line " << line << ", result " << i << ": " << to_string(got[i]) << ", not " << to_string(expected[i]);
    text();
}

std::string RecordedProgram::error(std::initializer_list<Value> args) {
    const vm::Host::Protected outcome = host().call_protected([&] { call(args); });
    if (outcome.ok) return "no error";
    return outcome.error.kind() == Value::Kind::string ? outcome.error.string() : to_string(outcome.error);
}

int RecordedProgram::steps(trace::Step::Kind kind) {
    int count = 0;
    trace::for_each_step(compiled().tree, [&](trace::Step& step) { count += step.kind == kind; });
    return count;
}

int RecordedProgram::graphs() {
    int count = 0;
    for_each_block(compiled().tree.root, [&](const trace::Block& block) {
        for (const auto& region : block.regions)
            region->for_each_executable([&](const graph::Executable&) { ++count; });
    });
    return count;
}

size_t RecordedProgram::guard_groups() {
    size_t count = 0;
    for_each_block(compiled().tree.root, [&](const trace::Block& block) {
        for (const auto& group : block.groups) count += !group.guards.empty();
        for (const auto& region : block.regions) count += !region->guards.empty();
    });
    return count;
}

std::string RecordedProgram::text() {
    trace::Tree& tree = compiled().tree;
    trace::tell_types(tree);
    tree.root.write_ways();
    ir::verify(*tree.graph);
    return ir::print(*tree.graph);
}

Value floats(std::vector<double> values, Shape shape) {
    if (shape.rank() == 0) shape.push_back(static_cast<int64_t>(values.size()));
    Tensor t = Tensor::empty(DType::f32, shape);
    for (size_t i = 0; i < values.size(); ++i) t.set_at(static_cast<int64_t>(i), values[i]);
    return Value(t);
}

}  // namespace lunaria::testing
