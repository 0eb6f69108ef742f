#include "jit/lite/training.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/ir/substitution.h"
#include "core/ir/text.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"
#include "jit/lite/device.h"

namespace lunaria::lite {

namespace {

constexpr std::string_view kWhere = "lite.convert";

// Operators that change variables.
struct Writers {
    const Op& assign = registry().get("assign");
    const Op& add = registry().get("assign_add");
    const Op& subtract = registry().get("assign_sub");
    const Op& move_statistics = registry().get("batch_norm_update");
};

// A copy of the graph without effects: the newest value of a variable stands for it.
class WithoutEffects {
  public:
    WithoutEffects(const ir::Graph& from, const std::map<std::string, Tensor>& found)
        : from_(from), found_(found), to_(std::make_unique<ir::Graph>(from.name)), values_(to_.get()), builder_(*to_) {}

    std::unique_ptr<ir::Graph> run() {
        // Inputs before variables: the call may have found them in any order.
        for (const bool is_given : {true, false})
            for (const ir::Node* p : from_.parameters())
                if (is_given != found_.contains(p->name)) add_parameter(*p);
        for (const ir::Node* node : from_.body()) add(*node);
        std::vector<lunaria::Value> results;
        flatten(values_(from_.result), results);
        outputs = results.size();
        for (const auto& [name, node] : states_) {
            results.push_back(node);
            states.push_back(name);
        }
        to_->result = lunaria::Value::list(std::move(results));
        return std::move(to_);
    }

    size_t outputs = 0;               // results of the function
    std::vector<std::string> states;  // variables whose new values follow them
    std::vector<std::string> inputs, variables;

  private:
    [[noreturn]] static void refuse(const ir::Span& span, const std::string& why) {
        const std::string place = ir::place_text(span);
        throw state_error(kWhere, place.empty() ? why : str(place, ": ", why));
    }

    void add_parameter(const ir::Node& p) {
        const auto known = found_.find(p.name);
        if (known != found_.end() && !known->second.parameter()) {
            values_[&p] = lunaria::Value(to_->add_constant(lunaria::Value(known->second.contiguous().apart())));
            return;
        }
        if (p.type.kind != ir::NodeType::Kind::tensor || !p.type.tensor.shape.known())
            refuse({}, str("the step reads ", p.name, ", which is no tensor, outside of the call"));
        ir::Node* const made = to_->add_parameter(p.name, p.type);
        values_[&p] = lunaria::Value(made);
        (known == found_.end() ? inputs : variables).push_back(p.name);
        if (known != found_.end()) variable_of_[&p] = p.name;
    }

    void add(const ir::Node& node) {
        builder_.span = node.span;
        if (node.op && node.op->writes()) return write(node);
        values_[&node] = values_.copy(node);
        if (values_[&node].is_node()) values_[&node].node()->span = node.span;
    }

    // Puts `value` in place of the variable from here on.
    void set(const ir::Node& node, size_t operand, const lunaria::Value& value) {
        const lunaria::Value& target = node.args[operand];
        const auto variable = target.is_node() ? variable_of_.find(target.node()) : variable_of_.end();
        if (variable == variable_of_.end())
            refuse(node.span, str(node.op->name(), " changes a tensor that is no parameter of the network"));
        const ir::NodeType type = target.node()->type;
        lunaria::Value made = value;
        if (!(made.is_node() && made.node()->type == type)) {
            made = graph::emit(builder_, graph::ops().cast, {made, lunaria::Value(type.tensor.dtype)});
            made = graph::emit(builder_, graph::ops().broadcast_to, {made, shape_value(type.tensor.shape)});
        }
        values_[target.node()] = made;
        states_[variable->second] = made;
    }
    static lunaria::Value shape_value(const Shape& shape) {
        std::vector<lunaria::Value> sizes;
        for (const int64_t n : shape.dims()) sizes.emplace_back(n);
        return lunaria::Value::list(std::move(sizes));
    }

