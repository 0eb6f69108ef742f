// The record of a compiled function: a graph of the IR, with one inner graph for each branch, and beside it the steps
// that the runner carries out. A step is an event of a run, in their order: a read from outside (with its guard: the
// same value must be found again, or another branch is taken), an operator, or an effect, which is repeated at each
// call. The step's node holds the operation, its operands and its place in the program; the step holds what the runner,
// the passes and the recorder need beside it.
//
// A value that may differ from call to call (a tensor, a symbolic number, a table) has a slot; slots are numbered along
// the path from the root, so that a number means one value on each path.
//
// A loop whose number of iterations differs is in the record once: the step `loop` gives the values at the start of an
// iteration slots of their own, and where a path comes back to it, the step `again` gives these slots the values of the
// next iteration.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"
#include "jit/vm/host.h"

namespace lunaria::trace {

// The expected result of an event.
struct Expected {
    enum class What : uint8_t { constant, tensor, same, number, table };
    What what = What::constant;
    Value constant;             // for a number, one of its kind
    ir::Node* guard = nullptr;  // constant: the node of the guard
    // Tensor, number, table: the node of the value and its slot; same: those of the value that it must be.
    ir::Node* node = nullptr;
    int32_t slot = -1;
    TensorType type;                // of a tensor
    bool open = false;              // a tensor of any sizes, of as many axes as that type has
    bool typed = false;             // same: the type must be that one as well
    bool parameter = false;         // whether the tensor is one
    bool handed = false;            // the tensor's handle goes out again: as a result, into a table ...
    const void* pointer = nullptr;  // identity of a constant object, or of a text that the function keeps
    Value holder;                   // the outside's object of that identity, where the constant alone does not keep it
};

class SizePattern;

struct Step {
    // In some kinds the last operand is a list of any length, such as the arguments of a call.
    enum class Kind : uint8_t {
        count,      // of the arguments
        argument,   // operand: its position
        read,       // table, key
        metatable,  // table
        upvalue,    // function, position
        length,     // table
        next,       // table, key
        is,         // a number's value or a tensor's type that was decided
        item,       // tensor -> its element
        size,       // tensor, axis
        op,         // an operator
        number,     // an operation on numbers
        scalar,     // number, dtype -> a tensor without axes
        index,      // object, key, with the full semantics of the language
        compare,
        call,  // function, list of arguments
        make,  // a table: sizes, list of the metatable, then keys and values
        set_index,
        raw_set,
        set_upvalue,
        loop,   // depth, places, list of values -> the values at the start of an iteration
        again,  // depth, list of values -> whether another iteration of this loop begins with them
        finish  // list of the results
    };
    // For steps that are not in a graph yet.
    Step(Kind kind, const Op& op, std::vector<Value> args, const ir::Span& span);
    // Steps that are neither operators nor comparisons have a primitive of their own.
    Step(Kind kind, std::vector<Value> args);
    // Copies everything but the node from the other step, which is the same event.
    void take_facts(const Step& other);
    const Op& op() const { return *node->op; }
    const std::vector<Value>& args() const { return node->args; }
    // The items of the list that is the last operand.
    const std::vector<Value>& rest() const { return node->args.back().items(); }
    const ir::Span& span() const { return node->span; }

