#include "interpreter/saving/typed_program.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_set>

#include "core/base/interrupt.h"
#include "core/ir/substitution.h"
#include "core/ir/verifier.h"
#include "interpreter/saving/lua_known.h"
#include "interpreter/watchers/tracing_host.h"
#include "jit/language.h"
#include "jit/saving/partial.h"
#include "jit/vm/machine.h"

namespace lunaria {

namespace {

// Programs with more blocks are saved in the untyped form.
constexpr size_t kMostBlocks = 2000;
// The limit on visits of a block. Each visit changes the known facts about an argument, or is the last.
constexpr int kMostVisits = 100;

bool is_exact(const Value& v) {
    if (!v.is_tensor()) return v.kind() == Value::Kind::integer;
    return is_integer(v.tensor().dtype()) || v.tensor().dtype() == DType::boolean;
}

// Follows tensors, including those without axes that stand for numbers and booleans of the program.
class BlockHost final : public TracingHost {
  public:
    BlockHost(LuaHost& host, ir::Graph& graph, TracedSizes sizes)
        : TracingHost(host, graph, sizes, true), item_(host.index(Value(Tensor::scalar(0)), Value("item"))) {}

    Value stand_for_number(const Value& tensor) {
        numbers_.insert(tensor.tensor().body());
        return tensor;
    }
    bool is_number(const Value& v) const { return v.is_tensor() && numbers_.contains(v.tensor().body()); }

    bool step(vm::Machine& m, const vm::Instr& i) override {
        if (!i.op || !lua::is_primitive(*i.op)) return false;
        static const Op &negates = lua::primitive("not"), &asks = lua::primitive("for_more"),
                        &counts = lua::primitive("for_count"), &sub = lua::primitive("sub");
        if (lua::facts(*i.op).is_comparison()) {
            std::optional<Value> result = compared(*i.op, m.operand(i, 0), m.operand(i, 1));
            if (result) m.set(i, std::move(*result));
            return result.has_value();
        }
        if (i.op == &negates && is_boolean(m.operand(i, 0))) {
            m.set(i, stand_for_number(call_operator("logical_not", {m.operand(i, 0)})));
            return true;
        }
        if (i.op == &asks && is_number(m.operand(i, 3))) {
            m.set(i, stand_for_number(call_operator("not_equal", {m.operand(i, 3), Value(0)})));
            return true;
        }
        if (i.op == &asks && is_number(m.operand(i, 0))) leave();  // a loop over floats
        if (i.op == &counts && is_number(m.operand(i, 0))) {
            m.set(i, arithmetic(sub, m.operand(i, 0), Value(1)));
            return true;
        }
        // A function within the block is called that compares followed values.
        if (i.op->is_closure || (i.op->is_branch && is_number(m.operand(i, 0)))) leave();
        return TracingHost::step(m, i);
    }

    vm::Values call(const Value& f, std::span<const Value> args) override {
        if (vm::identity_of(f) == vm::identity_of(item_) && args.size() == 1 && args[0].is_tensor() &&
            !is_number(args[0]) && args[0].tensor().size() == 1)
            return follows(args[0]) ? vm::Values{stand_for_number(scalar_of(args[0]))} : host_.call(f, args);
        if (std::ranges::any_of(args, [&](const Value& v) { return is_number(v); })) leave();
        const vm::Callee callee = host_.resolve(f);
        if (callee.kind == vm::Callee::Kind::op && !callee.op->is_repeatable()) leave();
        return TracingHost::call(f, args);
    }
    Value index(const Value& object, const Value& key) override {
        if (is_number(object) || is_number(key)) leave();
        return TracingHost::index(object, key);
    }

    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override {
        if (!is_number(a) && !is_number(b)) return TracingHost::arithmetic(primitive, a, b);
        if (is_boolean(a) || is_boolean(b)) leave();
        using lua::Operation;
        const Operation operation = lua::facts(primitive).operation;
        const std::string_view op = lua::facts(primitive).on_tensors->name();
        if (operation == Operation::minus) return stand_for_number(call_operator(op, {a}));
        const bool is_linear = operation <= Operation::mul;
        const bool numbers = (is_number(a) || a.is_number()) && (is_number(b) || b.is_number());
        if (!numbers) return with_tensor(primitive, a, b);
        const bool exact = is_exact(a) && is_exact(b);
        if (exact && is_linear) return stand_for_number(call_operator(op, {a, b}));
        if (is_linear || operation == Operation::div)
            return stand_for_number(call_operator(op, {as_double(a), as_double(b)}));
        const bool divides = b.kind() == Value::Kind::integer && b.integer() > 0;
        if (exact && divides && (operation == Operation::floor_div || operation == Operation::mod))
            return stand_for_number(call_operator(op, {a, b}));
        leave();
    }