    void write(const ir::Node& node) {
        const auto& ops = graph::ops();
        std::vector<lunaria::Value> args;
        for (const lunaria::Value& arg : node.args) args.push_back(values_(arg));
        if (node.op == &writers_.assign) {
            set(node, 0, args[1]);
        } else if (node.op == &writers_.add || node.op == &writers_.subtract) {
            set(node, 0, graph::emit(builder_, node.op == &writers_.add ? ops.add : ops.sub, {args[0], args[1]}));
        } else if (node.op == &writers_.move_statistics) {
            const double keep = args[4].number(), count = args[5].number();
            for (size_t i = 0; i < 2; ++i) {
                const double share = (1 - keep) * (i == 1 && count > 1 ? count / (count - 1) : 1);
                set(node, i,
                    graph::emit(builder_, ops.add,
                                {graph::emit(builder_, ops.mul, {args[i], lunaria::Value(keep)}),
                                 graph::emit(builder_, ops.mul, {args[i + 2], lunaria::Value(share)})}));
            }
            values_[&node] = lunaria::Value::list({});
            return;
        } else {
            refuse(node.span, str(node.op->name(), " is no step of a light model"));
        }
        values_[&node] = values_[node.args[0].node()];
        variable_of_[&node] = variable_of_.at(node.args[0].node());
    }

    static void flatten(const lunaria::Value& v, std::vector<lunaria::Value>& into) {
        if (v.is_list())
            for (const lunaria::Value& item : v.items()) flatten(item, into);
        else if (v.is_node())
            into.push_back(v);
        else
            throw state_error(kWhere, str("the step returns ", to_string(v), ", which is no tensor"));
    }

    const ir::Graph& from_;
    const std::map<std::string, Tensor>& found_;
    std::unique_ptr<ir::Graph> to_;
    ir::Substitution values_;
    ir::GraphBuilder builder_;
    const Writers writers_;
    std::unordered_map<const ir::Node*, std::string> variable_of_;
    std::map<std::string, lunaria::Value> states_;
};

// Norms of batches, and the gradients of norms, as what they consist of.
class Norms {
  public:
    explicit Norms(ir::GraphBuilder& b) : b_(b) {}

    lunaria::Value of(const ir::Node& node) {
        if (node.op == &batch_) return batch(node);
        if (node.op == &batch_gradient_) return gradients(node, 3, [&](int rank) { return others_than(1, rank); });
        if (node.op != &layer_gradient_) return {};
        const int64_t count = node.args[3].integer();
        return gradients(node, 4, [&](int rank) {
            std::vector<int64_t> axes;
            for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
            return axes;
        });
    }

  private:
    using Axes = std::vector<int64_t>;
    static Axes others_than(int64_t axis, int rank) {
        Axes axes;
        for (int64_t i = 0; i < rank; ++i)
            if (i != axis) axes.push_back(i);
        return axes;
    }
    static int rank_of(const lunaria::Value& x) { return x.node()->type.tensor.shape.rank(); }

    lunaria::Value call(const Op& op, std::initializer_list<lunaria::Value> args) { return graph::emit(b_, op, args); }
    lunaria::Value mul(const lunaria::Value& a, const lunaria::Value& b) { return call(graph::ops().mul, {a, b}); }
    lunaria::Value sub(const lunaria::Value& a, const lunaria::Value& b) { return call(graph::ops().sub, {a, b}); }
    lunaria::Value sum(const lunaria::Value& x, const Axes& axes, bool keeps) {
        if (axes.empty()) return x;
        return call(graph::ops().sum, {x, lunaria::Value::ints(axes), lunaria::Value(keeps), lunaria::Value()});
    }
    lunaria::Value mean(const lunaria::Value& x, const Axes& axes) {
        double count = 1;
        for (const int64_t axis : axes)
            count *= static_cast<double>(x.node()->type.tensor.shape[static_cast<int>(axis)]);
        return mul(sum(x, axes, true), lunaria::Value(1 / count));
    }
    lunaria::Value channels(const lunaria::Value& weight, const lunaria::Value& x) {
        Axes shape(static_cast<size_t>(rank_of(x)), 1);
        shape[1] = weight.node()->type.tensor.shape.size();
        return call(graph::ops().reshape, {weight, lunaria::Value::ints(shape)});
    }
    struct Centred {
        lunaria::Value mean, variance, inverse, normal;  // inverse: of the deviation
    };
    Centred centred(const lunaria::Value& x, const Axes& axes, const lunaria::Value& eps) {
        Centred c;
        c.mean = mean(x, axes);
        const lunaria::Value difference = sub(x, c.mean);
        c.variance = mean(mul(difference, difference), axes);
        c.inverse = call(rsqrt_, {call(graph::ops().add, {c.variance, eps})});
        c.normal = mul(difference, c.inverse);
        return c;
    }

