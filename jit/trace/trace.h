// What a compiled function knows of the ways that its calls take: a graph of the IR with one inner graph for each way
// on, and beside it the steps by which it is carried out. A step is an event of a run, in their order: what was read
// from outside (and the guard on it: the same must be found again, or another way goes on from there), an operator, or
// an effect, which is done again at each call. Its node says what it is, of what operands and where in the program; the
// step has what the runner, the passes and the recorder know of it.
//
// A value that may differ from call to call (a tensor, a number that is not decided upon, a table) has a slot; slots
// are numbered along the path from the root, so that a number means one value on each path.
//
// A loop whose number of turns differs is in it once: the step `loop` gives the values with which a turn begins slots
// of their own, and where a way comes back to it, the step `again` gives these slots the values of the next turn.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"
#include "jit/vm/host.h"

namespace lunaria::trace {

// What an event is expected to give.
struct Expected {
    enum class What : uint8_t { constant, tensor, same, number, table };
    What what = What::constant;
    Value constant;             // of a number one of its kind
    ir::Node* guard = nullptr;  // constant: the node that asks for it
    // Tensor, number, table: the value as it is known from there on, and its slot; same: that which it must be.
    ir::Node* node = nullptr;
    int32_t slot = -1;
    TensorType type;                // of a tensor
    bool open = false;              // a tensor of any sizes, of as many axes as that type has
    bool typed = false;             // same: the type must be that one
    bool parameter = false;         // whether the tensor is one
    bool handed = false;            // the tensor's handle goes out again: as a result, into a table ...
    const void* pointer = nullptr;  // identity of a constant object, or of a text that the function keeps
};

class SizePattern;

struct Step {
    // What is in the list that is the last operand comes in any number: of a call the arguments ...
    enum class Kind : uint8_t {
        count,      // of the arguments
        argument,   // operand: its position
        read,       // table, key
        metatable,  // table
        upvalue,    // function, position
        length,     // table
        next,       // table, key
        is,         // a number or tensor slot's value as it is, or a tensor's type: what was decided upon
        item,       // tensor -> its element
        size,       // tensor, axis
        op,         // an operator
        number,     // an operation on numbers
        scalar,     // number, dtype -> a tensor without axes
        index,      // object, key, with the language's whole meaning
        compare,
        call,  // function, list of arguments
        make,  // a table: sizes, list of the metatable, then keys and values
        set_index,
        raw_set,
        set_upvalue,
        loop,   // depth, places, list of values -> what a turn begins with
        again,  // depth, list of values -> whether another turn of the loop of this number begins with them
        finish  // list of the results
    };
    // Not yet in a graph.
    Step(Kind kind, const Op& op, std::vector<Value> args, const ir::Span& span);
    // What is no operator and no comparison is a primitive of its own.
    Step(Kind kind, std::vector<Value> args);
    // What is known of the other, which is the same event, but for its node.
    void take_facts(const Step& other);
    const Op& op() const { return *node->op; }
    const std::vector<Value>& args() const { return node->args; }
    // The operands in the list that is the last one.
    const std::vector<Value>& rest() const { return node->args.back().items(); }
    const ir::Span& span() const { return node->span; }

    Kind kind;
    ir::Node* node;  // what is done: an operator or a primitive, its operands, its place in the program
    std::unique_ptr<ir::Node> loose;  // that node until the step is written down
    bool effect = false;              // changes something that outlives the call
    bool late = false;                // an effect came before it: the call cannot be begun anew
    bool fails = false;               // it raises an error, which the program meets: what is expected is the error
    bool direct = false;              // of a call: pcall itself calls, no line of the program
    bool method = false;              // of a call: object:name()
    bool counts = false;              // of a read: an integer that comes will be another one the next time
    bool varies = false;              // of a variable's read: other closures of the text hold another number
    // Of a call, and of a read by a key that differs: what comes (numbers, texts, of a read tables) will be another
    // one the next time.
    bool opens = false;
    std::vector<Expected> expected;
    std::vector<int32_t> live;     // of a late step or an effect: slots whose values were still held before it
    std::vector<int32_t> written;  // of an effect: slots of tensors that it wrote into
    std::vector<int32_t> drops;    // slots that no step needs after this one
    std::vector<int32_t> again;    // slots of tensors that go out here and elsewhere: each time as the same handle
    bool by_content = false;       // an operator: the sizes of its results depend on more than on those of its operands
    bool alone = false;            // an operator that no compiled graph can hold
    int32_t table = -1;            // of `make`: which of the run's tables it is; of `loop` and `again`: which loop
    const Op* whole = nullptr;     // of an operator: the composite one whose expansion it is part of, if it is
    bool list = false;             // of an operator: the results are a list, even if it is one alone
    bool looked = false;           // since the step before the program has looked at a size that is decided upon
    int hits = 0;
    // Of `is`, where a way for any sizes begins: which. Behind the tensor are the numbers of the way. Shared by copies
    // of the step.
    std::shared_ptr<const SizePattern> sizes;
    // Of a question: where its object and its key are in the table of what the function keeps; 0: not there.
    int object_at = 0, key_at = 0;
};

// A stretch of steps whose operators run as one compiled graph, see region.h.
struct Region;
// Questions that are asked as one, see guards.h.
struct GuardGroup;

// A graph of the record and its steps.
struct Block {
    explicit Block(ir::Graph& graph);
    ~Block();
    // Writes the step down: its node, the values that come of it, the guards on what is decided upon.
    void append(Step step);
    Block& add_way();
    // The steps from there on become a way of their own, and the ways on are those from its end.
    void split(size_t at);
    // Takes out the steps from there on and all ways.
    void cut(size_t at);
    void erase_ways(const std::function<bool(const Block&)>& dead);
    // If there is one way only, its content comes at the end of this block.
    bool join_only_way();
    // Says at the end of the graph where it goes on.
    void write_ways();

