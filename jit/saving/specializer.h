// A program for a file: a function specialised to everything but its arguments (online partial evaluation; Jones,
// Gomard and Sestoft, "Partial Evaluation and Automatic Program Generation", 1993).
//
// The function's blocks are evaluated with values that are partly known. Known values are computed: fields of tables
// and cells, options, the methods of classes. Everything else is written into the new program as in the old one: a
// branch by an unknown value stays a branch, and a block that is reached again with the same known values is jumped to,
// so that loops stay loops. Calls are inlined; a function that calls itself, or is a value of the program, becomes a
// function of its own. Parameters of networks are captured values of all functions that need them.
//
// Where a loop changes a known value in each iteration, such as a counter, its blocks would be written without end.
// After some iterations such a value counts as unknown, and the program is begun anew.
#pragma once

#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "jit/saving/known.h"
#include "jit/saving/names.h"
#include "jit/saving/partial.h"
#include "jit/saving/program_writer.h"

namespace lunaria {

// The program of f, as a graph that calls it with its parameters, one for each argument of an example, with the types
// of those. Weights are constants with names. Throws state_error, with the line, for values that cannot be saved.
std::unique_ptr<ir::Graph> specialize(Known& known, const Value& f, std::span<const Value> example);

// A parameter of a block, by its position, whose value varies.
using Varying = std::set<std::pair<const ir::Graph*, size_t>>;

class Specializer {
  public:
    // Thrown when `varying` has grown.
    struct Again {};

    // `most`: the number of variants of a block after which a known value that differs among them counts as unknown.
    Specializer(Known& known, Varying& varying, size_t most);
    std::unique_ptr<ir::Graph> run(const Value& f, std::span<const Value> example);

  private:
    // A block of the old program with the known parts of its arguments.
    struct Variant {
        const ir::Graph* source;
        lower::Block* block;
        std::vector<Partial> args;
        std::vector<lower::Variable> variables;  // for the nodes in the arguments
    };
    // A call that is being evaluated.
    struct Activation {
        const ir::Graph* function;
        std::string key;
        Partial self;
        std::shared_ptr<const void> owner;
        Activation* caller;
        std::map<std::string, Variant> variants;
        std::vector<Variant*> waiting;
        std::unordered_map<const ir::Graph*, std::vector<Variant*>> of_block;
        struct Leaf {
            lower::Block* block;
            Partial results;  // a list, or a node that stands for one
        };
        std::vector<Leaf> leaves;
    };
    using Environment = std::unordered_map<const ir::Node*, Partial>;
    using Step = Partial (Specializer::*)(const ir::Node&, std::vector<Partial>&);
    static const std::unordered_map<std::string_view, Step>& steps();

    // Blocks.
    Partial run_function(Activation& a, std::vector<Partial> args);
    void run_block(Activation& a, const ir::Graph* block, std::vector<Partial> args);
    Partial join(std::vector<Activation::Leaf>& leaves);
    // Evaluates the body; the last node may lead to other blocks, which is left to the caller.
    Environment run_body(const ir::Graph& block, std::vector<Partial>& args, const ir::Node* last);
    Variant& variant(Activation& a, const ir::Graph& block, std::vector<Partial> args, std::vector<Value>& nodes);
    void widen(const std::vector<Variant*>& variants);
    void jump(Activation& a, const ir::Graph& block, std::vector<Partial> args);
    void branch(Activation& a, const ir::Node& node, const Value& condition, Environment& e);

    // Nodes.
    Partial evaluate(const Value& v, const Environment& e) const;
    Partial step(const ir::Node& node, const Environment& e);
    Partial fold_or_emit(const ir::Node& node, std::vector<Partial>& args);
    Partial equal(const ir::Node& node, std::vector<Partial>& args);
    Partial negate(const ir::Node& node, std::vector<Partial>& args);
    Partial index(const ir::Node& node, std::vector<Partial>& args);
    Partial set_index(const ir::Node& node, std::vector<Partial>& args);
    Partial table(const ir::Node& node, std::vector<Partial>& args);
    Partial emit_all(const ir::Node& node, std::vector<Partial>& args);
    Partial call(const ir::Node& node, std::vector<Partial>& args);
    Partial spread(const ir::Node& node, std::vector<Partial>& args);
    Partial result(const ir::Node& node, std::vector<Partial>& args);
    Partial results_from(const ir::Node& node, std::vector<Partial>& args);
    Partial closure(const ir::Node& node, std::vector<Partial>& args);
    Partial current_function(const ir::Node& node, std::vector<Partial>& args);
    Partial no_closing(const ir::Node& node, std::vector<Partial>& args);
    Partial cell_get(const ir::Node& node, std::vector<Partial>& args);
    Partial cell_set(const ir::Node& node, std::vector<Partial>& args);
    Partial joined(const Partial& head, const Partial& tail);
    bool fold(const Op& op, const std::vector<Partial>& args, Partial& result);

    // Calls.
    Partial call_known(const Value& f, const Partial& args);
    Partial call_named(const Known::Named& entry, const Value& f, const Partial& args);
    bool fold_call(std::string_view name, const Value& f, const Partial& args, Partial& results);
    Partial apply(const Partial& f, const Partial& args);
    std::vector<Partial> bind(const ir::Graph& function, const std::vector<Partial>& captures, const Partial& args);
    Partial call_residual(const Partial& f, std::vector<Partial> args);
    WrittenFunction& residual_of(const Partial& f, const std::vector<Partial>& args, bool any_arguments);
    // A known function that the program can be run in; nothing where the host's value is none.
    Partial function_of(const Value& f, std::vector<Partial>& prefix) const;

    // Values of the new program.
    Value operand(const Partial& p);
    std::vector<Value> operands(const std::vector<Partial>& list);
    Value read_only(const Partial& list);
    // A table or another object that existed before the program, or a part of it.
    bool is_outside(const Partial& p) const;
    Value operator_operand(const Partial& p);
    // For a list of arguments or results: a list, or the node for one.
    Value operand_list(const Partial& p);
    Value node_of_list(const Partial& p);
    Value known_operand(const Value& v);
    Value known_table(const Value& t);
    Value made_again(const Value& object);

    Known& known_;
    vm::Host& host_;
    Varying& varying_;
    const size_t most_;
    ProgramWriter out_;
    std::map<std::string, WrittenFunction*> residual_by_key_;
    std::vector<Value> kept_;  // objects whose addresses occur in keys
    Activation* running_ = nullptr;
    ir::Graph scratch_{"unknown"};
    const Value unknown_;
    size_t depth_ = 0;
    bool copies_tables_ = false;
    std::unordered_set<const ir::Node*> copies_;  // of tables from outside, and of values read from them
    std::vector<const void*> tables_;             // that are being written out
    BlockEntries entries_;
};

}  // namespace lunaria
