// The primitives of which Lua consists, as operators of the IR: arithmetic with metamethods, tables, calls, cells, the
// steps of a numeric loop. The virtual machine executes them; tensor operators are not among them.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

namespace ir {
class Node;
}
namespace autodiff {
class BlockRewriter;
// Writes the derivative of a node with a primitive (jit/language_rules.h).
using DerivativeRule = void(BlockRewriter&, const ir::Node&);
}  // namespace autodiff

namespace lua {

// The operations of Lua's symbols, in the order of Lua's own interface: arithmetic and bits, then comparisons, then the
// others.
enum class Operation : uint8_t {
    add,
    sub,
    mul,
    mod,
    pow,
    div,
    floor_div,
    bit_and,
    bit_or,
    bit_xor,
    shift_left,
    shift_right,
    minus,
    bit_not,
    equal,
    less,
    less_equal,
    concat,
    length,
    none,
};

// The part of an object with an identity that a primitive reads or writes. The operands for fields are object, key,
// value, those for cells are cell, value; the ordered forms have the contexts before them.
enum class Access : uint8_t { none, reads_field, writes_field, makes_cell, reads_cell, writes_cell };

// The facts about a primitive beside those in the entry of any operator (core/operator/op.h).
struct Facts {
    Effect effect = Effect::none;
    Operation operation = Operation::none;
    const char* event = "";          // the operation's metamethod
    const Op* on_tensors = nullptr;  // the operator for the operation on tensors
    Access access = Access::none;
    bool moves = false;       // it returns its operands without reading them
    bool moves_last = false;  // the same but for operand 1, a key or a position
    bool exact = false;       // see Op::exact
    bool total = false;       // on plain numbers it never raises an error
    bool spare = false;       // it has only a result, and is left out if that is unused
    bool saved = false;       // it may occur in a saved program
    // Returns its results, and a backpropagator for each of the contexts in the list operand 0.
    bool ordered = false;
    bool calls = false;                     // it calls a function, whose list of results is its result
    bool hands_over = false;                // that function may replace the running one
    bool goes_elsewhere = false;            // the next instruction may be elsewhere in the function
    bool names = false;                     // operand 1 is the name of an operation
    bool stops = false;                     // a debugger may stop here and read the operands until the next such place
    bool branches = false, closes = false;  // see Op::branches, Op::closes
    bool of_numbers = false;                // arithmetic on plain numbers alone, without metamethods
    autodiff::DerivativeRule* derivative = nullptr;  // null: a node has no cotangent and is copied
    // Its value on plain numbers; null: it is not only about numbers.
    Value (*compute)(const Value* args) = nullptr;

    bool is_arithmetic() const { return operation <= Operation::floor_div || operation == Operation::minus; }
    bool is_bits() const {
        return (operation >= Operation::bit_and && operation <= Operation::shift_right) ||
               operation == Operation::bit_not;
    }
    bool is_comparison() const { return operation >= Operation::equal && operation <= Operation::less_equal; }
    bool is_unary() const {
        return operation == Operation::minus || operation == Operation::bit_not || operation == Operation::length;
    }
};

// All primitives; language.cpp describes them.
const Registry& language();

// The primitive of that name; throws state_error if there is none.
const Op& primitive(std::string_view name);

// The facts about an operator; empty for null and for operators that are no primitives.
const Facts& facts(const Op* op);
inline const Facts& facts(const Op& op) { return facts(&op); }

// Whether the operator is a primitive.
bool is_primitive(const Op& op);

// The operator named by the node's operand 1: for `j_arith` one of Lua's operations, otherwise arithmetic on plain
// numbers or an operator. For nodes of primitives with Facts::names.
const Op& named_operation(const ir::Node& node);

}  // namespace lua
}  // namespace lunaria