    // The truth of a value in Lua; none if it depends on a tensor.
    std::optional<bool> truth(const Value& v) const {
        if (is_boolean(v)) return std::nullopt;
        return !v.is_nil() && !(v.kind() == Value::Kind::boolean && !v.boolean());
    }

  private:
    bool is_boolean(const Value& v) const { return is_number(v) && v.tensor().dtype() == DType::boolean; }

    Value call_operator(std::string_view name, const std::vector<Value>& args) {
        const Op& op = registry().get(name);
        return record(op, host_.bind(op, args).args);
    }
    Value cast(const Value& v, DType dtype) {
        return v.tensor().dtype() == dtype ? v : call_operator("cast", {v, Value(dtype)});
    }
    // The only element of a tensor, as Lua's value.
    Value scalar_of(const Value& v) {
        const DType dtype = v.tensor().dtype();
        if (dtype == DType::u64 || is_complex(dtype)) leave();
        const Value same = v.tensor().rank() == 0 ? v : call_operator("reshape", {v, Value::list({})});
        if (dtype == DType::boolean) return same;
        return cast(same, is_exact(v) ? DType::i64 : DType::f64);
    }
    Value as_double(const Value& v) { return v.is_tensor() ? cast(v, DType::f64) : Value(v.number()); }

    // A number beside a tensor takes its dtype, as plain numbers do.
    Value with_tensor(const Op& primitive, const Value& a, const Value& b) {
        if (!primitive.is_exact) leave();
        const Op& op = *lua::facts(primitive).on_tensors;
        std::vector<Value> args{a, b}, example{a, b};
        for (Value& v : example)
            if (is_number(v)) v = is_exact(v) ? Value(1) : Value(1.5);
        const DType dtype = promoted_dtype(op, host_.bind(op, example).args);
        // An integer of another size may not represent the number, which is then an error.
        if (is_complex(dtype) || (!is_float(dtype) && dtype != DType::i64)) leave();
        for (Value& v : args)
            if (is_number(v)) v = cast(v, dtype);
        return call_operator(op.name(), args);
    }

    // An operand of a comparison: a number, or the only element of a tensor.
    Value compared_operand(bool equality, const Value& v) {
        if (!v.is_tensor() && !v.is_number()) leave();
        if (!v.is_tensor()) return v;
        if (v.tensor().size() != 1 || is_boolean(v) || (equality && !is_number(v))) leave();
        return scalar_of(v);
    }
    // A whole float beside an integer becomes an integer, so that both are compared exactly.
    static Value beside(const Value& other, const Value& v) {
        const bool whole =
            v.kind() == Value::Kind::number && std::abs(v.number()) < 0x1p53 && v.number() == std::floor(v.number());
        return whole && is_exact(other) ? Value(static_cast<int64_t>(v.number())) : v;
    }

    // A comparison with Lua's meaning: integers exactly, all else as doubles. None if no followed value is compared by
    // value.
    std::optional<Value> compared(const Op& primitive, Value a, Value b) {
        const bool equality = lua::facts(primitive).operation == lua::Operation::equal;
        const auto counts = [&](const Value& v) { return is_number(v) || (!equality && follows(v)); };
        if (!counts(a) && !counts(b)) return std::nullopt;
        // Lua compares an integer and a float exactly.
        const bool numbers = is_number(a) && is_number(b);
        a = compared_operand(equality, a), b = compared_operand(equality, b);
        if (numbers && is_exact(a) != is_exact(b)) leave();
        a = beside(b, a), b = beside(a, b);
        if (!is_exact(a) || !is_exact(b)) a = as_double(a), b = as_double(b);
        return stand_for_number(call_operator(lua::facts(primitive).on_tensors->name(), {a, b}));
    }

