// What our operators are in MindSpore's, as equations that are read in both directions:
//
//     conv2d(x, w, b, s, m, p, d, g) = BiasAdd(Conv2D(x, w; stride = @quad(s) ...), b, 0)
//
// On the left stands a call of ours: parameters in the order of the signature, those that are left out have their
// defaults. A name is a variable, which stands for any value (`b?`: also for nil), `_` for what MindSpore does not
// have. On the right stands what MindSpore writes into its files: inputs, then attributes of the primitive, [a, b] for
// tuples,
// `.0` for one result of several, #a for a number as a tensor. @f(...) is a function of the list in
// mindspore_rules.cpp: writing computes it, reading takes its variable from what it gave, where it can be.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/operator/node.h"

namespace lunaria::mindir {

struct NamedTerm;

struct Term {
    enum class Kind { variable, anything, literal, tuple, tensor, function, call };
    Kind kind = Kind::anything;
    std::string name;                   // of a variable, a function, an operator
    bool may_be_nil = false;            // of a variable
    Value value;                        // of a literal
    std::vector<Term> items;            // of a tuple, of what becomes a tensor (one), arguments of a function or call
    std::vector<NamedTerm> attributes;  // of a call
    int result = -1;                    // which one of several
};

struct NamedTerm {
    std::string name;
    Term term;
};

// The values of a rule's variables.
struct Bindings {
    std::map<std::string, Value, std::less<>> values;
    const ir::NodeType* result = nullptr;  // of the call that is written

    const Value& operator[](std::string_view name) const;
    Shape shape(std::string_view name) const;
    DType dtype(std::string_view name) const;
};

using Condition = bool (*)(const Bindings&);

struct Rule {
    Term ours, theirs;
    Condition condition = nullptr;  // for writing
    bool condition_on_reading = false;
    // Whether MindSpore needs several operators. A file says at the last one which of ours it is: a program may have
    // called them one by one as well, with other roundings.
    bool is_nested() const;
};

const std::vector<Rule>& rules();

// What the function gives; only for names that rules have.
Value computed(const Term& function, const Bindings& bindings);
// The variable that the function was given, from its value; nothing where it cannot be told from that. `value` is not
// trusted: what the function never gives makes no variable either.
struct Taken {
    std::string variable;
    Value value;
};
std::optional<Taken> taken_back(const Term& function, const Value& value);
// Whether the function is taken for what it is when a file is read: it depends on what the variables are.
bool is_told_by_others(const Term& function);

// Whether MindSpore makes the primitive in Python (1) or from its list of operators (2): PrimitiveProto.prim_type.
int primitive_type(std::string_view name);

// Equal but for the kind of number.
bool is_same_setting(const Value& a, const Value& b);

}  // namespace lunaria::mindir
