// Every operator as a graph on laid-out operands gives what its call gives: the same values, layouts and movements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/devices.h"
#include "core/base/error.h"
#include "core/ir/builder.h"
#include "core/ops/sample.h"
#include "core/parallel/laid.h"
#include "core/parallel/traffic.h"
#include "core/random/random.h"
#include "jit/parallel/divided_forms.h"

namespace lunaria::parallel {
namespace {

class Partition : public testing::Test {
  protected:
    static void SetUpTestSuite() { set_up_devices(); }
};

// Mesh axis m cuts an axis of each tensor; negative: from behind.
struct Way {
    const Mesh& mesh;
    std::vector<int> axes;
};

const Mesh& mesh(std::initializer_list<int64_t> sizes) {
    const std::vector<std::string> names = {"a", "b", "c"};
    const std::vector<int64_t> list(sizes);
    return Mesh::of("test", list, {names.data(), list.size()});
}

Tensor laid_out(const Tensor& t, const Way& way) {
    Distribution::Cuts cuts(static_cast<size_t>(t.rank()));
    for (size_t m = 0; m < way.axes.size(); ++m) {
        const int axis = way.axes[m] < 0 ? way.axes[m] + t.rank() : way.axes[m];
        if (axis >= 0 && axis < t.rank() && t.dim(axis) > 1)
            cuts[static_cast<size_t>(axis)].push_back(static_cast<int>(m));
    }
    return tensor_of(in_layout(content(t), *Distribution::of(way.mesh, cuts)));
}

template <class F>
Value with_tensors(const Value& v, F&& f) {
    if (v.is_tensor()) return f(v.tensor());
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(with_tensors(item, f));
    return Value::list(std::move(items));
}

std::vector<Tensor> tensors_in(const Value& v) {
    std::vector<Tensor> list;
    with_tensors(v, [&](const Tensor& t) {
        list.push_back(t);
        return Value();
    });
    return list;
}

std::string layout_text(const Tensor& t) {
    const Distribution* layout = layout_of(t);
    return layout ? layout->text() : "whole";
}

std::string difference(const Tensor& wanted, const Tensor& got) {
    if (wanted.dtype() != got.dtype() || !(wanted.shape() == got.shape()))
        return str(name_of(got.dtype()), got.shape(), " instead of ", name_of(wanted.dtype()), wanted.shape());
    if (layout_text(wanted) != layout_text(got))
        return str("the layout is ", layout_text(got), " instead of ", layout_text(wanted));
    const Tensor a = wanted.to_host().cast(is_complex(wanted.dtype()) ? DType::c128 : DType::f64).contiguous(),
                 b = got.to_host().cast(a.dtype()).contiguous();
    const double tolerance = is_half(wanted.dtype()) ? 2e-2 : 1e-5;
    const int64_t count = a.size() * (is_complex(a.dtype()) ? 2 : 1);
    for (int64_t i = 0; i < count; ++i) {
        const double x = static_cast<const double*>(a.raw())[i], y = static_cast<const double*>(b.raw())[i];
        if (std::isnan(x) && std::isnan(y)) continue;
        if (x == y || std::abs(x - y) <= tolerance * (1 + std::abs(x))) continue;
        return str("element ", i, " is ", y, " instead of ", x);
    }
    return "";
}

// What moved, line by line.
std::vector<std::string> moved() {
    std::vector<std::string> list;
    for (const MovementTotal& m : movements())
        list.push_back(
            str(m.operation, ' ', m.operand, ' ', m.from, ' ', m.to, ' ', m.path, ' ', m.calls, ' ', m.bytes));
    std::ranges::sort(list);
    forget_movements();
    return list;
}

struct Outcome {
    std::string difference;
    bool divided = false;
};

class Comparison {
  public:
    Comparison(const Op& op, const std::string& sample, const Way& way) : op_(op) {
        for (const Value& v : sample_args(op, sample, 7))
            args_.push_back(with_tensors(v, [&](const Tensor& t) { return Value(laid_out(t, way)); }));
    }

