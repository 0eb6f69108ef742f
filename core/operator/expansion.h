// Expansion of composite operators and gradient rules, and the names in errors that happen inside them: users know the
// operator that they called and its parameters, not the operators that it is made of.
// The dtype of their computation is decided here, too: a bf16 holds no count above 256, an f16 no square of 256, and a
// running sum of either stops growing, so that the rules of operators that count or add up (Op::wide) see f32 in place
// of halves.
#pragma once

#include <new>

#include "core/operator/op.h"

namespace lunaria {

// The operand that eager mode makes of a plain number.
Value number_as_tensor(const Value& number, DType t);

// An operand of positions as signed integers; a position that is too large for them stays out of range.
Expr as_positions(const Expr& given);

// The arguments of a composite operator as eager mode passes them to its expansion: numbers are tensors, of the joint
// dtype `dtype` where they are promoted.
std::vector<Value> expansion_args(const Op& op, std::span<const Value> args, DType dtype);

// The results of a composite operator.
Value expand(const ExpandCall& call);

// The results of an operator's gradient rule; cotangents of tensors have the tensors' dtypes.
Grads gradients(const GradRule& rule);

// An error as the user of `op` may see it: an error of an operator that `op` is made of becomes one of `op`.
Error named_after(const Op& op, const Error& e);

// Runs f in the name of `op`: errors are named after it, also that of a full memory.
template <class F>
auto speaking_of(const Op& op, F&& f) -> decltype(f()) {
    try {
        return f();
    } catch (const Error& e) {
        throw named_after(op, e);
    } catch (const std::bad_alloc&) {
        throw memory_error(op.name(), "not enough memory");
    }
}

}  // namespace lunaria
