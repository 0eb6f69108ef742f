// The executable form of a function: instructions over registers. Calls keep the order of the source; a value is
// dropped after its last use.
#pragma once

#include <functional>
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
    int32_t at = 0;      // a register; ~index of a constant; the index of a list's first slot
    int32_t items = -1;  // number of items of a list
    bool last = false;   // this is the last use of the register: its value may be moved out
};

struct Instr {
    Handler run = nullptr;
    const ir::Node* node = nullptr;  // the source of the instruction; null for the return
    const Op* op = nullptr;          // of a call to an operator
    uint32_t slots = 0, slot_count = 0;
    int32_t out = -1;     // first result register, -1: the result is not used
    int32_t results = 1;  // number of registers over which a list of results is spread; -1: `out` takes the list
    int32_t r_out = -1;   // registers of the backpropagators, the innermost first
    int32_t order = 0;    // of an ordered primitive: the number of them
    uint32_t kills = 0, kill_count = 0;  // registers after their last use
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
    // Makes the graph, of which the name and the captures are there, for the first call; empty: it is whole.
    std::function<void()> make;
    bool rule = false;  // an operator's reverse rule: missing cotangents are filled with zeros
    // For a rule: the operand that each capture is, as the key of its cotangent in the closure's shadow.
    std::vector<int64_t> keys;
    // For a rule that is a chain; made when it first runs.
    std::unique_ptr<const RuleChain> chain;
    bool chain_known = false;
    bool packs = false;         // several results are one list
    bool keeps_caller = false;  // a function of C to the program: its caller stays, so that errors tell of it
    const Op* whole = nullptr;  // the composite operator whose expansion this is
    // For a function that catches the errors of its calls: the function that continues from the failed call on. The
    // nodes up to and with that call are the same in both.
    const OperatorFunction* failed = nullptr;
    std::unique_ptr<Code> code;
    std::unique_ptr<ir::Graph> derivative_graph, expanded_graph;
    std::unique_ptr<ir::Graph> calling_graph;  // with calls in place of operators
    Function* primal = nullptr;                // the function whose derivative this is
    autodiff::Origins origins;                 // of the derivative's blocks
    std::unordered_map<uint64_t, std::shared_ptr<const Exit>> exits;
};

Function& function_of(const ir::Graph& graph);
// The function's graph, made now if it was not yet.
const ir::Graph& whole_graph(Function& function);
// The function, differentiated `order` times.
Function& derivative_of(Function& function, int order);
const Code& code_of(Function& function);

// The registers of a block's values while it runs, and the position in its body of each one's last use.
struct Layout {
    std::unordered_map<const ir::Node*, int32_t> registers;
    std::unordered_map<const ir::Node*, size_t> last;
};
Layout layout_of(const ir::Graph& function, const ir::Graph& block);

// Throws state_error for a primitive without a handler.
Handler handler_of(const Op& primitive);

}  // namespace lunaria::vm
