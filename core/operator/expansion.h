// Composite operators and gradient rules at work, and whose names are told when something in them fails: users know the
// operator that they called and its parameters, not what it is made of.
// Here it is decided what they are computed in: a bf16 holds no count above 256, an f16 no square of 256, and a running
// sum of either sticks, so that the rules of operators that count or add up (Op::wide) see f32 in place of halves.
#pragma once

#include <new>

#include "core/operator/op.h"

namespace lunaria {

// A plain number as the operand that eager mode makes of it.
Value number_as_tensor(const Value& number, DType t);

// An operand of positions as operators take it, as integers with a sign; one that is too large for them stays too
// large.
Expr as_positions(const Expr& given);

// The arguments of a composite operator as eager mode has them when it expands it: numbers are tensors, of the joint
// dtype `dtype` where they are promoted.
std::vector<Value> expansion_args(const Op& op, std::span<const Value> args, DType dtype);

// What a composite operator comes to.
Value expand(const ExpandCall& call);

// What an operator's gradient rule gives; cotangents of tensors have the tensors' dtypes.
Grads gradients(const GradRule& rule);

// An error as the user of `op` may see it: one of an operator that it is made of becomes its own.
Error named_after(const Op& op, const Error& e);

// Does what `op` does, and names errors after it, that of a full memory too.
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
