#include "interpreter/watchers/formula_trace.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "core/operator/expansion.h"
#include "interpreter/library/library_functions.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/watching_host.h"
#include "jit/language.h"
#include "jit/vm/watcher.h"

namespace lunaria {

namespace {

constexpr std::string_view kFormulaTraceWhere = "op";
constexpr size_t kMostWays = 64, kMostDecisions = 4096, kMostNodes = 20000;

// One path through the function: its decisions, and its result.
struct Way {
    std::vector<std::pair<ir::Node*, bool>> decisions;
    Value result;
};

class FormulaHost final : public WatchingHost, public Builder {
  public:
    FormulaHost(LuaHost& host, ir::Graph& graph) : WatchingHost(host), graph_(graph), builder_(graph), machine_(*this) {
        for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
            const bool moves = row.values == lunaria::Values::moves || row.values == lunaria::Values::controls;
            if (!moves && row.op.empty()) return;
            push_library_function(host_.lua(), row, name);
            if (lua_CFunction f = lua_tocfunction(host_.lua(), -1)) library_[f] = {&row, row.op == "=" ? name : row.op};
            lua_pop(host_.lua(), 1);
        });
    }

    // Runs the function with these decisions; further decisions are first made as `true`.
    Way follow(const Value& f, std::vector<bool> script) {
        script_ = std::move(script);
        way_ = {};
        vm::Values args;
        for (ir::Node* p : graph_.parameters()) args.push_back(carrier(p));
        const vm::Values results = run_watched(f, args);
        if (results.size() != 1)
            throw argument_error(kFormulaTraceWhere, str("the expression must return one value, got ", results.size()));
        const Value& v = results[0];
        if (!v.is_number() && !v.is_tensor())
            throw argument_error(kFormulaTraceWhere,
                                 str("the expression must return a number, got ", host_.describe(v)));
        way_.result = operand(v);
        return std::move(way_);
    }

    // Chooses among the paths, which are in the order of their decisions.
    Value choice(std::span<const Way> ways, size_t depth) {
        if (ways.size() == 1) return ways[0].result;
        size_t split = 0;
        while (ways[split].decisions[depth].second) ++split;
        const Value yes = choice(ways.first(split), depth + 1), no = choice(ways.subspan(split), depth + 1);
        if (same_value(yes, no)) return yes;
        return write(registry().get("where"), {Value(ways[0].decisions[depth].first), yes, no});
    }

