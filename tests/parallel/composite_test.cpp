// The rules of operators that are made of others: each operator of the expansion is computed in pieces along the axes
// that go together with the cut one.
#include "core/parallel/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <unordered_map>

#include "core/ops/sample.h"
#include "core/random/random.h"
#include "tests/parallel/pieces.h"

namespace lunaria::parallel {
namespace {

using testing::difference;
using testing::in_pieces;
using testing::tensors_of;

class Evaluation {
  public:
    Evaluation(const CompositeRule& rule, int label, int64_t parts) : rule_(rule), label_(label), parts_(parts) {
        for (size_t i = 0; i < rule.parameters().size(); ++i) bind(rule.parameters()[i], rule.args()[i]);
    }

    int calls_in_pieces = 0;

    std::vector<Tensor> results() {
        size_t step = 0;
        for (const ir::Node* node : rule_.expansion().body()) {
            if (node->kind == ir::NodeKind::item)
                values_[node] = values_.at(node->args[0].node()).items()[node->index];
            else
                values_[node] = computed(rule_.steps()[step++]);
        }
        return tensors_of(value(rule_.expansion().result));
    }

  private:
    void bind(const Value& parameter, const Value& given) {
        if (parameter.is_node()) values_[parameter.node()] = given;
        if (parameter.is_list())
            for (size_t k = 0; k < parameter.items().size(); ++k) bind(parameter.items()[k], given.items()[k]);
    }
    Value value(const Value& v) const {
        if (v.is_node()) return v.node()->kind == ir::NodeKind::constant ? v.node()->constant : values_.at(v.node());
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(value(item));
        return Value::list(std::move(items));
    }
    Value computed(const CompositeRule::Step& step) {
        const Op& op = *step.node->op;
        std::vector<Value> args;
        for (const Value& v : step.node->args) args.push_back(value(v));
        const auto found = std::ranges::find(step.labels, label_);
        const auto f = static_cast<size_t>(found - step.labels.begin());
        if (found == step.labels.end() || step.rule->is_composite || !step.rule->factors[f].can_be_cut() ||
            step.rule->factors[f].kind == Kind::spread || op.draws())
            return run(op, args);
        const auto rule = rule_of(op, args);
        ++calls_in_pieces;
        std::vector<std::vector<Interval>> choices;
        for (int64_t part = 0; part < parts_; ++part) {
            choices.push_back(rule->whole());
            choices.back()[f] = piece_of(rule->factors[f].size, part, parts_);
        }
        std::vector<Value> joined;
        for (Tensor& t : in_pieces(*rule, choices)) joined.emplace_back(std::move(t));
        return step.node->type.kind == ir::NodeType::Kind::tensor ? joined.at(0) : Value::list(std::move(joined));
    }

    const CompositeRule& rule_;
    int label_;
    int64_t parts_;
    std::unordered_map<const ir::Node*, Value> values_;
};

TEST(composites, pieces_of_their_parts_give_what_the_whole_gives) {
    const testing::OneThread one;
    int calls = 0;
    for (const auto& op : registry().all()) {
        if (op->host_fn || op->infer_fn || op->draws()) continue;
        for (const char* text : op->samples) {
            const std::vector<Value> args = sample_args(*op, text, 1);
            const auto rule = CompositeRule::of(Call(*op, args, promoted_dtype(*op, args)));
            if (!rule) continue;
            SCOPED_TRACE(str(op->name(), "(", text, "): ", describe(*rule)));
            try {
                const std::vector<Tensor> want = tensors_of(run(*op, args));
                for (int f = 0; f < rule->count(); ++f)
                    for (int64_t parts : {2, 3}) {
                        Evaluation evaluation(*rule, rule->label(f), parts);
                        EXPECT_EQ(difference(evaluation.results(), want, 2e-5), "")
                            << rule->factors[static_cast<size_t>(f)].letter;
                        calls += evaluation.calls_in_pieces;
                    }
            } catch (const Error& e) {
                ADD_FAILURE() << e.what();
            }
        }
    }
    EXPECT_GT(calls, 2000);
}

// Operators whose results depend on all of their operands at once, or that concern devices. Each other operator has at
// least one letter in one of its samples.
TEST(composites, nearly_all_operators_can_be_divided) {
    const testing::OneThread one;
    int all = 0;
    std::string none;
    int without = 0;
    for (const auto& op : registry().all()) {
        if (op->host_fn || op->is_ordered()) continue;
        ++all;
        bool has = false;
        for (const char* text : op->samples) {
            const std::vector<Value> args = sample_args(*op, text, 1);
            const auto rule = letters_of(Call(*op, args, promoted_dtype(*op, args)));
            has |= std::ranges::any_of(rule->factors, [](const Factor& f) { return f.kind != Kind::whole; });
        }
        if (has) continue;
        ++without;
        none += str(op->name(), ' ');
    }
    std::cout << all - without << " of " << all << " operators have a letter; without: " << none << '\n';
    EXPECT_LE(without * 20, all) << none;
}

}  // namespace
}  // namespace lunaria::parallel
