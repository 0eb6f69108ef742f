#include "jit/autodiff/transform.h"

#include <unordered_map>

#include "core/ir/verifier.h"
#include "jit/autodiff/rewriter.h"
#include "jit/language.h"

namespace lunaria::autodiff {

namespace {

class Transform {
  public:
    explicit Transform(const ir::Graph& function)
        : function_(function), result_(std::make_unique<ir::Graph>("J " + function.name)) {}

    std::unique_ptr<ir::Graph> run(Origins* origins) {
        result_->span = function_.span;
        result_->captures = function_.captures;
        result_->variadic = function_.variadic;
        result_->order = function_.order + 1;
        std::vector<const ir::Graph*> blocks = ir::blocks_of(function_);
        for (const ir::Graph* b : blocks)
            targets_[b] = b == &function_ ? result_.get() : &result_->add_inner("J " + b->name);
        for (const ir::Graph* b : blocks) {
            BlockRewriter rewriter(*b, *targets_.at(b), *result_, b == &function_);
            rewriter.run(targets_, origins ? &(*origins)[targets_.at(b)] : nullptr);
        }
        return std::move(result_);
    }

  private:
    const ir::Graph& function_;
    std::unique_ptr<ir::Graph> result_;
    std::unordered_map<const ir::Graph*, ir::Graph*> targets_;
};

}  // namespace

std::unique_ptr<ir::Graph> differentiate(const ir::Graph& function, Origins* origins) {
    std::unique_ptr<ir::Graph> derivative = Transform(function).run(origins);
#ifndef NDEBUG
    ir::verify(*derivative);
#endif
    return derivative;
}

}  // namespace lunaria::autodiff
