#include "core/custom/custom_op.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/batching/rules.h"
#include "core/custom/defined_ops.h"
#include "core/ir/printer.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "core/operator/infer.h"
#include "core/operator/open.h"

namespace lunaria {

namespace {

// The defined operators, under the lock of defined_ops().
struct Known {
    Registry registry;  // stays empty; it marks these operators
    std::unordered_map<std::string, CustomOp*> by_content;
    std::vector<Kernel> kernels;
};

Known& known() {
    static Known* instance = new Known;
    return *instance;
}

// Emits the formula with the operands in place of its parameters.
Value replay(const ir::Graph& formula, std::span<const Value> args, Builder& builder) {
    return ir::replay(
        formula, args, [&](const Op& op, std::vector<Value> operands) { return builder.emit(op, std::move(operands)); },
        [&](const Value& results, size_t i) { return builder.item(results, i); });
}

std::unique_ptr<Formula> empty_formula(std::span<const CustomOp::Input> inputs, DType dtype) {
    auto made = std::make_unique<Formula>();
    for (const CustomOp::Input& input : inputs)
        made->graph.add_parameter(input.name, ir::NodeType::of({input.mask ? DType::boolean : dtype, {}}));
    return made;
}

std::vector<Value> parameters_of(const ir::Graph& graph) {
    std::vector<Value> values;
    for (ir::Node* p : graph.parameters()) values.emplace_back(p);
    return values;
}

void remove_unused(ir::Graph& graph) {
    std::unordered_set<const ir::Node*> used;
    auto use = [&](const Value& v) { ir::for_each_node(v, [&](ir::Node* n) { used.insert(n); }); };
    use(graph.result);
    std::vector<ir::Node*> kept;
    for (size_t i = graph.body().size(); i-- > 0;) {
        ir::Node* node = graph.body()[i];
        if (!used.contains(node)) continue;
        for (const Value& arg : node->args) use(arg);
        kept.push_back(node);
    }
    std::ranges::reverse(kept);
    graph.reorder_body(std::move(kept));
}

// Derives a formula by one input. A choice between two formulas (`where` at the end of a formula) is differentiated as
// a choice between their derivatives, so that the branch not taken contributes nothing, even where it is infinite.
class Derivation {
  public:
    Derivation(const Formula& from, size_t input, std::span<const CustomOp::Input> inputs, DType dtype)
        : from_(from), made_(empty_formula(inputs, dtype)), builder_(made_->graph) {
        // The last of the new inputs is the cotangent.
        made_->graph.parameters().back()->type = ir::NodeType::of({from.dtype, {}});
        dout_ = Expr(builder_, Value(made_->graph.parameters().back()));
        builder_.expands = true;
        const ir::Graph& graph = from.graph;
        for (size_t i = 0; i < graph.parameters().size(); ++i) {
            map_[graph.parameters()[i]] = Value(made_->graph.parameters()[i]);
            if (i == input) depends_.insert(graph.parameters()[i]);
        }
        for (const ir::Node* node : graph.body()) {
            std::vector<Value> args;
            bool depends = false;
            for (const Value& arg : node->args) {
                args.push_back(mapped(arg));
                ir::for_each_node(arg, [&](ir::Node* n) { depends |= depends_.contains(n); });
            }
            if (depends) depends_.insert(node);
            ir::Node* copy = node->op ? made_->graph.add_call(*node->op, std::move(args), node->type)
                                      : made_->graph.add_item(*args.at(0).node(), node->index);
            map_[node] = Value(copy);
        }
        input_ = graph.parameters()[input];
    }

    std::unique_ptr<Formula> run() {
        const DType wanted = input_->type.tensor.dtype;
        Expr result;
        if (is_float(from_.dtype) && is_float(wanted)) result = of(from_.graph.result);
        made_->zero = !result;
        made_->dtype = wanted;
        if (result) made_->graph.result = result.cast(wanted).value();
        remove_unused(made_->graph);
        return std::move(made_);
    }

  private:
    Value mapped(const Value& v) {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(mapped(item));
            return Value::list(std::move(items));
        }
        if (!v.is_node()) return v;
        if (v.node()->kind == ir::NodeKind::constant) return Value(made_->graph.add_constant(v.node()->constant));
        return map_.at(v.node());
    }

