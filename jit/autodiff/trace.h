// Tracing: graphs are written by running an operator's gradient rule or expansion on parameters that have the types of
// run-time values. jit/autodiff/pullback.h adds a cache.
#pragma once

#include "jit/autodiff/pullback.h"

namespace lunaria::autodiff {

// The role of an argument in the rules of its operator.
enum class Role : uint8_t {
    fixed,   // an attribute, nil or a bool: part of the graph
    tensor,  // a parameter of the graph by dtype and shape
    number,  // a plain number in a tensor's place: a parameter that takes it as it is
    list,    // of tensors, each a parameter
};
Role role(const Op& op, std::span<const Value> args, size_t i, bool active);

// Rules for powers simplify where the exponent is a constant (x^2 needs no logarithm and no test for 0), but every new
// constant is a new graph. So only exponents that are common in programs count as constants.
bool specialises(const Op& op, size_t i, bool active);
bool is_usual_exponent(const Value& number);

Pullback trace_pullback(const Op& op, std::span<const Value> args, const Value& result, uint64_t active,
                        uint64_t present);
std::unique_ptr<ir::Graph> trace_expansion(const Op& op, std::span<const Value> args);

inline bool has_bit(uint64_t mask, size_t i) { return i >= 64 || (mask >> i & 1); }

}  // namespace lunaria::autodiff
