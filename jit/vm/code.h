// The executable form of a function: instructions over registers. Calls keep the order of the source; a value is
// dropped after its last use.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "jit/autodiff/transform.h"
#include "jit/vm/rule_chain.h"

namespace lunaria::vm {

class Machine;
struct Function;
struct Instr;
using Handler = void (*)(Machine&, const Instr&);

// An operand: a register, a constant, or a list of operands.
struct Slot {
    int32_t at = 0;      // register; ~index of a constant; of a list the index of its first slot
    int32_t items = -1;  // of a list: how many
    bool last = false;   // the register is not used again: its value may be moved out
};

struct Instr {
    Handler run = nullptr;
    const ir::Node* node = nullptr;  // what it was made from; null for the return
    const Op* op = nullptr;          // of a call to an operator
    uint32_t slots = 0, slot_count = 0;
    int32_t out = -1;     // first result register, -1: nobody wants it
    int32_t results = 1;  // how many result registers a list of results is spread over; -1: `out` takes the list
    int32_t r_out = -1;   // registers of the backpropagators, the innermost first
    int32_t order = 0;    // of an ordered primitive: how many there are
    uint32_t kills = 0, kill_count = 0;  // registers that are not used again
    uint32_t target[2] = {0, 0};         // blocks
    bool tail = false;                   // the call's results are the function's
};

struct Code {
    struct Block {
        uint32_t start = 0;
        std::vector<int32_t> parameters;
    };
    std::vector<Instr> instrs;
    std::vector<Slot> slots;
    std::vector<Value> constants;
    std::vector<int32_t> kills;
    std::vector<Block> blocks;  // the first is the entry
    const ir::Graph* graph = nullptr;
    size_t registers = 0;
    size_t parameters = 0;  // of the function, hidden ones and captures included
    Function* function = nullptr;
};

// A way out of a function in the middle of a block: see unwind.cpp.
struct Exit;

// A function of the IR and what keeps its graph alive.
struct OperatorFunction {
    Function* function = nullptr;
    std::shared_ptr<const void> owner;
};

// A function of the IR as the machine knows it; attached to its graph.
struct Function final : ir::Attachment {
    explicit Function(const ir::Graph& graph) : graph(graph) {}

    const ir::Graph& graph;
    bool rule = false;  // an operator's reverse rule: missing cotangents are filled with zeros
    // Of a rule: the operand that each capture is, as key of its cotangent in the closure's shadow.
    std::vector<int64_t> keys;
    // Of a rule that is one, made when it runs first.
    std::unique_ptr<const RuleChain> chain;
    bool chain_known = false;
    bool packs = false;         // several results are one list
    const Op* whole = nullptr;  // the composite operator that this is the expansion of
    // Of a function that meets the errors of what it calls: what it is from the failed call on. The nodes before and
    // with that call are the same in both.
    const OperatorFunction* failed = nullptr;
    std::unique_ptr<Code> code;
    std::unique_ptr<ir::Graph> derivative_graph, expanded_graph;
    std::unique_ptr<ir::Graph> calling_graph;  // with calls in place of operators
    Function* primal = nullptr;                // whose derivative this is
    autodiff::Origins origins;                 // of the derivative's blocks
    std::unordered_map<uint64_t, std::shared_ptr<const Exit>> exits;
};

Function& function_of(const ir::Graph& graph);
// The function `order` times differentiated.
Function& derivative_of(Function& function, int order);
const Code& code_of(Function& function);

// Where the values of a block are while it runs, and the place in its body where each is used last.
struct Layout {
    std::unordered_map<const ir::Node*, int32_t> registers;
    std::unordered_map<const ir::Node*, size_t> last;
};
Layout layout_of(const ir::Graph& function, const ir::Graph& block);

// Throws state_error for a primitive without a handler.
Handler handler_of(const Op& primitive);

}  // namespace lunaria::vm