    Outcome run() {
        const RandomStream random = default_generator().state();
        forget_movements();
        Value wanted;
        try {
            wanted = lunaria::run(op_, args_);
        } catch (const Error&) {
            return {"", true};
        }
        const std::vector<std::string> expected_moves = moved();
        const std::vector<Tensor> all = tensors_in(wanted);
        const std::unique_ptr<graph::Divided> divided = make_divided();
        std::vector<Tensor> inputs = tensors_in(Value::list(args_)), outputs(all.size());
        if (inputs.empty() || all.empty()) return {"", true};
        const std::function<std::unique_ptr<ir::Graph>()> make = [&] { return graph_of(inputs, all.size()); };
        for (int turn = 0; turn < 2; ++turn) {
            default_generator().set_state(random);
            forget_movements();
            if (!divided->run({inputs, {}, make}, outputs, [] {})) return {"", false};
            const std::vector<std::string> moves = moved();
            // Graphs convert operands to their joint dtype before they move.
            const bool alike =
                std::ranges::all_of(inputs, [&](const Tensor& t) { return t.dtype() == inputs[0].dtype(); });
            if (alike && moves != expected_moves)
                return {
                    "moved " + testing::PrintToString(moves) + " instead of " + testing::PrintToString(expected_moves),
                    true};
        }
        for (size_t i = 0; i < all.size(); ++i)
            if (const std::string text = difference(all[i], outputs[i]); !text.empty()) return {text, true};
        return {"", true};
    }

  private:
    std::unique_ptr<ir::Graph> graph_of(std::span<const Tensor> inputs, size_t results) const {
        auto graph = std::make_unique<ir::Graph>("call");
        ir::GraphBuilder builder(*graph);
        std::vector<Value> parameters;
        for (const Tensor& t : inputs)
            parameters.emplace_back(graph->add_parameter("x", ir::NodeType::of({t.dtype(), t.shape(), nullptr})));
        size_t next = 0;
        std::vector<Value> args;
        for (const Value& v : args_) args.push_back(with_tensors(v, [&](const Tensor&) { return parameters[next++]; }));
        const Value made = builder.emit(op_, args);
        std::vector<Value> list;
        const bool is_list = made.is_list() || (made.is_node() && made.node()->type.kind == ir::NodeType::Kind::list);
        for (size_t i = 0; i < results; ++i) list.push_back(is_list ? builder.item(made, i) : made);
        for (const Value& v : list)
            if (!v.is_node()) return nullptr;
        graph->result = Value::list(std::move(list));
        return graph;
    }

    const Op& op_;
    std::vector<Value> args_;
};

TEST_F(Partition, Graphs_of_one_operator_do_what_its_call_does) {
    const Way ways[] = {{mesh({2}), {0}}, {mesh({3}), {-1}}, {mesh({2, 2}), {0, -1}}, {mesh({2, 2}), {1, 0}}};
    int calls = 0, divided = 0;
    std::vector<std::string> alone;
    for (const auto& op : registry().all()) {
        if (op->is_branch || op->is_closure || op->host_fn || op->is_ordered()) continue;
        for (const char* sample : op->samples)
            for (const Way& way : ways) {
                Outcome outcome;
                try {
                    outcome = Comparison(*op, sample, way).run();
                } catch (const std::exception& e) {
                    outcome = {e.what(), true};
                }
                EXPECT_EQ(outcome.difference, "") << op->name() << "(" << sample << ") on " << way.mesh.text()
                                                  << " cut along " << testing::PrintToString(way.axes);
                ++calls;
                divided += outcome.divided;
                if (!outcome.divided && (alone.empty() || alone.back() != op->name())) alone.emplace_back(op->name());
            }
    }
    EXPECT_GT(calls, 2000);
    // The sizes of their results follow from values, or they have no rule of inference.
    EXPECT_GT(divided, calls * 9 / 10) << testing::PrintToString(alone);
    RecordProperty("one by one", testing::PrintToString(alone));
}

}  // namespace
}  // namespace lunaria::parallel