    const Value item_;  // the method of tensors
    std::unordered_set<const TensorBody*> numbers_;
};

// The known facts about an argument of a block.
struct Argument {
    enum class Kind { unvisited, plain, number, tensor, list, table };
    Kind kind = Kind::unvisited;
    Value value;      // a constant; the list of a table's keys
    TensorType type;  // the type of a tensor, or of the tensor for a number
    std::vector<Argument> items;

    bool is_node() const { return kind == Kind::number || kind == Kind::tensor; }
    bool has_items() const { return kind == Kind::list || kind == Kind::table; }
    friend bool operator==(const Argument& a, const Argument& b) {
        return a.kind == b.kind && a.items == b.items && (a.is_node() ? a.type == b.type : a.has_value_of(b));
    }
    // Objects of the host are compared by their identity.
    bool has_value_of(const Argument& other) const { return key_of({value}) == key_of({other.value}); }
};

struct Block {
    const ir::Graph* source = nullptr;
    std::unique_ptr<ir::Graph> segment;  // a function from the block's parameters to the arguments of the next block
    std::vector<const ir::Graph*> targets;
    std::vector<Argument> args;
    bool is_waiting = false;
    int visits = 0;
    ir::Graph* made = nullptr;
};

// Thrown for a program without a typed form.
struct NoForm {};

class Typing {
  public:
    Typing(LuaHost& host, TracedSizes sizes) : host_(host), known_(host), sizes_(sizes) {}

    std::unique_ptr<ir::Graph> run(const ir::Graph& program, std::span<const Value> inputs) {
        // main(inputs) { weights; closure(@program, {weights}); call(closure, {inputs}) }
        const auto& body = program.body();
        if (body.size() != 2 || !body[0]->op || !body[0]->op->is_closure || !lua::facts(body[1]->op).calls)
            return nullptr;
        const ir::Graph& entry = *body[0]->args.at(0).node()->function;
        std::vector<Argument> args;
        for (const Value& v : body[0]->args.at(1).items()) args.push_back(tensor(v.node()->constant.tensor()));
        for (const Value& v : inputs) args.push_back(tensor(v.tensor()));
        if (entry.variadic || args.size() != entry.parameters().size()) return nullptr;
        arrive(entry, args);
        while (!waiting_.empty()) {
            Block& block = blocks_.at(waiting_.front());
            waiting_.pop_front();
            block.is_waiting = false;
            if (++block.visits > kMostVisits) throw NoForm();
            ir::Graph scratch("block");
            const Ending ending = trace(block, scratch);
            for (const auto& [target, values] : ending.ways) arrive(*target, values);
        }
        return assembled(program, entry, inputs);
    }

  private:
    // The end of a block: the branches to other blocks, or the results.
    struct Ending {
        std::optional<Value> condition;
        std::vector<std::pair<const ir::Graph*, std::vector<Argument>>> ways;
        std::vector<std::vector<Value>> operands;  // the operands of the branches, in the graph
        std::vector<Value> results;
    };

    static Argument tensor(const Tensor& t) { return {Argument::Kind::tensor, {}, {t.dtype(), t.shape()}, {}}; }
    static Argument number(DType dtype) { return {Argument::Kind::number, {}, {dtype, {}}, {}}; }
    // The facts about a value that a block passes on, and its operand in the block's graph: of a list or a table a
    // list.
    std::pair<Argument, Value> passed(BlockHost& tracing, const Value& v) {
        if (v.is_tensor())
            return {tracing.is_number(v) ? number(v.tensor().dtype()) : tensor(v.tensor()), tracing.operand(v)};
        if (v.is_list()) return passed_items(tracing, {Argument::Kind::list, {}, {}, {}}, v.items());
        const std::optional<DType> dtype = v.kind() == Value::Kind::object ? known_.dtype_of(v) : std::nullopt;
        const Value constant = dtype ? Value(*dtype) : v;
        if (constant.kind() != Value::Kind::object || known_.named(constant) || host_.operator_in(constant))
            return {{Argument::Kind::plain, constant, {}, {}}, constant};
        return passed_table(tracing, v);
    }

