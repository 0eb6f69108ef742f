// Steps that several rules of vmap share.
#pragma once

#include "core/batching/batching.h"
#include "core/batching/rules.h"

namespace lunaria::batch {

inline bool is_operand(const BatchCall& c, size_t i) {
    return is_tensor_type(c.op.signature.params[i].type) && c.has(i);
}
inline Value emit(const BatchCall& c, std::vector<Value> args) { return c.builder.emit(c.op, args); }
// A copy of the arguments, for a rule that changes some of them.
inline std::vector<Value> arguments(const BatchCall& c) { return {c.args.begin(), c.args.end()}; }

std::vector<Value> spread_all(const BatchCall& c);  // the arguments with their operands spread
bool only_first(const BatchCall& c);                // whether no other operand differs from sample to sample
Expr result_shape(const BatchCall& c, Value result, const TensorType& type);
// The first operand's samples become one tensor with more along its first axis; the others are shared.
Value merged_first(const BatchCall& c, const Types& types, std::vector<Value> args);

}  // namespace lunaria::batch
