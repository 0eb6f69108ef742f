// The graph runtime: compiles a graph of tensor operators and runs it as a flat list of kernels over planned memory.
//
//     auto step = graph::compile(g, {.donations = {{0, 1}}});
//     step->run(inputs, outputs);
//
// The graph is one function without inner ones, whose parameters are tensors of known dtype and shape and whose body
// holds operators of the registry alone (composites included). It is not kept; tensors that it holds as constants are
// as they were when it was compiled, except parameters of networks and what the graph itself assigns to: those are read
// anew by every run.
//
// A run gives what eager mode gives: the same order of effects and random numbers, errors at the same operator, the
// same elements but for the order in which floats are added up and multiplied.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::graph {

// outputs[output] is the tensor inputs[input] itself, with new elements: a variable that a step updates. Other tensors
// that share its storage keep the old ones. Both have one dtype and shape, and no input is passed for two parameters
// then.
struct Donation {
    size_t input = 0, output = 0;
};

// Borrowed outputs for which a function is called as soon as they are computed and no step reads these inputs any more,
// so that it may write into the inputs: an optimizer that updates a parameter while the gradients of others are still
// to come. It is called after the last step that may fail by the values of its operands.
struct EarlyUse {
    std::vector<size_t> outputs, inputs;
};

struct CompileOptions {
    std::vector<Donation> donations{};
    // Outputs that are temporaries: they are valid only until run()'s `last` has returned.
    std::vector<size_t> borrowed{};
    std::vector<EarlyUse> early{};
    bool generate = true;           // false: every operator runs by its own kernel
    bool waits = false;             // code that no cache has is left out for now, see Executable::is_worth_code()
    bool generates_single = false;  // also single operators that could be part of generated code become such code
    bool keeps_sources = false;  // keeps the sources of generated code, for a plan that is to be written (plan_file.h)
};

struct ExecutableStats {
    size_t steps = 0;            // number of steps in a run
    size_t generated = 0;        // of these, by generated kernels
    size_t generated_nodes = 0;  // operators in them
    size_t arena_bytes = 0;      // of temporaries, for one run at a time
};

// The time of one step of a run.
struct StepTime {
    std::string operators;  // one, or those in a generated kernel
    ir::Span span;          // of the first of them
    bool generated = false;
    double seconds = 0;
    int64_t bytes = 0;  // of the operands and results, once each
    double flops = 0;   // see core/run/profile.h
};

// The place in the program of the step that failed in this thread's last run that ended by an exception.
const ir::Span& failed_place();

// The plan of a program before it runs: its steps, and the temporaries with their places and the steps during which
// they live.
struct PlannedStep {
    std::string operators;
    ir::Span span;
    bool generated = false;
    int64_t bytes = 0;
    double flops = 0;
};
struct PlannedMemory {
    std::string name;  // of the operators that make it
    size_t offset = 0, bytes = 0;
    size_t first = 0, last = 0;  // steps; `last` is their number where it lives to the end
};

struct Plan;

class Executable {
  public:
    Executable(const Executable&) = delete;
    ~Executable();

    // Throws argument_error where inputs do not have the types for which the graph was compiled, and the errors of
    // operators; donated inputs may then have their new elements already. `outputs` gets one tensor per item of the
    // graph's result. Safe to call from several threads. `last` is called with the outputs in their places and must not
    // throw; after it, no tensor may be a borrowed output or share its storage. `early` is called for each of
    // CompileOptions::early, with its outputs in their places during the call only.
    void run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const std::function<void()>& last = {},
             const std::function<void(size_t)>& early = {}) const;

    // The same, returning the time of each step.
    std::vector<StepTime> profile(std::span<const Tensor> inputs, std::span<Tensor> outputs) const;

    std::vector<PlannedStep> steps() const;
    std::vector<PlannedMemory> memory() const;
    size_t output_count() const;
    Device* place() const;  // where it runs, in the form of Tensor::device
    // Operators without a kernel on its device: the host runs them, with copies of operands and results.
    std::vector<std::string_view> host_operators() const;
    ExecutableStats stats() const;
    // Whether it runs without code that it waits for, and now has that at hand or has spent so much time without it
    // that generating it is likely to pay: compiling the graph again gives the same results faster.
    bool is_worth_code() const;
    // The launch list, one step per line: for reports and LUNARIA_DUMP=kernels.
    std::string describe() const;

  private:
    friend std::unique_ptr<Executable> executable_of(Plan plan);
    struct Program;
    struct Context;
    explicit Executable(std::unique_ptr<Program> program);
    void run_steps(std::span<const Tensor> inputs, std::span<Tensor> outputs, std::vector<StepTime>* times,
                   const std::function<void()>& last, const std::function<void(size_t)>& early) const;
    std::unique_ptr<Program> program_;
};

// Compiles for the current place and looks up its kernels. Throws state_error where the graph is not as described
// above. Several threads may compile at once. LUNARIA_DUMP (a list of: passes, kernels, times) prints to the standard
// error stream; times are those of each step, printed when the program ends.
std::unique_ptr<Executable> compile(const ir::Graph& graph, const CompileOptions& options = {});

// The graph after the passes, as text.
std::string optimized_text(const ir::Graph& graph);

}  // namespace lunaria::graph