    std::pair<Argument, Value> passed_items(BlockHost& tracing, Argument whole, const std::vector<Value>& items) {
        std::vector<Value> operands;
        for (const Value& item : items) {
            auto [argument, operand] = passed(tracing, item);
            whole.items.push_back(std::move(argument));
            operands.push_back(std::move(operand));
        }
        return {std::move(whole), Value::list(std::move(operands))};
    }

    // The next block gets a copy of the table, which must therefore be the only reference to it. Its keys have an order
    // that does not depend on how it was filled.
    std::pair<Argument, Value> passed_table(BlockHost& tracing, const Value& table) {
        if (!host_.is_table(table) || !passed_tables_.insert(vm::identity_of(table)).second)
            throw state_error("save_mindir", "a block takes an object");
        Known::Content content = known_.content_of(table);
        if (!content.plain) throw state_error("save_mindir", "a block takes a table with a metatable");
        std::map<std::string, size_t> order;
        for (size_t i = 0; i < content.keys.size(); ++i) order.emplace(key_of({content.keys[i]}), i);
        std::vector<Value> keys, values;
        for (const auto& [text, i] : order) {
            keys.push_back(std::move(content.keys[i]));
            values.push_back(std::move(content.values[i]));
        }
        return passed_items(tracing, {Argument::Kind::table, Value::list(std::move(keys)), {}, {}}, values);
    }

    static DType dtype_of(const Value& plain) {
        switch (plain.kind()) {
            case Value::Kind::boolean:
                return DType::boolean;
            case Value::Kind::integer:
                return DType::i64;
            case Value::Kind::number:
                return DType::f64;
            default:
                throw NoForm();
        }
    }

    // The facts that hold after two branches meet.
    static Argument joined(const Argument& a, const Argument& b) {
        if (a.kind == Argument::Kind::unvisited || a == b) return b;
        if (a.has_items() && a.kind == b.kind && a.has_value_of(b) && a.items.size() == b.items.size()) {
            Argument items = a;
            for (size_t i = 0; i < a.items.size(); ++i) items.items[i] = joined(a.items[i], b.items[i]);
            return items;
        }
        for (const Argument* one : {&a, &b})
            if (one->kind == Argument::Kind::tensor || one->has_items()) throw NoForm();
        const DType p = a.is_node() ? a.type.dtype : dtype_of(a.value),
                    q = b.is_node() ? b.type.dtype : dtype_of(b.value);
        if (p != q) throw NoForm();
        return number(p);
    }

    void arrive(const ir::Graph& source, const std::vector<Argument>& args) {
        const auto [place, is_new] = blocks_.try_emplace(&source);
        Block& block = place->second;
        if (is_new) {
            if (blocks_.size() > kMostBlocks) throw NoForm();
            prepare(block, source);
            order_.push_back(&source);
        }
        bool changed = is_new;
        for (size_t i = 0; i < args.size(); ++i) {
            Argument now = joined(block.args[i], args[i]);
            changed |= !(now == block.args[i]);
            block.args[i] = std::move(now);
        }
        if (!changed || block.is_waiting) return;
        block.is_waiting = true;
        waiting_.push_back(&source);
    }

