// Differentiations that leave what parameters get for later: their reverse rules first give what other operands get, on
// which other work waits, and keep the rest, as an optimizer alone needs it.
//
// What is left is a part of the context: the shadow of a fixed object, which every pull empties first.
#pragma once

#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/operator/op.h"
#include "jit/vm/object.h"

namespace lunaria::vm {

// What is left, in the order of the pulls.
class Leavings final : public Object {
  public:
    struct Rule {
        Value closure;
        Values cotangents;
        std::vector<Value> shadows;  // of the operator's operands; nil where the rule gives nothing
    };
    std::vector<Rule> rules;
};

// The versions of kept tensors, added up: a write makes the sum larger.
uint64_t versions_of(const Values& captures);
// Whether what the rule keeps has not been written into since; the error where it has, and its content is lost.
bool is_unchanged(const Closure& rule);
Error changed_in_place(const Closure& rule);

// From now on rules of the context leave what parameters get.
void leave_parameters(Context& context);
// Takes what is left.
std::vector<Leavings::Rule> take_leavings(Context& context);

// A reverse rule in two parts.
class SplitRule final : public Object {
  public:
    SplitRule(Value now, Value later, Shadow& place, std::vector<Value> shadows);
    const Value now, later;  // now nil: nothing but parameters is followed
    void leave(const Values& cotangents) const;

  private:
    Value place_;
    std::vector<Value> shadows_;
};

// The part of a rule that runs now, of a rule in two parts; the rest of it is left for later. Other rules stay.
Value without_leavings(Value rule, std::span<const Value> contexts, const Values& cotangents);

// make_pullback for a call in the context, in two parts where it leaves what parameters get.
Value make_pullback_in(Context& context, const Op& op, std::span<const Value> args, const Value& result);

}  // namespace lunaria::vm
