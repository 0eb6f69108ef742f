#include "jit/vm/rule_chain.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace lunaria::vm {

namespace {

using ir::Node;
using ir::NodeKind;

class ChainBuilder {
  public:
    explicit ChainBuilder(const ir::Graph& rule) : rule_(rule) {}

    std::unique_ptr<const RuleChain> run() {
        if (rule_.parameters().size() > 32 || !rule_.result.is_list()) return nullptr;
        if (rule_.result.items().size() > kMostRuleResults || !find_type()) return nullptr;
        for (size_t p = 0; p < rule_.parameters().size(); ++p) depends_[rule_.parameters()[p]] = uint32_t{1} << p;
        // Inputs come first among the values, so they must be known before the steps.
        for (const Node* node : rule_.body())
            for (const Value& arg : node->args)
                if (!input(arg)) return nullptr;
        const size_t inputs = made_->inputs.size() + made_->numbers.size();
        if (inputs > kMostRuleInputs) return nullptr;
        for (auto& [node, at] : number_of_) at += static_cast<int>(made_->inputs.size());
        chain_.inputs = static_cast<int>(inputs);
        chain_.dtype = made_->dtype;
        for (const Node* node : rule_.body())
            if (!step(*node)) return nullptr;
        for (const Value& v : rule_.result.items())
            if (!result(v)) return nullptr;
        if (chain_.steps.empty()) return std::move(made_);
        keep_results();
        made_->kernel = compile_chain(chain_);
        return made_->kernel ? std::move(made_) : nullptr;
    }

  private:
    // Finds the dtype and shape of all results.
    bool find_type() {
        for (const Node* node : rule_.body()) {
            if (node->kind != NodeKind::call || !node->op || !node->op->is_elementwise) return false;
            if (node->type.kind != ir::NodeType::Kind::tensor || !node->op->is_repeatable()) return false;
            const TensorType& type = node->type.tensor;
            if (node != rule_.body().front() && !(type.shape == made_->shape)) return false;
            made_->shape = type.shape;
            if (type.dtype != DType::boolean) made_->dtype = type.dtype;
        }
        if (!made_->shape.known()) return false;
        made_->count = made_->shape.size();
        return made_->dtype == DType::f32 || made_->dtype == DType::f64;
    }

    bool fits(DType dtype) const { return dtype == made_->dtype || dtype == DType::boolean; }

    // Adds an operand that is no result of a step to the inputs.
    bool input(const Value& v) {
        if (v.is_number()) {
            if (index_of(v.number()) == made_->numbers.size()) made_->numbers.push_back(v.number());
            return true;
        }
        if (v.is_nil()) return true;
        if (!v.is_node()) return false;
        const Node& node = *v.node();
        if (node.kind == NodeKind::constant) {
            const Value& c = node.constant;
            if (!c.is_tensor() || c.tensor().size() != 1 || c.tensor().dtype() != made_->dtype) return false;
            if (number_of_.try_emplace(&node, static_cast<int>(made_->numbers.size())).second)
                made_->numbers.push_back(c.tensor().at(0));
            return true;
        }
        if (node.kind != NodeKind::parameter || at_.contains(&node)) return true;
        if (node.type.kind != ir::NodeType::Kind::tensor || !fits(node.type.tensor.dtype)) return false;
        const bool whole = node.type.tensor.shape == made_->shape;
        if (!whole && (!node.type.tensor.shape.known() || node.type.tensor.shape.size() != 1)) return false;
        at_[&node] = static_cast<int>(made_->inputs.size());
        const auto p = static_cast<size_t>(std::ranges::find(rule_.parameters(), &node) - rule_.parameters().begin());
        made_->inputs.push_back({p, whole, node.type.tensor.dtype});
        return true;
    }

    // Compared by bits: zeros have a sign.
    size_t index_of(double number) const {
        auto same = [&](double n) { return std::bit_cast<uint64_t>(n) == std::bit_cast<uint64_t>(number); };
        return static_cast<size_t>(std::ranges::find_if(made_->numbers, same) - made_->numbers.begin());
    }