    void prepare(Block& block, const ir::Graph& source) {
        block.source = &source;
        block.args.resize(source.parameters().size());
        block.segment = std::make_unique<ir::Graph>(source.name);
        ir::Graph& segment = *block.segment;
        ir::Substitution made(&segment);
        for (const ir::Node* p : source.parameters()) made[p] = Value(segment.add_parameter(p->name, {}));
        for (const ir::Node* node : source.body()) {
            if (!ir::goes_on(*node)) {
                made[node] = made.copy(*node);
                continue;
            }
            std::vector<Value> values;
            const auto way = [&](const ir::Node& function, const std::vector<Value>& args) {
                block.targets.push_back(function.function);
                for (const Value& v : args) values.push_back(made(v));
            };
            if (node->callee) {
                way(*node->callee, node->args);
            } else {
                values.push_back(made(node->args[0]));
                way(*node->args[1].node(), node->args[2].items());
                way(*node->args[3].node(), node->args[4].items());
            }
            segment.result = Value::list(std::move(values));
        }
        if (block.targets.empty()) segment.result = made(source.result);
    }

    // A tensor of the type, with elements that operators accept without an error.
    static Tensor made_up(const TensorType& type) {
        return Tensor::full(type.dtype, type.shape, is_float(type.dtype) ? 1 : 0);
    }

    // A value to run a block on, and the parameters of the block's graph.
    static Value placed(BlockHost& tracing, const Argument& a, const std::string& name) {
        if (a.has_items()) {
            std::vector<Value> items;
            for (const Argument& item : a.items) items.push_back(placed(tracing, item, name));
            if (a.kind == Argument::Kind::list) return Value::list(std::move(items));
            const Value table = tracing.new_table(items.size(), 0);
            for (size_t i = 0; i < items.size(); ++i) tracing.raw_set(table, a.value.items()[i], items[i]);
            return table;
        }
        if (!a.is_node()) return a.value;
        const Value v(made_up(a.type));
        tracing.add_input(v.tensor(), name);
        return a.kind == Argument::Kind::number ? tracing.stand_for_number(v) : v;
    }

    // Runs the block and writes its operators into the graph.
    Ending trace(const Block& block, ir::Graph& into) {
        BlockHost tracing(host_, into, sizes_);
        vm::Values args;
        for (size_t i = 0; i < block.args.size(); ++i)
            args.push_back(placed(tracing, block.args[i], block.source->parameters()[i]->name));
        const Value f = vm::make_object<vm::Closure>(vm::function_of(*block.segment), nullptr, vm::Values());
        Ending ending;
        bool taken = false;
        const auto outcome = host_.call_protected([&] {
            vm::Machine machine(tracing);
            const vm::Watch watch(&tracing);
            const LuaHost::Running running(host_, machine);
            ending = ending_of(block, tracing, machine.run(f, args).vector());
            taken = true;
        });
        if (!outcome.ok) poll_interrupt();
        if (!outcome.ok || !taken || !tracing.is_straight()) throw NoForm();
        return ending;
    }

    Ending ending_of(const Block& block, BlockHost& tracing, const std::vector<Value>& values) {
        Ending ending;
        if (block.targets.empty()) {
            for (const Value& v : values) {
                if (!v.is_tensor() || tracing.is_number(v)) throw state_error("save_mindir", "a result is no tensor");
                ending.results.push_back(tracing.operand(v));
            }
            return ending;
        }
        size_t at = 0;
        std::optional<bool> known;
        if (block.targets.size() == 2) {
            known = tracing.truth(values.at(at));
            if (!known) ending.condition = tracing.operand(values[at]);
            ++at;
        }
        for (size_t way = 0; way < block.targets.size(); ++way) {
            const ir::Graph& target = *block.targets[way];
            std::vector<Argument> args;
            std::vector<Value> operands;
            passed_tables_.clear();
            for (size_t i = 0; i < target.parameters().size(); ++i, ++at) {
                auto [argument, operand] = passed(tracing, values.at(at));
                args.push_back(std::move(argument));
                operands.push_back(std::move(operand));
            }
            if (known && *known == (way == 1)) continue;
            ending.ways.emplace_back(&target, std::move(args));
            ending.operands.push_back(std::move(operands));
        }
        return ending;
    }

