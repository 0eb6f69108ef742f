#include "jit/trace/steady.h"

#include <algorithm>
#include <numeric>

#include "jit/trace/region.h"

namespace lunaria::trace {

namespace {

void visit(const Block& block, const std::function<void(const Block&)>& f) {
    f(block);
    for (const auto& next : block.next) visit(*next, f);
}

// The changes made by the steps of a tree.
struct Writes {
    bool anything = false;  // they run code that may change anything
    bool upvalues = false;
    struct Set {
        const Value* table;
        const Value* key;  // an integer where it is unknown
    };
    std::vector<Set> sets;

    explicit Writes(const Tree& tree) {
        visit(tree.root, [&](const Block& block) {
            for (const Step& step : block.steps) note(step);
        });
    }
    void note(const Step& step) {
        switch (step.kind) {
            case Step::Kind::call:
            case Step::Kind::index:
            case Step::Kind::compare:
            case Step::Kind::set_index:
                anything = true;
                break;
            case Step::Kind::set_upvalue:
                upvalues = true;
                break;
            case Step::Kind::raw_set:
                sets.push_back({&step.args()[0], &step.args()[1]});
                break;
            default:
                break;
        }
    }
    static bool may_change(const Step& asks, const Set& set) {
        const Value& table = asks.args()[0];
        if (!set.table->is_node() && !table.is_node() && !identical(*set.table, table)) return false;
        const auto is_text = [](const Value& v) { return v.kind() == Value::Kind::string; };
        if (asks.kind == Step::Kind::next) return true;
        if (asks.kind == Step::Kind::length) return !is_text(*set.key);
        const Value& key = asks.args()[1];
        if (set.key->is_node()) return !is_text(key);
        return key.is_node() || identical(*set.key, key);
    }
    bool touches(const Step& step) const {
        switch (step.kind) {
            case Step::Kind::upvalue:
                return upvalues;
            case Step::Kind::read:
            case Step::Kind::length:
            case Step::Kind::next:
                return std::ranges::any_of(sets, [&](const Set& set) { return may_change(step, set); });
            default:
                return false;
        }
    }
};

// The table that is read must be the same in each round.
bool asks_a_constant(const Step& step) { return std::ranges::none_of(step.args(), &Value::is_node); }

}  // namespace

void Steady::prepare(const Tree& tree) {
    answers_.clear();
    held_.clear();
    block_ = nullptr;
    settled_ = tree.settled;
    const Writes writes(tree);
    if (writes.anything) return;
    visit(tree.root, [&](const Block& block) {
        std::vector<Answer>& answers = answers_[&block];
        answers.resize(block.steps.size());
        for (size_t i = 0; i < block.steps.size(); ++i) {
            const Step& step = block.steps[i];
            const bool asks = step.kind > Step::Kind::argument && step.kind <= Step::Kind::next;
            answers[i].keeps = asks && asks_a_constant(step) && !writes.touches(step);
        }
        for (const auto& region : block.regions) add(region->guards, answers, region->first);
        for (const GuardGroup& group : block.groups) {
            std::vector<size_t> steps(group.end - group.begin);
            std::iota(steps.begin(), steps.end(), group.begin);
            add(group.guards, answers, steps);
        }
    });
}

// `steps`: the guards' steps and the others.
void Steady::add(const Guards& guards, const std::vector<Answer>& answers, const std::vector<size_t>& steps) {
    const bool keeps = std::ranges::all_of(
        steps, [&](size_t i) { return answers[i].keeps || std::ranges::binary_search(guards.rest(), i); });
    if (keeps && !guards.empty()) held_[&guards] = false;
}

}  // namespace lunaria::trace
