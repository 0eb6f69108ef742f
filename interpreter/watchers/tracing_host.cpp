#include "interpreter/watchers/tracing_host.h"

#include <algorithm>

#include "core/custom/custom_op.h"
#include "core/custom/foreign_op.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "jit/language.h"
#include "jit/vm/machine.h"

namespace lunaria {

namespace {

// A pure function with longer loops is left to Lua.
constexpr size_t kMostTracedNodes = 4096;

}  // namespace

TracingHost::TracingHost(LuaHost& host, ir::Graph& graph, TracedSizes sizes, bool pure)
    : WatchingHost(host), graph_(graph), builder_(graph), names_(host), sizes_(sizes), pure_(pure) {
    // Methods of tensors that read only the type, and those that convert.
    const Value tensor(Tensor::empty(DType::f32, {1}));
    for (const char* name : {"dim", "ndimension", "is_floating_point", "is_complex"})
        typed_.push_back(host.index(tensor, Value(name)));
    for (const char* name :
         {"astype", "to", "type_as", "bool", "byte", "short", "int", "long", "half", "bfloat16", "float", "double"})
        casts_.push_back(host.index(tensor, Value(name)));
}

void TracingHost::leave() {
    straight_ = false;
    throw state_error("save_mindir", "the function is no straight line of operators");
}

void TracingHost::add_input(const Tensor& t, const std::string& name) {
    know(Value(t), Value(graph_.add_parameter(name, ir::NodeType::of({t.dtype(), t.shape()}))));
}

Value TracingHost::operand(const Value& v) {
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(operand(item));
        return Value::list(std::move(items));
    }
    if (!v.is_tensor()) return v;
    auto found = nodes_.find(v.tensor().body());
    if (found != nodes_.end()) return Value(found->second);
    // A view is not changed by writes to the tensor.
    const Tensor& t = v.tensor();
    ir::Node* node = graph_.add_constant(pure_ ? Value(t.apart()) : v);
    if (const ParameterInfo* p = v.tensor().parameter()) node->name = unique_name(p->name);
    know(v, Value(node));
    return Value(node);
}

std::vector<Value> TracingHost::run_graph(const ir::Graph& part, std::span<const Value> args) {
    const Value result = ir::replay(
        part, args,
        [&](const Op& op, const std::vector<Value>& operands) {
            return registry().find(op.name()) == &op ? record(op, operands) : host_.index(operands[0], operands[1]);
        },
        [](const Value& results, size_t i) { return results.items().at(i); });
    return result.is_list() ? result.items() : std::vector<Value>{result};
}

vm::Values TracingHost::call(const Value& f, std::span<const Value> args) {
    const vm::Callee callee = host_.resolve(f);
    if (callee.kind == vm::Callee::Kind::op) {
        const Value result = record(*callee.op, host_.bind(*callee.op, args).args);
        const bool several = result.is_list() && (!callee.op->signature.results.empty() ||
                                                  (!result.items().empty() && result.items()[0].is_tensor()));
        return several ? vm::Values(result.items()) : vm::Values{result};
    }
    if (!args.empty() && follows(args[0])) {
        auto is = [&](const Value& method) { return vm::identity_of(method) == vm::identity_of(f); };
        if (std::ranges::any_of(typed_, is)) return host_.call(f, args);
        if (std::ranges::any_of(casts_, is)) return {convert(args[0], host_.call(f, args)[0])};
    }
    if (const FunctionNames::Entry* entry = names_.find(f); entry && entry->row->recorded == Native::inside)
        return {Value(true)};
    if (pure_ && !always_gives_the_same(f)) leave();
    if (!moves_values(f) && std::ranges::any_of(args, [&](const Value& v) { return reaches_inputs(v); })) leave();
    return host_.call(f, args);
}

Value TracingHost::index(const Value& object, const Value& key) {
    if (object.is_tensor() && follows(object)) {
        const Part part = host_.part_of(object, key);
        if (part.function) {
            std::vector<Value> args = part.args;
            args.insert(args.begin(), object);
            const std::vector<Value> results = run_graph(*part.function, args);
            return results.empty() ? Value() : results[0];
        }
        Value field = host_.index(object, key);
        // Sizes may differ for other inputs.
        const bool same = key.kind() == Value::Kind::string && (key.string() == "dtype" || key.string() == "ndim");
        if (!same && sizes_ == TracedSizes::open && !host_.is_function(field)) leave();
        return field;
    }
    return host_.index(object, key);
}