    // Adds the nodes that a block takes for an argument.
    static void add_operands(const Argument& a, const Value& v, ir::Graph& graph, std::vector<Value>& list) {
        for (size_t i = 0; i < a.items.size(); ++i) add_operands(a.items[i], v.items().at(i), graph, list);
        if (!a.is_node()) return;
        if (v.is_node()) {
            list.push_back(v);
            return;
        }
        const DType dtype = a.type.dtype;
        const double number = dtype == DType::boolean ? v.boolean() : v.number();
        list.emplace_back(graph.add_constant(
            Value(dtype == DType::i64 ? Tensor::scalar(v.integer()) : Tensor::scalar(dtype, number))));
    }

    void go_on(ir::Graph& graph, const Ending& ending) {
        std::vector<Value> args;
        if (ending.condition) args.push_back(*ending.condition);
        for (size_t i = 0; i < ending.ways.size(); ++i) {
            const Block& next = blocks_.at(ending.ways[i].first);
            ir::Node* function = graph.add_function(*next.made);
            std::vector<Value> operands;
            for (size_t k = 0; k < next.args.size(); ++k)
                add_operands(next.args[k], ending.operands[i][k], graph, operands);
            if (!ending.condition) {
                graph.result = Value(graph.add_call(*function, std::move(operands), {}));
                return;
            }
            args.emplace_back(function);
            args.push_back(Value::list(std::move(operands)));
        }
        graph.result = Value(graph.add_call(lua::primitive("branch"), std::move(args), {}));
    }

    std::unique_ptr<ir::Graph> assembled(const ir::Graph& program, const ir::Graph& entry,
                                         std::span<const Value> inputs) {
        auto main = std::make_unique<ir::Graph>("main");
        std::vector<Value> args;
        for (const Value& v : program.body()[0]->args[1].items()) {
            ir::Node* weight = main->add_constant(v.node()->constant);
            weight->name = v.node()->name;
            args.emplace_back(weight);
        }
        for (size_t i = 0; i < inputs.size(); ++i) {
            const Tensor& t = inputs[i].tensor();
            args.emplace_back(
                main->add_parameter(program.parameters()[i]->name, ir::NodeType::of({t.dtype(), t.shape()})));
        }
        for (const ir::Graph* source : order_) blocks_.at(source).made = &main->add_inner(str("block_", ++count_));
        std::optional<ir::NodeType> results;
        for (const ir::Graph* source : order_) {
            Block& block = blocks_.at(source);
            const Ending ending = trace(block, *block.made);
            if (!block.targets.empty()) {
                go_on(*block.made, ending);
                continue;
            }
            std::vector<ir::NodeType> types;
            for (const Value& v : ending.results) types.push_back(v.node()->type);
            const ir::NodeType type = ir::NodeType::list(std::move(types));
            if (type.items.empty() || (results && !(*results == type))) return nullptr;
            results = type;
            block.made->result = Value::list(ending.results);
        }
        // A program that never ends has no result types.
        if (!results) return nullptr;
        main->result = Value(main->add_call(*main->add_function(*blocks_.at(&entry).made), std::move(args), *results));
        for (const ir::Graph* source : order_) {
            const Value& result = blocks_.at(source).made->result;
            if (result.is_node()) result.node()->type = *results;
        }
        ir::verify(*main);
        return main;
    }

    LuaHost& host_;
    LuaKnown known_;
    const TracedSizes sizes_;
    std::map<const ir::Graph*, Block> blocks_;
    std::vector<const ir::Graph*> order_;
    std::deque<const ir::Graph*> waiting_;
    std::unordered_set<const void*> passed_tables_;  // that go to the same block
    int count_ = 0;
};

}  // namespace

std::unique_ptr<ir::Graph> typed_program(lua_State* L, const ir::Graph& program, std::span<const Value> inputs,
                                         TracedSizes sizes) {
    LuaHost& host = LuaHost::of(L);
    const LuaHost::Thread thread(host, L);
    try {
        return Typing(host, sizes).run(program, inputs);
    } catch (const NoForm&) {
        return nullptr;
    }
}

}  // namespace lunaria
