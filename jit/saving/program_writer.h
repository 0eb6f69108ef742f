// The functions of a program that is written for a file: their blocks, constants, and the weights that they capture.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "jit/lower/blocks.h"
#include "jit/saving/partial.h"

namespace lunaria {

// A function of the program.
struct WrittenFunction {
    explicit WrittenFunction(ir::Graph& graph) : graph(&graph), blocks(graph) {}
    ir::Graph* graph;
    lower::Blocks blocks;
    std::vector<ir::Node*> captures, parameters;
    std::vector<std::pair<Value, ir::Node*>> weights;  // captured after the other values
    std::unordered_map<const void*, Value> constants;
};

class ProgramWriter {
  public:
    // `where`: the name in errors.
    explicit ProgramWriter(std::string_view where) : where_(where), root_(std::make_unique<ir::Graph>("main")) {}

    ir::Graph& root() { return *root_; }
    // The first function is the program; it calls the others.
    WrittenFunction& add_function(std::string name);
    lower::Blocks& blocks() { return function_->blocks; }
    lower::Block& add_block() { return blocks().add(std::to_string(++counter_)); }

    // The place of emitted nodes: `here`, a block of `function`, with that line of the user's text.
    struct Place {
        WrittenFunction* function = nullptr;
        lower::Block* here = nullptr;
        ir::Span at;
    };
    Place place() const { return {function_, here, at}; }
    void go_to(const Place& place);
    lower::Block* here = nullptr;
    ir::Span at;

    Value emit(std::string_view primitive, std::vector<Value> args);
    Value emit(const Op& op, std::vector<Value> args);
    // Result i of a list of any form, and the results from the i-th on.
    Partial item(const Partial& list, size_t i);
    Partial rest(const Partial& list, size_t i);
    // A tensor as a value of the function: a weight is captured, any other tensor is a constant.
    Value tensor(const Value& tensor);
    // A function of the program as a value. It gets the weights that it needs once everything is written.
    Value closure_of(WrittenFunction& function, std::vector<Value> captures);
    [[noreturn]] void refuse(std::string_view what, std::string_view hint = "") const;

    // The graph that calls the program with its own parameters.
    std::unique_ptr<ir::Graph> finish(std::vector<Value> inputs);

  private:
    Value weight(WrittenFunction& in, const Value& tensor);
    void pass_weights();

    struct Link {
        ir::Node* closure;
        WrittenFunction *in, *of;
    };
    const std::string where_;
    std::unique_ptr<ir::Graph> root_;
    std::deque<WrittenFunction> functions_;
    std::vector<Link> links_;
    std::map<std::string, int> weight_names_;
    WrittenFunction* function_ = nullptr;
    size_t emitted_ = 0, counter_ = 0;
};

}  // namespace lunaria
