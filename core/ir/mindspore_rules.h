// Our operators in terms of MindSpore's, as equations that apply in both directions:
//
//     conv2d(x, w, b, s, m, p, d, g) = BiasAdd(Conv2D(x, w; stride = @quad(s) ...), b, 0)
//
// The left side is a call of ours: parameters in the order of the signature; omitted ones have their defaults. A name
// is a variable, which matches any value (`b?`: also nil); `_` marks a parameter that MindSpore does not have. The
// right side is the form in MindSpore's files: inputs, then attributes of the primitive, [a, b] for tuples,
// `.0` for one result of several, #a for a number as a tensor. @f(...) is a function of the list in
// mindspore_rules.cpp: writing computes it, reading finds its variable from its value, where that is possible.
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
    std::vector<Term> items;            // of a tuple; the one that becomes a tensor; arguments of a function or call
    std::vector<NamedTerm> attributes;  // of a call
    int result = -1;                    // index of the result, if there are several
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
    // Whether MindSpore needs several operators. The file then marks the last of them with our operator, since a
    // program may have called them one by one as well, with other roundings.
    bool is_nested() const;
};

const std::vector<Rule>& rules();

// The value of the function; only for names that rules contain.
Value computed(const Term& function, const Bindings& bindings);
// The variable to which the function was applied, found from the function's value; nothing where the value does not
// determine it. `value` is not trusted: one that the function never returns gives no variable either.
struct Taken {
    std::string variable;
    Value value;
};
std::optional<Taken> taken_back(const Term& function, const Value& value);
// Whether reading accepts the function without inverting it, since other arguments determine its variables.
bool is_told_by_others(const Term& function);

// Whether MindSpore creates the primitive in Python (1) or from its list of operators (2): PrimitiveProto.prim_type.
int primitive_type(std::string_view name);

// Whether two values are equal apart from the kind of number.
bool is_same_setting(const Value& a, const Value& b);

}  // namespace lunaria::mindir
