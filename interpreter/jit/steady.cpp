#include "interpreter/jit/steady.h"

#include <algorithm>

namespace lunaria::jit {

namespace {

void visit(const Block& block, const std::function<void(const Block&)>& f) {
    f(block);
    for (const auto& next : block.next) visit(*next, f);
}

// What the steps of a tree change.
struct Writes {
    bool anything = false;  // they run code that may do whatever it likes
    bool upvalues = false;
    bool integers = false;  // under keys that are not known
    std::vector<Value> keys;

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
                integers |= step.operands[1].slot >= 0;
                if (step.operands[1].slot < 0) keys.push_back(step.operands[1].constant);
                break;
            default:
                break;
        }
    }
    bool touches(const Step& step) const {
        switch (step.kind) {
            case Step::Kind::read:
                if (integers && step.operands[1].constant.kind() != Value::Kind::string) return true;
                return std::ranges::any_of(keys, [&](const Value& key) {
                    return step.operands[1].slot >= 0 || identical(key, step.operands[1].constant);
                });
            case Step::Kind::upvalue:
                return upvalues;
            case Step::Kind::length:
                return integers ||
                       std::ranges::any_of(keys, [](const Value& key) { return key.kind() != Value::Kind::string; });
            case Step::Kind::next:
                return integers || !keys.empty();
            default:
                return false;
        }
    }
};

// The table that is asked must be the same in each round.
bool asks_a_constant(const Step& step) {
    return std::ranges::all_of(step.operands, [](const Operand& o) { return o.slot < 0; });
}

}  // namespace

void Steady::prepare(const Tree& tree) {
    answers_.clear();
    block_ = nullptr;
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
    });
}

}  // namespace lunaria::jit