    // The cotangent of the input that follows from this value; none: zero.
    Expr of(const Value& v) {
        if (!v.is_node() || !depends_.contains(v.node())) return {};
        const ir::Node* node = v.node();
        if (node == input_) return dout_;
        if (auto found = done_.find(node); found != done_.end()) return found->second;
        Expr result;
        static const Op& where = registry().get("where");
        if (node->op == &where) {
            const Expr a = of(node->args[1]), b = of(node->args[2]);
            if (a || b)
                result = builder_.call(
                    "where", {Expr(builder_, mapped(node->args[0])), a ? Arg(a) : Arg(0.0), b ? Arg(b) : Arg(0.0)});
        } else {
            result = reverse(node);
        }
        return done_[node] = result;
    }

    Expr reverse(const ir::Node* target) {
        std::unordered_map<const ir::Node*, Expr> cotangents;
        cotangents[target] = dout_;
        const auto& body = from_.graph.body();
        for (size_t k = body.size(); k-- > 0;) {
            const ir::Node* node = body[k];
            auto found = cotangents.find(node);
            if (found == cotangents.end()) continue;
            const Expr d = found->second;
            if (!node->op->grad_fn) {
                if (node->op->no_grad_reason) continue;
                throw state_error(node->op->name(), "has no gradient").hint("use it outside of the operator");
            }
            std::vector<Value> args;
            for (const Value& arg : node->args) args.push_back(mapped(arg));
            const Expr outs[] = {Expr(builder_, map_.at(node))}, douts[] = {d};
            const Call call(*node->op, args, promoted_dtype(*node->op, args));
            const Grads grads = gradients(GradRule(call, builder_, outs, douts));
            for (size_t i = 0; i < grads.size(); ++i) {
                const Value& arg = node->args[i];
                if (!grads[i] || !arg.is_node() || !depends_.contains(arg.node())) continue;
                const DType t = arg.node()->type.tensor.dtype;
                if (!is_float(t)) continue;
                Expr& sum = cotangents[arg.node()];
                sum = sum ? sum + grads[i].cast(t) : grads[i].cast(t);
            }
        }
        return cotangents[input_];
    }

    const Formula& from_;
    std::unique_ptr<Formula> made_;
    ir::GraphBuilder builder_;
    Expr dout_;
    const ir::Node* input_ = nullptr;
    std::unordered_map<const ir::Node*, Value> map_;
    std::unordered_set<const ir::Node*> depends_;
    std::unordered_map<const ir::Node*, Expr> done_;
};

// The most points that are gathered at once. If there are more, those along the last index come first.
constexpr int64_t kMostPoints = 4096;

}  // namespace

// The rules of the entries are plain functions.
struct CustomRules {
    static const CustomOp& of(const Call& c) { return static_cast<const CustomOp&>(c.op); }

    static Types infer(const Call& c) {
        Shape shape;
        for (size_t i = 0; i < c.args.size(); ++i) shape = broadcast(c.name(), shape, c.shape(i));
        return {{of(c).formula(c.dtype).dtype, shape}};
    }
    static Expr expand(const ExpandCall& c) {
        const Expr made(c.builder, replay(of(c).formula(c.dtype).graph, c.args, c.builder));
        // A derivative may depend on only some of the operands.
        const Shape shape = infer(c)[0].shape;
        return made.shape() == shape ? made : made.broadcast_to(shape);
    }
    static Grads grad(const GradRule& g) {
        const CustomOp& op = of(g);
        Grads grads(g.args.size());
        for (size_t i = 0; i < g.args.size(); ++i) {
            const Value& v = g.args[i];
            if ((!v.is_tensor() && !v.is_node()) || !is_float(g.type(i).dtype)) continue;
            const CustomOp& derivative = op.derivative(i);
            const Formula& formula = derivative.formula(g.dtype);
            if (formula.zero) continue;
            Expr d = g.dout;
            if (!(formula.graph.result.is_node() && formula.graph.result.node() == formula.graph.parameters().back())) {
                std::vector<Value> args(g.args.begin(), g.args.end());
                args.push_back(g.dout.value());
                d = Expr(g.builder, g.builder.emit(derivative, args));
            }
            grads[i] = g.unbroadcast(d, i).cast(g.type(i).dtype);
        }
        return grads;
    }