void TracingHost::set_index(const Value& object, const Value& key, const Value& value) {
    if (pure_ || (object.is_tensor() && (follows(object) || follows(value)))) leave();
    host_.set_index(object, key, value);
}

vm::Host::Part TracingHost::put_part(const Value& tensor, const Value& key, const Value& value) {
    if (pure_) leave();
    return host_.put_part(tensor, key, value);
}

Value TracingHost::new_table(size_t array, size_t fields) {
    Value table = host_.new_table(array, fields);
    if (pure_) own_.emplace(vm::identity_of(table), table);
    return table;
}

void TracingHost::raw_set(const Value& table, const Value& key, const Value& value) {
    if (pure_ && !own_.contains(vm::identity_of(table))) leave();
    host_.raw_set(table, key, value);
}

bool TracingHost::step(vm::Machine& m, const vm::Instr& i) {
    if (!pure_) return false;
    const lua::Access access = lua::facts(i.op).access;
    static const Op* const forbidden[] = {&lua::primitive("guard"), &lua::primitive("to_close"),
                                          &lua::primitive("overwrite")};
    if (access == lua::Access::makes_cell) {
        Value made = vm::make_object<vm::LocalCell>(m.operand(i, 0));
        own_.emplace(made.object(), made);
        m.set(i, std::move(made));
        return true;
    }
    if (access == lua::Access::writes_cell && !own_.contains(m.operand(i, 0).object())) leave();
    // A generic loop mostly has nothing to close.
    if (std::ranges::find(forbidden, i.op) != std::end(forbidden) && !m.operand(i, 0).is_nil()) leave();
    return false;
}

Value TracingHost::number_of(const Value& tensor) {
    if (follows(tensor)) leave();
    return Watcher::number_of(tensor);
}

Value TracingHost::metamethod(const Value& a, const Value& b, std::string_view event) {
    if (a.is_tensor() || b.is_tensor()) return {};
    return host_.metamethod(a, b, event);
}

Value TracingHost::arithmetic(const Op& primitive, const Value& a, const Value& b) {
    const Op* op = a.is_tensor() || b.is_tensor() ? host_.tensor_operator(primitive) : nullptr;
    if (!op && (follows(a) || follows(b))) leave();
    if (!op) return host_.arithmetic(primitive, a, b);
    std::vector<Value> args{a};
    if (!lua::facts(primitive).is_unary()) args.push_back(b);
    return record(*op, host_.bind(*op, args).args);
}

bool TracingHost::compare(const Op& primitive, const Value& a, const Value& b) {
    const bool by_value = lua::facts(primitive).operation != lua::Operation::equal ||
                          (a.is_tensor() && b.is_tensor() && !a.tensor().same_body(b.tensor()));
    if (by_value && (follows(a) || follows(b))) leave();
    return host_.compare(primitive, a, b);
}

Value TracingHost::length(const Value& a) {
    if (follows(a)) leave();
    return host_.length(a);
}

Value TracingHost::concat(const Value& a, const Value& b) {
    if (follows(a) || follows(b)) leave();
    return host_.concat(a, b);
}

class TracingHost::Recording final : public Builder {
  public:
    explicit Recording(TracingHost& host) : host_(host) {}
    Value emit(const Op& op, std::span<const Value> args) override {
        return host_.record(op, {args.begin(), args.end()});
    }
    Value item(const Value& results, size_t i) override { return results.items().at(i); }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

  private:
    TracingHost& host_;
};

bool TracingHost::moves_values(const Value& f) const {
    const FunctionNames::Entry* entry = names_.find(f);
    if (!entry) return names_.is_ipairs_step(f) || host_.is_harmless(f);
    return entry->row->values == lunaria::Values::moves || entry->row->values == lunaria::Values::tells;
}

