// A host that writes the operators called on followed tensors into a graph. The virtual machine runs control flow,
// tables and Lua functions, which leave no trace; any other dependence on a followed tensor ends the trace.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/builder.h"
#include "interpreter/host/names.h"
#include "interpreter/watchers/graph_trace.h"
#include "interpreter/watchers/watching_host.h"

namespace lunaria {

class TracingHost : public WatchingHost {
  public:
    // It must watch the machine, too. `pure`: see trace_pure_graph().
    TracingHost(LuaHost& host, ir::Graph& graph, TracedSizes sizes, bool pure = false);
    // Whether the recorded operators are what the function computes for all inputs.
    bool is_straight() const { return straight_; }

    // Nodes get the lines that this machine runs.
    void note_lines_of(const vm::Machine& machine) { machine_ = &machine; }

    void add_input(const Tensor& t, const std::string& name);
    // The value in the graph.
    Value operand(const Value& v);
    // The results of a straight-line graph of operators.
    std::vector<Value> run_graph(const ir::Graph& part, std::span<const Value> args);

    // Operators that the machine runs itself, as those of a program loaded from a file.
    Value run(const Op& op, std::span<const Value> args) override { return record(op, {args.begin(), args.end()}); }
    vm::Values call(const Value& f, std::span<const Value> args) override;
    Value index(const Value& object, const Value& key) override;
    void set_index(const Value& object, const Value& key, const Value& value) override;
    Part put_part(const Value& tensor, const Value& key, const Value& value) override;
    Value new_table(size_t array, size_t fields) override;
    void raw_set(const Value& table, const Value& key, const Value& value) override;
    bool step(vm::Machine& m, const vm::Instr& i) override;
    Value number_of(const Value& tensor) override;
    Value metamethod(const Value& a, const Value& b, std::string_view event) override;
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override;
    bool compare(const Op& primitive, const Value& a, const Value& b) override;
    Value length(const Value& a) override;
    Value concat(const Value& a, const Value& b) override;

  protected:
    // Ends the trace: the function depends on its inputs in another way than by operators.
    [[noreturn]] void leave();
    bool follows(const Value& v) const { return v.is_tensor() && nodes_.contains(v.tensor().body()); }
    // Runs the operator and writes it into the graph, unless it works on constants alone.
    Value record(const Op& op, const std::vector<Value>& args);

  private:
    class Recording;

    // Whether a function that is not written in Lua returns its arguments without reading their elements.
    bool moves_values(const Value& f) const;
    // Whether a function that is not written in Lua has no effects and returns the same for the same arguments.
    bool always_gives_the_same(const Value& f) const;
    // Whether a function with this argument can reach values that depend on the inputs.
    bool reaches_inputs(const Value& v);
    // The operator for a method's conversion of a tensor.
    Value convert(const Value& from, const Value& to);
    void know(const Value& v, const Value& node);
    std::string unique_name(const std::string& name);

    ir::Graph& graph_;
    ir::GraphBuilder builder_;
    const vm::Machine* machine_ = nullptr;
    std::unordered_map<const TensorBody*, ir::Node*> nodes_;
    std::vector<Tensor> kept_;  // keep the addresses of their bodies from being used again
    std::set<std::string> taken_;
    const FunctionNames names_;
    std::vector<Value> typed_, casts_;
    const TracedSizes sizes_;
    const bool pure_;
    std::unordered_map<const void*, Value> own_;  // tables and variables made by a pure function
    bool straight_ = true;
};

}  // namespace lunaria