    ir::Graph* graph;
    std::vector<Step> steps;
    std::vector<std::unique_ptr<Region>> regions;  // in their order
    std::vector<GuardGroup> groups;                // in their order
    // Ways on: their first steps are one event with different results.
    std::vector<std::unique_ptr<Block>> next;
    std::vector<int32_t> dead;  // slots that other ways from where this one begins need, but not this one
    uint64_t used = 0;          // Tree::clock when a call went this way last
    bool changed = true;        // since the tree was settled last
    // Of the nodes that say where the graph goes on the first one, while they are there.
    const ir::Node* end = nullptr;
    // What that found of the block and those below it, which holds for as long as none of them changes.
    struct Settled {
        bool stale = true, loops = false;             // `loops`: some begin in the block itself
        std::vector<int32_t> needed;                  // slots, at its start
        std::vector<std::pair<int32_t, int>> handed;  // slots that go out, and how often
        size_t branches = 0, steps = 0;
        int32_t slots = 0;
    };
    Settled settled;
};

struct Tree {
    std::unique_ptr<ir::Graph> graph = std::make_unique<ir::Graph>("call");
    Block root{*graph};
    std::unordered_set<const void*> tables;  // that are read as those very objects
    std::unordered_set<int32_t> texts;       // slots that may hold some
    bool random = false;                     // numbers are drawn in it
    bool dirty = false;                      // it has to be settled again
    uint64_t settled = 0;                    // how often that was done
    size_t branches = 1, steps = 0;
    uint64_t clock = 0;    // counts ways that calls took
    size_t forgotten = 0;  // branches that were taken out
    int32_t slots = 0;     // the most on a path
};

// Whether two operands are the same, of which one may have been made anew by another run.
bool same_operand(const Value& a, const Value& b);
// Whether two steps are one event, whatever they gave.
bool same_event(const Step& a, const Step& b);
// Whether two values cannot be told apart by a program: the same number bit by bit, the same text, the same object.
bool identical(const Value& a, const Value& b);

// Whether a tensor of these sizes may come there.
bool fits_shape(const Expected& expected, const Shape& shape);
// Whether a result is what was expected. `slots` for what must be the same object as one of them.
bool fits(vm::Host& host, const Expected& expected, const Value& v, std::span<const Value> slots);
// Whether all that came of a step is, its error if it raised one.
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

// Whether the step is the way back to where a turn of a loop begins.
inline bool goes_back(const Step& step) {
    return step.kind == Step::Kind::again && step.expected[0].constant.boolean();
}
// Whether the loop is the one to which that step goes back.
inline bool is_loop_of(const Step& loop, const Step& again) {
    return loop.kind == Step::Kind::loop && loop.table == again.table && same_operand(loop.args()[0], again.args()[0]);
}

// Calls f with every step.
void for_each_step(Tree& tree, const std::function<void(Step&)>& f);
// The same with those of blocks that changed since the tree was settled last.
void for_each_new_step(Tree& tree, const std::function<void(Step&)>& f);
// Replaces every object that the step refers to by what f gives for it.
void replace_objects(Step& step, const std::function<Value(const Value&)>& f);

// Fills in what each step may drop, and counts. To be called whenever the tree has grown: only what leads to blocks
// that have changed is gone through.
void settle(Tree& tree);

// Bounds of what is kept of a function. Beyond those on cases and steps the branches that were not used for the longest
// time make room; what is too long even so is left to Lua.
struct Limits {
    size_t ways = 128;       // of one event
    size_t branches = 512;   // of the tree
    size_t steps = 200000;   // of the tree
    size_t live = 32 << 20;  // values that steps behind effects keep, in all: each has those that are alive then
};

// For one more way on from the block.
void make_room(Tree& tree, Block& block, const Limits& limits);

// Where a recording began to write: in a block that ended there, or in a new way on from one.
struct Growth {
    Block* block = nullptr;
    const Block* way = nullptr;
    size_t at = 0;
    size_t steps = 0;  // written so far

    void begin(Block& in, const Block* new_way, size_t position = 0);
    // Takes out what was written.
    void withdraw();
};

// Takes out the branch that no call went for the longest time, of those that do not lead to `here`; false: there is
// none.
bool forget_oldest(Tree& tree, const Block& here);

// Says of the tree's nodes what types their values have, as far as that follows from those of their operands: to be
// done before the graph is shown or verified.
void tell_types(Tree& tree);
// The primitive of the language that a step of this kind is, or what it is where that is told by its operator.
std::string_view name_of(Step::Kind kind);
std::string_view name_of(const Step& step);
// The words after the place of which they are said, if that is known.
std::string described(const ir::Span& span, std::string_view words);
// What an event gives, in words for the user: "float32(2, 3)", "5", "a table".
std::string in_words(const std::vector<Expected>& results);

}  // namespace lunaria::trace