    // Functions of the host.
    vm::Values call(const Value& f, std::span<const Value> args) override {
        const vm::Callee callee = host_.resolve(f);
        if (callee.kind == vm::Callee::Kind::op) return {record(*callee.op, host_.bind(*callee.op, args).args)};
        if (std::none_of(args.begin(), args.end(), [&](const Value& v) { return follows(v); }))
            return host_.call(f, args);
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, kFormulaTraceWhere.data());
        host_.push(L, f);
        const lua_CFunction c = lua_tocfunction(L, -1);
        lua_pop(L, 1);
        const auto known = library_.find(c);
        if (!host_.is_function(f) || (known != library_.end() && known->second.op.empty())) return host_.call(f, args);
        if (known != library_.end()) return {library_function(known->second, args)};
        if (callee.function == vm::prelude(vm::Prelude::item).function)
            throw argument_error(kFormulaTraceWhere,
                                 "the value of an element is not known when the operator is defined");
        throw argument_error(kFormulaTraceWhere,
                             str(host_.describe(f), " cannot be part of an expression over scalars"))
            .hint("use arithmetic, comparisons, operators that work element by element, or functions of math");
    }
    vm::Field find_field(const Value& object, const Value& key) override {
        vm::Field field = host_.find_field(object, key);
        // Operators have their bare names unless the function defines the name.
        if (field.raw && field.value.is_nil() && key.kind() == Value::Kind::string && is_globals(object))
            if (const Op* op = registry().find(key.string())) field.value = function_of(*op);
        return field;
    }
    Value index(const Value& object, const Value& key) override {
        if (!follows(object)) return host_.index(object, key);
        if (key.kind() == Value::Kind::string) {
            const Value found = host_.index(object, key);
            if (host_.is_function(found) || host_.operator_in(found)) return found;
        }
        throw argument_error(
            kFormulaTraceWhere,
            str("an element has no part '", key.kind() == Value::Kind::string ? key.string() : to_string(key),
                "': the expression is over scalars, whatever the shape of what it is applied to"));
    }
    void set_index(const Value& object, const Value& key, const Value& value) override {
        if (follows(object)) throw argument_error(kFormulaTraceWhere, "an element cannot be written to");
        host_.set_index(object, key, value);
    }
    Value metamethod(const Value& a, const Value& b, std::string_view event) override {
        if (a.is_tensor() || b.is_tensor()) return {};
        return host_.metamethod(a, b, event);
    }
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override {
        if (!a.is_tensor() && !b.is_tensor()) return host_.arithmetic(primitive, a, b);
        const Op* op = host_.tensor_operator(primitive);
        if (!op)
            throw argument_error(kFormulaTraceWhere,
                                 str("there is no operator for '", primitive.name(), "' of elements"));
        std::vector<Value> args{a};
        if (!lua::facts(primitive).is_unary()) args.push_back(b);
        return record(*op, host_.bind(*op, args).args);
    }
    bool compare(const Op& primitive, const Value& a, const Value& b) override {
        if (!follows(a) && !follows(b)) return host_.compare(primitive, a, b);
        return decide(apply(primitive.name(), {{a, b}}));
    }
    Value concat(const Value& a, const Value& b) override {
        if (follows(a) || follows(b)) throw argument_error(kFormulaTraceWhere, "an element cannot be part of a text");
        return host_.concat(a, b);
    }
    Value length(const Value& a) override {
        if (follows(a)) throw argument_error(kFormulaTraceWhere, "an element has no length");
        return host_.length(a);
    }

    // Functions of the machine's watcher.
    bool step(vm::Machine& m, const vm::Instr& i) override {
        if (lua::facts(i.op).operation != lua::Operation::equal) return false;
        const Value a = m.operand(i, 0), b = m.operand(i, 1);
        // An element never equals an object other than a number, as in Lua.
        if (!follows(a) && !follows(b)) return false;
        if (!(a.is_tensor() || a.is_number()) || !(b.is_tensor() || b.is_number())) return false;
        m.set(i, Value(decide(apply("equal", {{a, b}}))));
        return true;
    }
    Value run(const Op& op, std::span<const Value> args) override { return record(op, {args.begin(), args.end()}); }
    Value number_of(const Value& tensor) override {
        if (follows(tensor)) throw argument_error(kFormulaTraceWhere, "the value of an element is not known here");
        return Value(tensor.tensor().at(0));
    }

    // Functions of the builder with which composite operators are expanded.
    Value emit(const Op& op, std::span<const Value> args) override { return record(op, {args.begin(), args.end()}); }
    Value item(const Value& results, size_t i) override { return results.items().at(i); }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

  private:
    vm::Values run_watched(const Value& f, std::span<const Value> args) {
        const vm::Watch watch(this);
        LuaHost::Running running(host_, machine_);
        return machine_.run(f, args);
    }
    bool is_globals(const Value& table) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, kFormulaTraceWhere.data());
        host_.push(L, table);
        lua_pushglobaltable(L);
        const bool same = lua_rawequal(L, -1, -2) != 0;
        lua_pop(L, 2);
        return same;
    }
    Value function_of(const Op& op) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, kFormulaTraceWhere.data());
        push_operator(L, op);
        Value v = host_.to_value(L, -1);
        lua_pop(L, 1);
        return v;
    }

    // A tensor that stands for a node, so that the program can pass it everywhere.
    Value carrier(ir::Node* node) {
        Value v(Tensor::zeros(node->type.tensor.dtype, {}));
        nodes_[v.tensor().body()] = node;
        kept_.push_back(v.tensor());
        return v;
    }
    bool follows(const Value& v) const { return v.is_tensor() && nodes_.contains(v.tensor().body()); }
    Value operand(const Value& v) const {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(operand(item));
            return Value::list(std::move(items));
        }
        if (!v.is_tensor()) return v;
        if (auto found = nodes_.find(v.tensor().body()); found != nodes_.end()) return Value(found->second);
        const Tensor& t = v.tensor();
        if (t.shape().rank() > 0 || is_complex(t.dtype()))
            throw argument_error(kFormulaTraceWhere, str("a tensor of shape ", t.shape(), " is no scalar"))
                .hint("make it an input of the operator");
        return is_float(t.dtype()) ? Value(t.at(0)) : Value(static_cast<int64_t>(t.at(0)));
    }

    // Functions of the library and their operators; "": functions that only return their arguments.
    struct Known {
        const LibraryFunction* row;
        std::string_view op;
    };
    Value library_function(const Known& f, std::span<const Value> args) {
        if (args.size() > 1 && f.row->op_of_two == "/")
            return apply("div", {apply(f.op, {args[0]}), apply(f.op, {args[1]})});
        if (args.size() > 1 && !f.row->op_of_two.empty()) return apply(f.row->op_of_two, args);
        if (!f.row->arguments.ends_with('*')) return apply(f.op, args);
        Value result = args[0];
        for (const Value& v : args.subspan(1)) result = apply(f.op, {{result, v}});
        return result;
    }
    Value apply(std::string_view name, std::span<const Value> args) {
        const Op& op = registry().get(name);
        return record(op, host_.bind(op, args).args);
    }
    Value apply(std::string_view name, std::initializer_list<Value> args) {
        return apply(name, std::span<const Value>(args.begin(), args.size()));
    }

    Value record(const Op& op, const std::vector<Value>& args) {
        auto matters = [&](const auto& self, const Value& v) -> bool {
            return v.is_list() ? std::any_of(v.items().begin(), v.items().end(),
                                             [&](const Value& item) { return self(self, item); })
                               : follows(v);
        };
        if (std::none_of(args.begin(), args.end(), [&](const Value& v) { return matters(matters, v); }))
            return lunaria::run(op, args);
        if (hands_on(op, args)) return args[0];
        if (!is_pointwise(op)) {
            if (!op.expand_fn || !op.is_repeatable()) throw no_scalar(op);
            try {
                return expand(ExpandCall(Call(op, args, promoted_dtype(op, args)), *this));
            } catch (const Error&) {
                throw no_scalar(op);
            }
        }
        std::vector<Value> operands;
        for (const Value& v : args) operands.push_back(operand(v));
        const Value node = write(op, std::move(operands));
        if (!node.is_node() || node.node()->type.kind != ir::NodeType::Kind::tensor) throw no_scalar(op);
        return carrier(node.node());
    }

    // Whether the operator returns the element itself, which has no axes to rearrange.
    static bool hands_on(const Op& op, const std::vector<Value>& args) {
        if (!op.view_fn || op.no_grad_reason || !op.is_repeatable() || !args[0].is_tensor()) return false;
        return op.infer_fn(Call(op, args, promoted_dtype(op, args)))[0].shape.rank() == 0;
    }

    static Error no_scalar(const Op& op) {
        return argument_error(kFormulaTraceWhere, str("'", op.name(),
                                                      "' does not work element by element: it cannot be part of an "
                                                      "expression over scalars"))
            .hint("call it on the operator's result, or give the operator a rule: output and reduce, see help(ms.op)");
    }

    // Equal calls are one node, so that a value which two paths compute is computed once.
    Value write(const Op& op, std::vector<Value> operands) {
        std::string key = str(op.id, '|');
        for (const Value& v : operands) {
            if (v.is_node())
                key += str('%', v.node()->id);
            else if (v.kind() == Value::Kind::number)
                key += str('n', std::bit_cast<int64_t>(v.number()));
            else
                key += str(static_cast<int>(v.kind()), ':', to_string(v));
            key += ',';
        }
        Value& known = written_[key];
        if (known.is_nil()) {
            if (graph_.body().size() > kMostNodes)
                throw argument_error(kFormulaTraceWhere,
                                     str("the expression has more than ", kMostNodes, " operations"));
            known = builder_.emit(op, operands);
        }
        return known;
    }

    bool decide(const Value& condition) {
        ir::Node* node = nodes_.at(condition.tensor().body());
        for (auto& [other, answer] : way_.decisions)
            if (other == node) return answer;
        const size_t n = way_.decisions.size();
        if (n >= kMostDecisions)
            throw argument_error(kFormulaTraceWhere, "it decides by its inputs without end")
                .hint("a loop in an expression must end after a fixed number of rounds");
        const bool answer = n >= script_.size() || script_[n];
        way_.decisions.emplace_back(node, answer);
        return answer;
    }

    ir::Graph& graph_;
    ir::GraphBuilder builder_;
    vm::Machine machine_;
    std::unordered_map<const TensorBody*, ir::Node*> nodes_;
    std::vector<Tensor> kept_;  // keep the addresses of their bodies from being used again
    std::unordered_map<std::string, Value> written_;
    std::unordered_map<lua_CFunction, Known> library_;
    std::vector<bool> script_;
    Way way_;
};

}  // namespace

