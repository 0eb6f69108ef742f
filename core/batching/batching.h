// The rules of vmap: operators applied to a whole batch of samples at once. The batch axis is the first one of every
// batched operand and result; a rule makes the call for the batch out of the call for one sample.
#pragma once

#include <span>

#include "core/operator/expr.h"
#include "core/operator/op.h"

namespace lunaria {

// A call for one sample, whose arguments have the types of a sample (their elements are not read), with the operands of
// the whole batch.
class BatchCall : public ExpandCall {
  public:
    // `batched`: per parameter the tensor with the batch axis, or nil for an argument that is the same for all samples;
    // for a list of tensors, the list of these.
    BatchCall(const Call& sample, Builder& b, std::span<const Value> batched, int64_t size)
        : ExpandCall(sample, b), batched(batched), size(size) {}

    std::span<const Value> batched;
    const int64_t size;  // of the batch

    bool is_batched(size_t i) const;
    // The operand, with the batch axis if it has one.
    Expr operand(size_t i) const { return of(args[i], batched[i]); }
    // The same, broadcast over the batch if it has no batch axis.
    Expr spread(size_t i) const { return spread_of(args[i], batched[i]); }
    Expr spread_of(const Value& sample, const Value& batch) const;
    // The same in a shape that broadcasts against operands whose samples have this rank.
    Expr aligned(size_t i, int rank) const { return aligned_of(args[i], batched[i], rank); }
    Expr aligned_of(const Value& sample, const Value& batch, int rank) const;
    // A shape with the batch axis in front.
    Shape with_batch(const Shape& sample) const;

  private:
    Expr of(const Value& sample, const Value& batch) const { return {builder, batch.is_nil() ? sample : batch}; }
};

// Whether there is a rule; other operators are applied to one sample after the other.
inline bool has_batch_rule(const Op& op) { return op.host_fn || op.batch_fn || op.is_elementwise; }

// The results of the call for the batch by the operator's rule, one or a list, each with the batch axis; nil if the
// rule does not cover this call. `types`: the types of the results for one sample.
Value apply_batch_rule(const BatchCall& call, const Types& types);

// The same by the rule if it covers the call, otherwise by one sample after the other; nil if the operator is a
// composite, whose parts are to be applied instead.
Value batched_results(const BatchCall& call);

// The operator applied to one sample after the other, and the results stacked.
Value one_by_one(const BatchCall& call);

// The results, one or a list of them, as a vector.
std::vector<Value> separate_results(Builder& b, const Value& results);

}  // namespace lunaria
