#include "interpreter/watchers/graph_trace.h"

#include "core/base/interrupt.h"
#include "core/ir/verifier.h"
#include "core/tensor/turned.h"
#include "interpreter/jit/hot.h"
#include "interpreter/watchers/tracing_host.h"
#include "jit/saving/loaded_program.h"
#include "jit/vm/machine.h"

namespace lunaria {

namespace {

// The inputs as the trace has them.
std::vector<Value> follow_inputs(TracingHost& tracing, std::span<const Value> inputs) {
    std::vector<Value> args;
    for (size_t i = 0; i < inputs.size(); ++i) {
        // A body of its own, which is neither a parameter of a network nor the same input twice.
        const Tensor input = row_major(inputs[i].tensor());
        args.emplace_back(input.view(input.shape(), input.strides()));
        tracing.add_input(args.back().tensor(), inputs.size() == 1 ? "x" : str("x", i));
    }
    return args;
}

bool set_results(TracingHost& tracing, ir::Graph& graph, std::span<const Value> results) {
    std::vector<Value> outputs;
    for (const Value& v : results) {
        if (!v.is_tensor()) return false;
        outputs.push_back(tracing.operand(v));
    }
    if (outputs.empty() || !tracing.is_straight()) return false;
    graph.result = Value::list(std::move(outputs));
    ir::verify(graph);
    return true;
}

}  // namespace

namespace {

// While it lives graph mode is off, since compiled code cannot be traced.
class EagerMode {
  public:
    explicit EagerMode(lua_State* L) : L_(L) {
        luaL_checkstack(L, 3, "mode");
        jit::push_mode(L);
        lua_getfield(L, -1, "graph");
        graph_ = lua_toboolean(L, -1);
        lua_pop(L, 2);
        if (graph_) set(false);
    }
    ~EagerMode() {
        if (graph_) set(true);
    }
    EagerMode(const EagerMode&) = delete;
    EagerMode& operator=(const EagerMode&) = delete;

  private:
    void set(bool graph) {
        jit::push_mode(L_);
        lua_pushboolean(L_, graph);
        lua_setfield(L_, -2, "graph");
        lua_pop(L_, 1);
        jit::watch_functions(L_, graph);
    }
    lua_State* L_;
    bool graph_ = false;
};

}  // namespace

std::unique_ptr<ir::Graph> trace_graph(lua_State* L, const Value& f, std::span<const Value> inputs, TracedSizes sizes,
                                       bool with_lines) {
    LuaHost& host = LuaHost::of(L);
    LuaHost::Thread thread(host, L);
    const EagerMode eager(L);
    auto graph = std::make_unique<ir::Graph>("main");
    TracingHost tracing(host, *graph, sizes);
    std::vector<Value> args = follow_inputs(tracing, inputs);
    std::vector<Value> results;
    auto* closure = vm::object_as<vm::Closure>(f);
    if (closure && is_plain(closure->function->graph)) {
        // A loaded network: its graph as it is, with its captured values as arguments.
        args.insert(args.begin(), closure->captures.begin(), closure->captures.end());
        results = tracing.run_graph(closure->function->graph, args);
    } else {
        vm::Machine machine(tracing);
        const vm::Watch watch(&tracing);
        if (with_lines) tracing.note_lines_of(machine);
        try {
            results = machine.run(f, args).vector();
        } catch (const Error&) {
            if (!tracing.is_straight()) return nullptr;
            throw;
        }
    }
    return set_results(tracing, *graph, results) ? std::move(graph) : nullptr;
}

std::unique_ptr<ir::Graph> trace_pure_graph(lua_State* L, const Value& f, std::span<const Value> inputs) {
    LuaHost& host = LuaHost::of(L);
    const LuaHost::Thread thread(host, L);
    auto graph = std::make_unique<ir::Graph>("main");
    TracingHost tracing(host, *graph, TracedSizes::fixed, true);
    std::vector<Value> results;
    bool taken = false;
    const auto outcome = host.call_protected([&] {
        vm::Machine machine(tracing);
        const vm::Watch watch(&tracing);
        const LuaHost::Running running(host, machine);
        vm::Values args;
        for (Value& v : follow_inputs(tracing, inputs)) args.push_back(std::move(v));
        results = machine.run(f, args).vector();
        taken = set_results(tracing, *graph, results);
    });
    if (!outcome.ok) poll_interrupt();
    return outcome.ok && taken ? std::move(graph) : nullptr;
}

}  // namespace lunaria