std::unique_ptr<ir::Graph> trace_formula(lua_State* L, const Value& f, std::span<const CustomOp::Input> inputs) {
    LuaHost& host = LuaHost::of(L);
    LuaHost::Thread thread(host, L);
    auto graph = std::make_unique<ir::Graph>("formula");
    for (const CustomOp::Input& input : inputs)
        graph->add_parameter(input.name, ir::NodeType::of({input.mask ? DType::boolean : DType::f32, {}}));
    FormulaHost tracing(host, *graph);
    std::vector<Way> ways;
    std::vector<bool> script;
    do {
        if (ways.size() == kMostWays)
            throw argument_error(kFormulaTraceWhere,
                                 str("the expression has more than ", kMostWays, " ways by what it decides upon"))
                .hint("choose with ms.where instead of if");
        ways.push_back(tracing.follow(f, std::move(script)));
        script.clear();
        for (auto [node, answer] : ways.back().decisions) script.push_back(answer);
        while (!script.empty() && !script.back()) script.pop_back();
        if (!script.empty()) script.back() = false;
    } while (!script.empty());

    ir::GraphBuilder builder(*graph);
    const bool numbers = std::ranges::all_of(ways, [](const Way& way) { return way.result.is_number(); });
    if (numbers && ways.size() == 1)
        throw argument_error(kFormulaTraceWhere, "the expression does not depend on its inputs");
    if (numbers) {
        // The dtype is that of the inputs, not the one that the numbers would have by themselves.
        const auto first = std::ranges::find(inputs, false, &CustomOp::Input::mask);
        const size_t position = first == inputs.end() ? 0 : static_cast<size_t>(first - inputs.begin());
        const Expr x(builder, Value(graph->parameters()[position]));
        for (Way& way : ways) way.result = builder.call("full_like", {x, way.result}).value();
    }
    graph->result = tracing.choice(ways, 0);
    if (graph->result.is_node() && graph->result.node()->kind == ir::NodeKind::parameter)
        graph->result = builder.call("mul", {Expr(builder, graph->result), 1}).value();

    std::vector<bool> used(inputs.size());
    auto use = [&](ir::Node* n) {
        for (size_t i = 0; i < inputs.size(); ++i) used[i] = used[i] || graph->parameters()[i] == n;
    };
    for (const ir::Node* node : graph->body())
        for (const Value& arg : node->args) ir::for_each_node(arg, use);
    for (size_t i = 0; i < inputs.size(); ++i)
        if (!used[i])
            throw argument_error(kFormulaTraceWhere,
                                 str("the expression does not use its input '", inputs[i].name, "'"))
                .hint("leave it out: the shape of the result must follow from what is used");
    return graph;
}

}  // namespace lunaria