    static Types infer_rule(const Call& c) {
        const IndexRule& rule = *of(c).rule();
        auto sizes = index_sizes(c, rule);
        Shape shape;
        for (const std::string& index : rule.output) shape.push_back(sizes.at(index));
        DType dtype = of(c).formula(c.dtype).dtype;
        if (!rule.reduce.empty()) {
            ir::Graph scratch("scratch");
            ir::GraphBuilder builder(scratch);
            const Value v(scratch.add_parameter("x", ir::NodeType::of({dtype, {2}})));
            dtype = reduced(Expr(builder, v), rule, 0).dtype();
        }
        return {{dtype, shape}};
    }
    static Expr expand_rule(const ExpandCall& c) {
        const CustomOp& op = of(c);
        const IndexRule& rule = *op.rule();
        const IndexSizes sizes = index_sizes(c, rule);
        std::vector<Value> args;
        for (size_t i = 0; i < rule.inputs.size(); ++i) args.push_back(AtPoints(c, rule, sizes, i).value().value());
        Expr result(c.builder, c.builder.emit(*op.element_, args));
        if (rule.reduce.empty()) return result;
        const auto kept = static_cast<int>(rule.output.size());
        int64_t points = 1;
        for (int i = kept; i < result.rank(); ++i) points *= result.shape()[i];
        // An empty product is 1 along any axis; an empty maximum is an error either way.
        if (points > kMostPoints && result.rank() > kept + 1) result = reduced(result, rule, result.rank() - 1);
        return reduced(result, rule, kept);
    }
    // For sums: at each point the derivative by the operand, times the cotangent of the result to which the point
    // belongs, summed over the points that read the same element.
    static Grads grad_rule(const GradRule& g) {
        const CustomOp& op = of(g);
        const IndexRule& rule = *op.rule();
        const IndexSizes sizes = index_sizes(g, rule);
        Shape shape;
        for (const std::string& index : rule.output) shape.push_back(sizes.at(index));
        Expr dout = g.dout.broadcast_to(shape);
        if (rule.reduce == "mean") {
            double points = 1;
            for (const std::string& index : rule.indices())
                if (std::ranges::find(rule.output, index) == rule.output.end())
                    points *= static_cast<double>(sizes.at(index));
            dout = dout / points;
        }
        Grads grads(g.args.size());
        for (size_t i = 0; i < g.args.size(); ++i) {
            const Value& v = g.args[i];
            if ((!v.is_tensor() && !v.is_node()) || !is_float(g.type(i).dtype)) continue;
            if (op.element_->derivative(i).formula(g.dtype).zero) continue;
            std::vector<Value> args(g.args.begin(), g.args.end());
            args.push_back(dout.value());
            if (!rule.is_plain(i)) {
                if (Expr d = gathered(g, i, sizes, args)) {
                    grads[i] = d.cast(g.type(i).dtype);
                    continue;
                }
            }
            Expr d(g.builder, g.builder.emit(op.derivative(i), args));
            if (!rule.is_plain(i)) {
                // Windows overlap, so their cotangents are scattered back one step of the expansion at a time.
                const AtPoints seen(g, rule, sizes, i);
                d = seen.adjoint(d.reshape(seen.value().shape()));
            }
            grads[i] = d.cast(g.type(i).dtype);
        }
        return grads;
    }
    static Expr gathered(const GradRule& g, size_t i, const IndexSizes& sizes, std::vector<Value> args) {
        const auto rule = gather_rule(*of(g).rule(), i, sizes);
        const CustomOp* op = rule ? of(g).gathering(i, *rule, g.dtype) : nullptr;
        if (!op) return {};
        for (size_t k = 0; k < args.size(); ++k)
            if (rule->reversed[k].rank() > 0)
                args[k] = g.builder.call("flip", {Expr(g.builder, args[k]), Arg(rule->reversed[k])}).value();
        return {g.builder, g.builder.emit(*op, args)};
    }
    static Expr reduced(const Expr& e, const IndexRule& rule, int from) {
        Shape axes;
        for (int i = from; i < e.rank(); ++i) axes.push_back(i);
        return call(rule.reduce, {e, Arg(axes)});
    }
};

