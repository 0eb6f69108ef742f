// The primitives that Lua itself consists of, as operators of the IR: arithmetic with metamethods, tables, calls,
// cells, the steps of a numeric loop. They stand beside the tensor operators and are executed by the virtual machine.
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

// What Lua's symbols stand for, in the order in which Lua's own interface counts them: arithmetic and bits, then
// comparisons, then the others.
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

// What part of an object with an identity a primitive reads or writes. Of fields the operands are object, key, value,
// of cells cell, value; the ordered forms have the contexts before them.
enum class Access : uint8_t { none, reads_field, writes_field, makes_cell, reads_cell, writes_cell };

// What is true of a primitive beside what the entry of any operator says (core/operator/op.h).
struct Facts {
    Effect effect = Effect::none;
    Operation operation = Operation::none;
    const char* event = "";          // the operation's metamethod
    const Op* on_tensors = nullptr;  // the operator that the operation is on tensors
    Access access = Access::none;
    bool moves = false;       // it hands its operands on without looking at them
    bool moves_last = false;  // the same but for operand 1, a key or a position
    bool exact = false;       // see Op::exact
    bool total = false;       // on plain numbers it never is an error
    bool spare = false;       // nothing but its result: it is left out where nothing uses that
    bool saved = false;       // it may stand in a saved program
    // Gives its results, and a backpropagator for each of the contexts that operand 0 lists.
    bool ordered = false;
    bool calls = false;           // its result is the list of results of a function that it calls
    bool hands_over = false;      // that function may take the place of the one that runs
    bool goes_elsewhere = false;  // what runs next may be in another place of the function
    bool names = false;           // operand 1 is the name of an operation
    bool stops = false;           // a debugger may stop here and look at the operands until the next such place
    bool branches = false, closes = false;           // see Op::branches, Op::closes
    bool of_numbers = false;                         // arithmetic on plain numbers alone, without metamethods
    autodiff::DerivativeRule* derivative = nullptr;  // null: a node has no cotangent and is copied
    // On plain numbers; null: it is not about them alone.
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

// All of them; the descriptions are in language.cpp.
const Registry& language();

// The primitive of that name; throws state_error when there is none.
const Op& primitive(std::string_view name);

// An operator that is no primitive has none, and null has none.
const Facts& facts(const Op* op);
inline const Facts& facts(const Op& op) { return facts(&op); }

// Whether the operator is a primitive.
bool is_primitive(const Op& op);

// What the node's operand 1 names: of `j_arith` one of Lua's operations, otherwise arithmetic on plain numbers or an
// operator. For nodes of primitives with Facts::names.
const Op& named_operation(const ir::Node& node);

}  // namespace lua
}  // namespace lunaria