    lunaria::Value batch(const ir::Node& node) {
        const lunaria::Value& x = node.args[0];
        const Centred c = centred(x, others_than(1, rank_of(x)), node.args[3]);
        lunaria::Value y = c.normal;
        if (node.args[1].is_node()) y = mul(y, channels(node.args[1], x));
        if (node.args[2].is_node()) y = call(graph::ops().add, {y, channels(node.args[2], x)});
        const lunaria::Value sizes = lunaria::Value::ints(Axes{x.node()->type.tensor.shape[1]});
        return lunaria::Value::list(
            {y, call(graph::ops().reshape, {c.mean, sizes}), call(graph::ops().reshape, {c.variance, sizes})});
    }

    // Of x, weight and bias; the number `eps` says which argument that is. `axes_of`: the axes of the statistics.
    template <class F>
    lunaria::Value gradients(const ir::Node& node, size_t eps, F&& axes_of) {
        const lunaria::Value &dy = node.args[0], &x = node.args[1], &weight = node.args[2];
        const bool is_layer = eps == 4;
        const Axes axes = axes_of(rank_of(x));
        const Centred c = centred(x, axes, node.args[eps]);
        lunaria::Value d = dy;
        if (weight.is_node()) d = mul(dy, is_layer ? weight : channels(weight, x));
        const lunaria::Value dx =
            mul(c.inverse, sub(sub(d, mean(d, axes)), mul(c.normal, mean(mul(d, c.normal), axes))));
        Axes rest;
        for (int axis = 0; axis < rank_of(x); ++axis) {
            const bool is_statistic = std::ranges::find(axes, axis) != axes.end();
            if (is_statistic != is_layer) rest.push_back(axis);
        }
        return lunaria::Value::list({dx, sum(mul(dy, c.normal), rest, false), sum(dy, rest, false)});
    }

    ir::GraphBuilder& b_;
    const Op &batch_ = registry().get("batch_norm_train"), &batch_gradient_ = registry().get("batch_norm_grad"),
             &layer_gradient_ = registry().get("layer_norm_grad"), &rsqrt_ = registry().get("rsqrt");
};

// Inputs from `first` on are variables with the elements of these tensors.
void make_variables(Converted& made, size_t first, const std::map<std::string, Tensor>& found) {
    Model& model = made.model;
    for (size_t i = first; i < model.inputs.size(); ++i) {
        Value& value = model.values[model.inputs[i]];
        const Tensor tensor = found.at(value.name).to_host().contiguous().apart();
        value.home = Value::Home::variable;
        value.data = static_cast<const std::byte*>(tensor.raw());
        value.bytes = static_cast<uint64_t>(tensor.nbytes());
        made.constants.push_back(tensor);
    }
    model.inputs.resize(first);
}

}  // namespace

Converted convert_step(const ir::Graph& step, const std::map<std::string, Tensor>& found,
                       const ConvertOptions& options) {
    WithoutEffects pure(step, found);
    const std::unique_ptr<ir::Graph> graph = pure.run();
    graph::rewrite(*graph,
                   [](ir::Node& node, ir::GraphBuilder& b) { return node.op ? Norms(b).of(node) : lunaria::Value(); });
    ConvertOptions all = options;
    while (all.outputs.size() < pure.outputs) all.outputs.push_back(str("output", all.outputs.size()));
    for (const std::string& name : pure.states) all.outputs.push_back("state:" + name);
    all.inputs = pure.inputs;
    all.inputs.insert(all.inputs.end(), pure.variables.begin(), pure.variables.end());
    Converted made = convert(*graph, all);
    make_variables(made, pure.inputs.size(), found);
    for (size_t i = 0; i < options.inputs.size() && i < made.model.inputs.size(); ++i)
        made.model.values[made.model.inputs[i]].name = options.inputs[i];
    return made;
}

void embed(Converted& into, std::string name, const std::string& file) {
    const Tensor bytes = Tensor::empty(DType::u8, Shape{static_cast<int64_t>(file.size())});
    std::memcpy(bytes.data<char>(), file.data(), file.size());
    Value value;
    value.name = std::move(name);
    value.dtype = DType::u8;
    value.home = Value::Home::constant;
    value.shape = {static_cast<int64_t>(file.size())};
    value.data = static_cast<const std::byte*>(bytes.raw());
    value.bytes = file.size();
    into.constants.push_back(bytes);
    into.model.values.push_back(std::move(value));
}

}  // namespace lunaria::lite