    Kind kind;
    ir::Node* node;                   // the operator or primitive, its operands, its place in the program
    std::unique_ptr<ir::Node> loose;  // owns that node until the step is recorded
    bool effect = false;              // changes something that outlives the call
    bool late = false;                // an effect came before it: the call cannot be begun anew
    bool fails = false;               // it raises an error, which the program catches: the expected result is the error
    bool direct = false;              // of a call: pcall itself makes the call, not a line of the program
    bool method = false;              // of a call: object:name()
    bool counts = false;              // of a read: an integer that will differ the next time
    bool varies = false;              // of a variable's read: other closures of the text hold another number
    // Of a call, and of a read by a symbolic key: the results (numbers, texts, for a read also tables) will differ the
    // next time.
    bool opens = false;
    std::vector<Expected> expected;
    std::vector<int32_t> live;     // of a late step or an effect: slots whose values were still alive before it
    std::vector<int32_t> written;  // of an effect: slots of tensors that it writes into
    std::vector<int32_t> drops;    // slots that no later step needs
    std::vector<int32_t> again;    // slots of tensors that go out here and elsewhere, each time with the same handle
    bool by_content = false;       // an operator: the sizes of its results depend on more than on those of its operands
    bool alone = false;            // an operator that no compiled graph can hold
    int32_t table = -1;            // of `make`: the table's number in the run; of `loop`, `again`: the loop's
    const Op* whole = nullptr;     // of an operator: the composite one in whose expansion it is
    bool list = false;             // of an operator: the results are a list, even a single one
    bool looked = false;           // since the step before, the program has looked at a decided size
    int hits = 0;
    // Of `is`, at the start of a branch for any sizes: its pattern. The numbers of the branch follow the tensor. Shared
    // by copies of the step.
    std::shared_ptr<const SizePattern> sizes;
    // For a question: the places of its object and its key in the table of objects that the function keeps; 0: not
    // there.
    int object_at = 0, key_at = 0;
};

// A stretch of steps whose operators run as one compiled graph, see region.h.
struct Region;
// Guards that are asked as one, see guards.h.
struct GuardGroup;

// A graph of the record and its steps.
struct Block {
    explicit Block(ir::Graph& graph);
    ~Block();
    // Records the step: its node, its results, the guards on decided values.
    void append(Step step);
    Block& add_way();
    // Moves the steps from there on into a branch of their own, from whose end the present branches continue.
    void split(size_t at);
    // Removes the steps from there on and all branches.
    void cut(size_t at);
    void erase_ways(const std::function<bool(const Block&)>& dead);
    // If there is only one branch, its content is appended to this block.
    bool join_only_way();
    // Writes the branches at the end of the graph.
    void write_ways();