CustomOp::CustomOp(std::string name, std::string doc, std::vector<Input> inputs)
    : Op("custom()", known().registry), name_(std::move(name)), doc_(std::move(doc)), inputs_(std::move(inputs)) {
    text_ = name_ + "(";
    for (const Input& input : inputs_) {
        Param param;
        param.name = input.name;
        param.type = input.mask ? ArgType::mask : ArgType::same;
        signature.params.push_back(param);
        promotes |= !input.mask;
        text_ += str(text_.back() == '(' ? "" : ", ", input.name, ": ", input.mask ? "mask" : "same");
    }
    text_ += ")";
    signature.name = name_;
    signature.text = text_;
    doc_text = doc_.c_str();
    is_method = false;
}

const CustomOp& CustomOp::define(std::string name, std::string doc, std::vector<Input> inputs,
                                 const ir::Graph& formula) {
    std::string content = str(name, "\n", doc, "\n", ir::print(formula));
    for (const Input& input : inputs) content += str("\n", input.name, input.mask);
    Known& k = known();
    std::lock_guard lock(defined_ops().mutex);
    // A cell of a notebook may run again and define the same operator.
    if (auto found = k.by_content.find(content); found != k.by_content.end()) return *found->second;
    std::unique_ptr<CustomOp> op(new CustomOp(defined_ops().free_name(name), std::move(doc), std::move(inputs)));
    op->original_ = empty_formula(op->inputs_, DType::f32);
    auto& original = const_cast<Formula&>(*op->original_);
    ir::GraphBuilder builder(original.graph);
    original.graph.result = replay(formula, parameters_of(original.graph), builder);
    op->takes_strides = op->takes_halves = true;
    op->batch_fn = batch::elementwise;
    op->infer_fn = CustomRules::infer;
    op->expand_fn = CustomRules::expand;
    op->grad_fn = CustomRules::grad;
    return *(k.by_content[content] = &defined_ops().add(std::move(op)));
}

const CustomOp& CustomOp::define(std::string name, std::string doc, std::vector<Input> inputs, const ir::Graph& formula,
                                 IndexRule rule) {
    const CustomOp& element = define(name + ".point", doc, inputs, formula);
    Known& k = known();
    std::lock_guard lock(defined_ops().mutex);
    const std::string content = str(element.name(), "\n", doc, "\n", rule.text());
    if (auto found = k.by_content.find(content); found != k.by_content.end()) return *found->second;
    std::unique_ptr<CustomOp> op(new CustomOp(defined_ops().free_name(name), std::move(doc), std::move(inputs)));
    op->set_rule(std::move(rule), element);
    return *(k.by_content[content] = &defined_ops().add(std::move(op)));
}

void CustomOp::set_rule(IndexRule rule, const CustomOp& element) {
    element_ = &element;
    rule_ = std::move(rule);
    takes_strides = takes_halves = true;
    infer_fn = CustomRules::infer_rule;
    expand_fn = CustomRules::expand_rule;
    // The derivative of a maximum comes from its expansion.
    if (rule_->reduce.empty() || rule_->reduce == "sum" || rule_->reduce == "mean") grad_fn = CustomRules::grad_rule;
}

const Formula& CustomOp::formula(DType dtype) const {
    if (element_) return element_->formula(dtype);
    std::lock_guard lock(formula_mutex_);
    std::unique_ptr<const Formula>& found = formulas_[dtype];
    if (found) return *found;
    if (parent_) return *(found = Derivation(parent_->formula(dtype), position_, inputs_, dtype).run());
    auto made = empty_formula(inputs_, dtype);
    ir::GraphBuilder builder(made->graph);
    made->graph.result = replay(original_->graph, parameters_of(made->graph), builder);
    made->dtype = type_of(made->graph.result).dtype;
    return *(found = std::move(made));
}

std::vector<CustomOp::Input> CustomOp::inputs_and_cotangent() const {
    std::vector<Input> inputs = inputs_;
    std::string dout = "dout";
    while (std::ranges::any_of(inputs, [&](const Input& input) { return input.name == dout; })) dout += "_";
    inputs.push_back({dout, false});
    return inputs;
}