    bool step(const Node& node) {
        ElementChain::Step made{node.op, {}};
        uint32_t depends = 0;
        bool ended = false;
        for (size_t i = 0; i < node.args.size(); ++i) {
            const Value& arg = node.args[i];
            // Operands that are left out come last.
            if (arg.is_nil()) {
                ended = true;
                continue;
            }
            const ArgType type = node.op->signature.params[i].type;
            if (ended || !is_tensor_type(type)) return false;
            made.operands.push_back(place_of(arg));
            const bool promoted = type == ArgType::same || type == ArgType::real;
            if (!arg.is_node()) continue;
            if (promoted && arg.node()->type.kind == ir::NodeType::Kind::tensor &&
                arg.node()->type.tensor.dtype != made_->dtype)
                return false;
            depends |= depends_[arg.node()];
        }
        const auto k = static_cast<int>(chain_.steps.size());
        at_[&node] = chain_.inputs + k;
        step_of_[&node] = k;
        depends_[&node] = depends;
        chain_.steps.push_back(std::move(made));
        return true;
    }

    int place_of(const Value& v) {
        if (!v.is_node()) return static_cast<int>(made_->inputs.size() + index_of(v.number()));
        const auto number = number_of_.find(v.node());
        return number != number_of_.end() ? number->second : at_.at(v.node());
    }

    bool result(const Value& v) {
        RuleChain::Result made;
        if (v.is_node() && v.node()->kind == NodeKind::parameter) {
            made.kind = RuleChain::Result::Kind::parameter;
            made.index =
                static_cast<size_t>(std::ranges::find(rule_.parameters(), v.node()) - rule_.parameters().begin());
        } else if (v.is_node() && step_of_.contains(v.node())) {
            if (v.node()->type.tensor.dtype != made_->dtype) return false;
            const int k = step_of_.at(v.node());
            made.kind = RuleChain::Result::Kind::output;
            made.depends = depends_.at(v.node());
            made.index = static_cast<size_t>(std::ranges::find(chain_.outputs, k) - chain_.outputs.begin());
            if (made.index == chain_.outputs.size()) chain_.outputs.push_back(k);
            for (size_t i = 0; i < made_->inputs.size(); ++i)
                if (made_->inputs[i].whole && made_->inputs[i].dtype == made_->dtype && last_reader(i) <= k)
                    made.may_hold |= uint32_t{1} << i;
        } else if (!v.is_nil()) {
            return false;
        }
        made_->results.push_back(made);
        if (made.kind != RuleChain::Result::Kind::none) made_->wanted = made_->results.size();
        if (made.kind == RuleChain::Result::Kind::parameter) made_->given_back |= uint32_t{1} << made.index;
        return true;
    }

    // The memory of one result cannot hold another.
    void keep_results() {
        for (const RuleChain::Result& kept : made_->results) {
            if (kept.kind != RuleChain::Result::Kind::parameter) continue;
            for (size_t i = 0; i < made_->inputs.size(); ++i)
                if (made_->inputs[i].parameter == kept.index)
                    for (RuleChain::Result& r : made_->results) r.may_hold &= ~(uint32_t{1} << i);
        }
    }

    int last_reader(size_t input) const {
        int last = -1;
        for (size_t k = 0; k < chain_.steps.size(); ++k)
            if (std::ranges::find(chain_.steps[k].operands, static_cast<int>(input)) != chain_.steps[k].operands.end())
                last = static_cast<int>(k);
        return last;
    }

    const ir::Graph& rule_;
    std::unique_ptr<RuleChain> made_ = std::make_unique<RuleChain>();
    ElementChain chain_;
    std::unordered_map<const Node*, int> at_, step_of_, number_of_;
    std::unordered_map<const Node*, uint32_t> depends_;
};

}  // namespace

std::unique_ptr<const RuleChain> chain_of_rule(const ir::Graph& rule) {
    return has_chain_kernels() ? ChainBuilder(rule).run() : nullptr;
}

}  // namespace lunaria::vm