    ir::Graph* graph;
    std::vector<Step> steps;
    std::vector<std::unique_ptr<Region>> regions;  // in their order
    std::vector<GuardGroup> groups;                // in their order
    // The branches: their first steps are one event with different results.
    std::vector<std::unique_ptr<Block>> next;
    std::vector<int32_t> dead;  // slots that other branches need from the start of this one on, but not this one
    uint64_t used = 0;          // Tree::clock when a call last took this branch
    bool changed = true;        // since the tree was last settled
    // The first of the nodes that write the branches, while they are there.
    const ir::Node* end = nullptr;
    // The results of settle() for the block and those below it, which hold as long as none of them changes.
    struct Settled {
        bool stale = true, loops = false;             // `loops`: some begin in the block itself
        std::vector<int32_t> needed;                  // slots needed at its start
        std::vector<std::pair<int32_t, int>> handed;  // slots that go out, and the number of times
        size_t branches = 0, steps = 0;
        int32_t slots = 0;
    };
    Settled settled;
};

struct Tree {
    std::unique_ptr<ir::Graph> graph = std::make_unique<ir::Graph>("call");
    Block root{*graph};
    std::unordered_set<const void*> tables;  // that are read as exactly these objects, which the steps keep
    std::unordered_set<int32_t> texts;       // slots that may hold texts
    bool random = false;                     // it draws random numbers
    bool dirty = false;                      // it has to be settled again
    uint64_t settled = 0;                    // number of times it was settled
    size_t branches = 1, steps = 0;
    uint64_t clock = 0;    // counts the branches that calls took
    size_t forgotten = 0;  // number of removed branches
    int32_t slots = 0;     // the largest number on a path
};

// Whether two operands are the same, although another run may have made one of them anew.
bool same_operand(const Value& a, const Value& b);
// Whether two steps are the same event, whatever their results.
bool same_event(const Step& a, const Step& b);
// Whether a program cannot tell two values apart: the same number bit by bit, the same text, the same object.
bool identical(const Value& a, const Value& b);

// Whether a tensor of these sizes is expected there.
bool fits_shape(const Expected& expected, const Shape& shape);
// Whether a result is as expected. `slots`: for results that must be the same object as one of them.
bool fits(vm::Host& host, const Expected& expected, const Value& v, std::span<const Value> slots);
// Whether all results of a step are, or its error if it raised one.
bool all_fit(vm::Host& host, const Step& step, bool fails, const vm::Values& results, std::span<const Value> slots);

// Calls f with each slot that an operand refers to.
template <class F>
void for_each_slot(const Value& operand, F&& f) {
    if (operand.is_node()) f(operand.node()->slot);
    if (operand.is_list())
        for (const Value& item : operand.items()) for_each_slot(item, f);
}
template <class F>
void for_each_slot(const Step& step, F&& f) {
    for (const Value& operand : step.args()) for_each_slot(operand, f);
}

// The operand with f's result in place of each value in it that is no list.
template <class F>
Value with_leaves(const Value& operand, const F& f) {
    if (!operand.is_list()) return f(operand);
    std::vector<Value> items;
    items.reserve(operand.items().size());
    for (const Value& item : operand.items()) items.push_back(with_leaves(item, f));
    return Value::list(std::move(items));
}

// Whether the step jumps back to the start of an iteration.
inline bool goes_back(const Step& step) {
    return step.kind == Step::Kind::again && step.expected[0].constant.boolean();
}
// Whether the step `again` jumps back to this loop.
inline bool is_loop_of(const Step& loop, const Step& again) {
    return loop.kind == Step::Kind::loop && loop.table == again.table && same_operand(loop.args()[0], again.args()[0]);
}

// Calls f with every step.
void for_each_step(Tree& tree, const std::function<void(Step&)>& f);
// The same for blocks that changed since the tree was last settled.
void for_each_new_step(Tree& tree, const std::function<void(Step&)>& f);
// Replaces every object that the step refers to by f's result for it.
void replace_objects(Step& step, const std::function<Value(const Value&)>& f);

// Fills in the slots that each step may drop, and counts. To be called whenever the tree has grown; it only visits what
// leads to changed blocks.
void settle(Tree& tree);

// Bounds of a function's records. Beyond those on cases and steps, the branches that were not used for the longest time
// are removed; a record that is too long even so is left to Lua.
struct Limits {
    size_t ways = 128;       // results of one event
    size_t branches = 512;   // of the tree
    size_t steps = 200000;   // of the tree
    size_t live = 32 << 20;  // values, in total, that steps after effects keep: each keeps those that are alive then
};

// Makes room for one more branch of the block.
void make_room(Tree& tree, Block& block, const Limits& limits);

// The place where a recording began to write: in a block that ended there, or in a new branch.
struct Growth {
    Block* block = nullptr;
    const Block* way = nullptr;
    size_t at = 0;
    size_t steps = 0;  // written so far

    void begin(Block& in, const Block* new_way, size_t position = 0);
    // Removes what was written; the tree is the block's.
    void withdraw(Tree& tree);
};

// Removes the branch that was not used for the longest time, among those that do not lead to `here`; false: there is
// none.
bool forget_oldest(Tree& tree, const Block& here);

// Sets the types of the tree's nodes as far as they follow from those of their operands: to be done before the graph is
// shown or verified.
void tell_types(Tree& tree);
// The primitive for a step of this kind; for a step whose operator tells, the operator.
std::string_view name_of(Step::Kind kind);
std::string_view name_of(const Step& step);
// The words after their place in the program, if that is known.
std::string described(const ir::Span& span, std::string_view words);
// The results of an event, in words for the user: "float32(2, 3)", "5", "a table".
std::string in_words(const std::vector<Expected>& results);

}  // namespace lunaria::trace