const CustomOp& CustomOp::derivative(size_t i) const {
    const CustomOp* element = element_ ? &element_->derivative(i) : nullptr;
    std::lock_guard lock(defined_ops().mutex);
    const CustomOp*& found = derivatives_[i];
    if (found) return *found;
    std::unique_ptr<CustomOp> op(new CustomOp(defined_ops().free_name(str(name_, "_grad_", inputs_[i].name)),
                                              str("The derivative of ", name_, " by ", inputs_[i].name, "."),
                                              inputs_and_cotangent()));
    if (element) {
        // One element for each one that the points read, in the order of the rule's indices. An operand with one index
        // per axis gives its own elements.
        IndexRule rule = *rule_;
        const std::vector<std::string> all = rule.indices();
        rule.inputs.emplace_back();
        for (const std::string& index : rule_->output) rule.inputs.back().push_back({{{index, 1}}, 0});
        rule.output.clear();
        if (rule.is_plain(i)) {
            for (const IndexAccess& access : rule.inputs[i]) rule.output.push_back(access.terms[0].index);
        } else {
            for (const std::string& index : all)
                if (rule.reads(i, index)) rule.output.push_back(index);
        }
        rule.reduce = rule.output.size() < all.size() ? "sum" : "";
        op->set_rule(std::move(rule), *element);
        return *(found = &defined_ops().add(std::move(op)));
    }
    op->parent_ = this;
    op->position_ = i;
    op->takes_strides = op->takes_halves = true;
    op->batch_fn = batch::elementwise;
    op->infer_fn = CustomRules::infer;
    op->expand_fn = CustomRules::expand;
    op->grad_fn = CustomRules::grad;
    return *(found = &defined_ops().add(std::move(op)));
}

// None if the derivative reads beyond the edges of an operand other than the cotangent, which is 0 there: the
// derivative need not be a number at such a point.
const CustomOp* CustomOp::gathering(size_t i, const GatherRule& gather, DType dtype) const {
    const CustomOp& element = element_->derivative(i);
    std::unordered_set<const ir::Node*> used;
    const ir::Graph& graph = element.formula(dtype).graph;
    auto use = [&](const Value& v) { ir::for_each_node(v, [&](ir::Node* n) { used.insert(n); }); };
    use(graph.result);
    for (const ir::Node* node : graph.body())
        for (const Value& arg : node->args) use(arg);
    for (size_t k = 0; k < inputs_.size(); ++k) {
        const bool is_shifted =
            k == i || std::ranges::any_of(gather.shifted, [&](const auto& index) { return rule_->reads(k, index); });
        if (is_shifted && used.contains(graph.parameters()[k])) return nullptr;
    }
    Known& k = known();
    std::lock_guard lock(defined_ops().mutex);
    const std::string content = str(name_, " gathered ", i, "\n", gather.rule.text());
    if (auto found = k.by_content.find(content); found != k.by_content.end()) return found->second;
    std::unique_ptr<CustomOp> op(new CustomOp(defined_ops().free_name(str(name_, "_grad_", inputs_[i].name)),
                                              str("The derivative of ", name_, " by ", inputs_[i].name, "."),
                                              inputs_and_cotangent()));
    op->set_rule(gather.rule, element);
    return k.by_content[content] = &defined_ops().add(std::move(op));
}

const CustomOp* custom_op(const Op& op) {
    return op.belongs_to(known().registry) ? static_cast<const CustomOp*>(&op) : nullptr;
}

const Op& operator_named(std::string_view name) {
    if (const Op* op = registry().find(name)) return *op;
    {
        std::lock_guard lock(defined_ops().mutex);
        if (const Op* op = defined_ops().find(name)) return *op;
    }
    return registry().get(name);
}

bool is_pointwise(const Op& op) { return (op.is_elementwise || op.fuses_as == Fusion::cast) && op.is_repeatable(); }

void set_custom_kernel(Kernel kernel) { known().kernels.assign(kernel ? 1 : 0, kernel); }

std::span<const Kernel> CustomOp::kernels_on(const Device&) const { return known().kernels; }

}  // namespace lunaria