bool TracingHost::always_gives_the_same(const Value& f) const {
    const FunctionNames::Entry* entry = names_.find(f);
    if (!entry) return names_.is_ipairs_step(f);
    static constexpr Native kSame[] = {Native::pure,     Native::text,      Native::reader,        Native::type_of,
                                       Native::select,   Native::check,     Native::get_metatable, Native::next_key,
                                       Native::pairs,    Native::ipairs,    Native::raw_equal,     Native::raw_length,
                                       Native::item,     Native::is_tensor, Native::is_parameter,  Native::alike,
                                       Native::is_alike, Native::inside,    Native::ignored,       Native::shape,
                                       Native::rank};
    static constexpr std::string_view kReading[] = {"next",       "rawget",       "table.concat",
                                                    "table.pack", "table.unpack", "ms.slice"};
    return std::ranges::find(kSame, entry->row->recorded) != std::end(kSame) ||
           std::ranges::find(kReading, entry->name) != std::end(kReading);
}

bool TracingHost::reaches_inputs(const Value& v) {
    if (v.is_tensor()) return follows(v) || v.tensor().parameter();
    if (v.is_list()) return std::ranges::any_of(v.items(), [&](const Value& i) { return reaches_inputs(i); });
    if (v.kind() != Value::Kind::object) return false;
    if (!host_.is_table(v)) return host_.is_function(v);
    bool found = false;
    host_.for_each_table(v, [&](const Value& table) {
        lua_State* L = host_.lua();
        luaL_checkstack(L, 4, "tables");
        const int base = lua_gettop(L);
        host_.push(L, table);
        lua_pushnil(L);
        while (!found && lua_next(L, base + 1)) {
            found = lua_type(L, -1) == LUA_TFUNCTION ||
                    (lua_type(L, -1) == LUA_TUSERDATA && reaches_inputs(host_.to_value(L, -1)));
            lua_pop(L, 1);
        }
        lua_settop(L, base);
    });
    return found;
}

Value TracingHost::convert(const Value& from, const Value& to) {
    if (!to.is_tensor() || !(to.tensor().shape() == from.tensor().shape())) leave();
    if (to.tensor().body() == from.tensor().body()) return to;
    const Value args[] = {from, Value(to.tensor().dtype())};
    return record(registry().get("cast"), host_.bind(registry().get("cast"), args).args);
}

Value TracingHost::record(const Op& op, const std::vector<Value>& args) {
    bool matters = pure_ && !op.is_repeatable();
    auto look = [&](const Value& v) {
        const bool parameter = v.is_tensor() && v.tensor().parameter();
        if (pure_ && parameter) leave();
        matters |= follows(v) || parameter;
    };
    for (const Value& v : args) {
        look(v);
        if (v.is_list())
            for (const Value& item : v.items()) look(item);
    }
    if (pure_ && op.writes()) leave();
    if (!matters) return lunaria::run(op, args);
    // Readers of the file know only the operators of the registry.
    if (foreign_op(op)) leave();
    if (custom_op(op)) {
        Recording recording(*this);
        return expand(ExpandCall(Call(op, args, promoted_dtype(op, args)), recording));
    }
    if (op.writes()) leave();
    if (pure_ && graph_.nodes().size() > kMostTracedNodes) leave();
    std::vector<Value> operands;
    for (const Value& v : args) operands.push_back(operand(v));
    Value result = lunaria::run(op, args);
    // The number of parts depends on the sizes.
    if (result.is_list() && op.signature.results.empty() && sizes_ == TracedSizes::open) leave();
    if (machine_) builder_.span = machine_->span();
    know(result, builder_.emit(op, operands));
    return result;
}

void TracingHost::know(const Value& v, const Value& node) {
    if (v.is_list()) {
        for (size_t i = 0; i < v.items().size(); ++i)
            if (v.items()[i].is_tensor()) know(v.items()[i], builder_.item(node, i));
        return;
    }
    if (!v.is_tensor() || !node.is_node()) return;
    nodes_[v.tensor().body()] = node.node();
    kept_.push_back(v.tensor());
}

std::string TracingHost::unique_name(const std::string& name) {
    std::string unique = name;
    for (int i = 2; !taken_.insert(unique).second; ++i) unique = str(name, '_', i);
    return unique;
}

}  // namespace lunaria
