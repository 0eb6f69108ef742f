#include "jit/autodiff/transform.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/ir/verifier.h"
#include "jit/autodiff/rewriter.h"
#include "jit/language.h"

namespace lunaria::autodiff {

namespace {

// The blocks of a function: its entry and what that goes on to.
std::vector<const ir::Graph*> blocks_of(const ir::Graph& entry) {
    std::vector<const ir::Graph*> blocks{&entry};
    std::unordered_set<const ir::Graph*> seen{&entry};
    auto visit = [&](const Value& v) {
        if (v.is_node() && v.node()->function && seen.insert(v.node()->function).second)
            blocks.push_back(v.node()->function);
    };
    for (size_t i = 0; i < blocks.size(); ++i) {
        const Value& result = blocks[i]->result;
        if (!result.is_node()) continue;
        const ir::Node& last = *result.node();
        if (last.callee) visit(Value(last.callee));
        if (last.op && last.op->name() == "branch") {
            visit(last.args[1]);
            visit(last.args[3]);
        }
    }
    return blocks;
}

class Transform {
  public:
    explicit Transform(const ir::Graph& function)
        : function_(function), result_(std::make_unique<ir::Graph>("J " + function.name)) {}

    std::unique_ptr<ir::Graph> run() {
        result_->span = function_.span;
        result_->captures = function_.captures;
        result_->variadic = function_.variadic;
        result_->order = function_.order + 1;
        std::vector<const ir::Graph*> blocks = blocks_of(function_);
        for (const ir::Graph* b : blocks)
            targets_[b] = b == &function_ ? result_.get() : &result_->add_inner("J " + b->name);
        for (const ir::Graph* b : blocks) {
            BlockRewriter rewriter(*b, *targets_.at(b), *result_, b == &function_);
            rewriter.run(targets_);
        }
        return std::move(result_);
    }

  private:
    const ir::Graph& function_;
    std::unique_ptr<ir::Graph> result_;
    std::unordered_map<const ir::Graph*, ir::Graph*> targets_;
};

}  // namespace

std::unique_ptr<ir::Graph> differentiate(const ir::Graph& function) {
    std::unique_ptr<ir::Graph> derivative = Transform(function).run();
#ifndef NDEBUG
    ir::verify(*derivative);
#endif
    return derivative;
}

}  // namespace lunaria::autodiff
