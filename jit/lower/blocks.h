// Basic blocks under construction, in static single assignment form.
//
// A block becomes a graph whose parameters are the values that it needs. Blocks continue in each other by tail calls,
// so that loops are recursive graphs and `goto` needs nothing special. Variables are numbered by the method of Braun et
// al., "Simple and efficient construction of static single assignment form" (CC 2013): a block that may get other
// predecessors takes a parameter for each variable that it reads; parameters that turn out to have one source are
// removed. At the end every value of another block that a block uses is passed to it as a further parameter: no block
// has free variables.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "jit/frontend/ast.h"

namespace lunaria::lower {

using lua::Local;

using Variable = const Local*;

class Block;

struct Edge {
    Block* target = nullptr;
    std::vector<Value> args;  // for the target's variable parameters, in their order
};

enum class Ending : uint8_t { open, jump, branch, leave };

class Block {
  public:
    explicit Block(ir::Graph& graph) : graph(&graph) {}

    ir::Graph* graph;
    Ending ending = Ending::open;
    Value condition;  // of a branch
    Value results;    // of leave: a list of values, or a node that stands for a list
    Edge edges[2];
    ir::Span span;  // of the statement that ended the block

  private:
    friend class Blocks;
    bool sealed_ = false;
    std::vector<Block*> predecessors_;
    std::unordered_map<Variable, Value> values_;
    struct Phi {
        Variable variable;
        ir::Node* parameter;
    };
    std::vector<Phi> phis_;
    std::vector<ir::Node*> lifted_;  // values of other blocks, in the order of the parameters made for them
    std::unordered_map<const ir::Node*, size_t> lifted_at_;  // their places in that order
};

class Blocks {
  public:
    // `entry` is the function's own graph; all other blocks become inner graphs of it.
    explicit Blocks(ir::Graph& entry);

    Block& entry() { return *blocks_.front(); }
    Block& add(std::string name);
    // Promises that no further jump to the block will be made.
    void seal(Block& block);

    void write(Block& block, Variable variable, Value value) { block.values_[variable] = std::move(value); }
    Value read(Block& block, Variable variable);
    // A variable of the lowering itself, for values that meet where paths join.
    Variable temporary(std::string_view name);

    void jump(Block& from, Block& to, ir::Span span);
    void branch(Block& from, Value condition, Block& yes, Block& no, ir::Span span);
    void leave(Block& from, Value results, ir::Span span);

    // Seals the open blocks, removes needless parameters and unreachable blocks, passes values between blocks, and
    // writes the tail calls. Nothing can be added afterwards.
    void finish();

  private:
    Value read_from_predecessors(Block& block, Variable variable);
    ir::Node* add_phi(Block& block, Variable variable);
    void fill_phi(Block& block, const Block::Phi& phi);
    void remove_trivial_phis(const std::vector<Block*>& reachable);
    Value resolve(const Value& v) const;
    std::vector<Block*> reachable();
    void lift(const std::vector<Block*>& reachable);
    static Value localise(const Block& block, const Value& v);

    std::deque<Block> storage_;
    std::vector<Block*> blocks_;
    std::deque<Local> temporaries_;
    std::unordered_map<const ir::Node*, Value> replaced_;
    ir::Graph& function_;
};

}  // namespace lunaria::lower
