// Operators with arguments that are bound to parameters at each call: arguments by name, in tables, or followed
// numbers, which become tensors or go to a stand-in.
#include <algorithm>
#include <functional>

#include "core/ir/builder.h"
#include "core/operator/open.h"
#include "jit/language.h"
#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

// The error for a followed number in a parameter without a derivative.
Error attribute_error(const Op& op, size_t i) {
    return argument_error(op.name(), str("has no gradient with respect to '", op.signature.params[i].name,
                                         "', which depends on what is differentiated"))
        .hint(str("write the formula with operators that take it as a tensor, or pass ms.stop_gradient(",
                  op.signature.params[i].name, ") where no gradient is wanted"));
}

}  // namespace

void refuse_attributes(const Op& op, std::span<const Value> args, uint16_t followed) {
    for (size_t i = 0; i < args.size(); ++i)
        if (shown(args[i]).kind() == Value::Kind::number && (args[i].marks() & followed) &&
            !is_tensor_type(op.signature.params[i].type))
            throw attribute_error(op, i);
}

namespace {

// Whether the field of a table is followed.
bool follows_field(std::span<const Value> contexts, const Value& table, const Value& name) {
    return std::any_of(contexts.begin(), contexts.end(), [&](const Value& c) {
        const Shadow* shadow = static_cast<Context*>(c.object())->find(table);
        return shadow && shadow->follows(name);
    });
}

// Whether one of the numbers in a list may be followed.
bool follows_numbers(Machine& m, std::span<const Value> contexts, const Value& list) {
    return std::any_of(contexts.begin(), contexts.end(), [&](const Value& c) {
        const Shadow* shadow = static_cast<Context*>(c.object())->find(list);
        for (int64_t i = 1; shadow; ++i) {
            const Value item = m.host().raw_get(list, Value(i));
            if (item.is_nil()) break;
            if (shown(item).kind() == Value::Kind::number && shadow->follows_at(Value(i))) return true;
        }
        return false;
    });
}

// Whether the number from which an argument is made is followed.
bool follows_number(Machine& m, std::span<const Value> contexts, const Values& args, const Host::Bound::Path& path) {
    const Value& given = args[path.argument];
    if (path.name.is_nil())
        return shown(given).kind() == Value::Kind::number && (given.marks() & followed_by(contexts));
    return follows_field(contexts, given, path.name) &&
           shown(m.host().raw_get(given, path.name)).kind() == Value::Kind::number;
}

// The stand-in for an operator with followed numbers among its attributes (marked in `stands`): the operator in which
// they are operands (`open`), or the host's function that computes the operator by others, with tensors for numbers.
Value stand_in_for_attributes(Machine& m, const Op& op, const Host::Bound& bound, const Values& args,
                              std::span<const Value> contexts, std::vector<bool>& stands, const Op*& open) {
    const auto& params = op.signature.params;
    if (op.writes()) return {};
    for (size_t i = 0; i < params.size(); ++i) {
        const ArgType type = params[i].type;
        if (type != ArgType::number && type != ArgType::scalar && type != ArgType::any) continue;
        stands[i] = !bound.paths[i].empty() && shown(bound.args[i]).kind() == Value::Kind::number &&
                    follows_number(m, contexts, args, bound.paths[i][0]);
    }
    if (std::ranges::none_of(stands, std::identity())) return {};
    uint64_t operands = 0;
    for (size_t i = 0; i < stands.size() && i < 64; ++i) operands |= uint64_t{stands[i]} << i;
    open = open_operator(op, operands);
    if (open) return {};
    Value other = m.host().stand_in(operator_value(op));
    if (other.is_nil()) stands.assign(stands.size(), false);
    return other;
}

// A followed value must arrive in the place of a tensor, or in an attribute that a stand-in takes.
void refuse_attributes(Machine& m, const Op& op, const Host::Bound& bound, const Values& args,
                       std::span<const Value> contexts, const std::vector<bool>& stands) {
    const auto& params = op.signature.params;
    for (size_t i = 0; i < params.size(); ++i) {
        if (is_tensor_type(params[i].type) || stands[i]) continue;
        for (const auto& path : bound.paths[i]) {
            const Value& given = args[path.argument];
            const Value value = path.name.is_nil() ? given : m.host().raw_get(given, path.name);
            if (follows_number(m, contexts, args, path) ||
                (m.host().is_table(value) && follows_numbers(m, contexts, value)))
                throw attribute_error(op, i);
        }
    }
}

// The form of a function that binds the arguments: the same text for calls of the same form. `numbers` gets the
// operands that are numbers and become tensors of the dtype; `exact`: the dtype makes no difference to them.
std::string form_of(const Op& op, const Host::Bound& bound, Values& args, std::span<const Value> contexts,
                    const std::vector<bool>& stands, DType dtype, bool exact, std::vector<bool>& numbers) {
    const auto& params = op.signature.params;
    const uint16_t followed = followed_by(contexts);
    std::string pattern = str(op.id, "/", args.size(), "/", name_of(dtype));
    for (size_t i = 0; i < params.size(); ++i) {
        pattern += stands[i] ? ";!" : ";";
        if (!is_tensor_type(params[i].type) && !stands[i]) continue;
        for (const auto& path : bound.paths[i])
            pattern += str(path.argument, ".", path.name.is_nil() ? "" : path.name.string(), ".", path.item,
                           path.number_as.is_nil() ? "" : to_string(path.number_as), ",");
        if (!is_tensor_type(params[i].type) || params[i].type == ArgType::tensors || bound.paths[i].empty()) continue;
        const auto& path = bound.paths[i][0];
        Value& given = args[path.argument];
        if (path.name.is_nil()) {
            // An open number is no part of the form of the call: it becomes a tensor where that makes no difference.
            const bool real = params[i].type == ArgType::same || params[i].type == ArgType::real;
            const bool follows = (given.marks() & followed) != 0;
            if (is_open(given) && !follows && !(exact && real)) given = watcher()->settled(given);
            numbers[i] = (follows || is_open(given)) && shown(given).is_number();
        } else {
            numbers[i] = bound.args[i].is_number() && follows_field(contexts, given, path.name);
        }
        if (numbers[i]) pattern += 'N';
    }
    return pattern;
}

// The dtype of the tensors that followed numbers become, beside operands of a joint dtype. If none of the operands is a
// tensor, the numbers of an open operator stay as exact as numbers are.
DType dtype_of_numbers(const Op& op, std::span<const Value> args, DType joint) {
    bool beside = !is_open_operator(op);
    for (size_t i = 0; i < args.size(); ++i) {
        const ArgType type = op.signature.params[i].type;
        beside |= (type == ArgType::same || type == ArgType::real) && args[i].is_tensor();
    }
    if (!beside) return DType::f64;
    const bool is_whole = is_integer(joint) || joint == DType::boolean;
    // Integers are compared with numbers in a dtype that represents both.
    return is_whole && op.infer_fn != broadcast_to_bool ? DType::f32 : joint;
}

// Beside halves some operators read numbers in the precision in which they compute, and round only the results.
bool takes_exact_numbers(const Op& op, const std::vector<bool>& numbers) {
    return (op.is_elementwise || is_open_operator(op)) && std::ranges::any_of(numbers, std::identity());
}

// The results of a call, rounded where their types are halves.
Value rounded(ir::Graph& g, const Value& results, const ir::NodeType& types) {
    const bool several = types.kind == ir::NodeType::Kind::list;
    std::vector<Value> all;
    for (size_t k = 0; k < (several ? types.items.size() : 1); ++k) {
        const DType dtype = several ? types.items[k].tensor.dtype : types.tensor.dtype;
        auto result = [&](const Value& list, size_t at) {
            return Value(g.add_call(lua::primitive("result"), {list, Value(static_cast<int64_t>(at))}, {}));
        };
        Value v = result(results, k);
        if (is_half(dtype)) {
            const Value cast = operator_value(registry().get("cast"));
            v = result(Value(g.add_call(lua::primitive("call"), {cast, Value::list({v, Value(dtype)})}, {})), 0);
        }
        all.push_back(std::move(v));
    }
    return Value::list(std::move(all));
}

}  // namespace

// Binds arguments by name, in tables or as followed numbers, by a small function that reads the parts, so that their
// cotangents find the way back.
void Machine::call_bound(const Op& op, std::span<const Value> contexts, Values args, const Destination& to) {
    Host::Bound bound = host().bind(op, args);
    const auto& params = op.signature.params;
    std::vector<bool> stands(params.size());
    const Op* open = nullptr;
    const Value other = stand_in_for_attributes(*this, op, bound, args, contexts, stands, open);
    std::vector<Value> plain;
    for (const Value& v : bound.args) plain.push_back(shown(v));
    if (open) {
        // The operator itself reports the error in the arguments.
        ir::infer_call(op, plain);
        return call_bound(*open, contexts, std::move(args), to);
    }
    const DType promoted = promoted_dtype(op, plain), joint = dtype_of_numbers(op, plain, promoted);
    const bool exact = promoted == DType::f32 || promoted == DType::f64;
    std::vector<bool> numbers(params.size());
    const std::string pattern = form_of(op, bound, args, contexts, stands, joint, exact, numbers);
    const bool wide = is_half(joint) && takes_exact_numbers(op, numbers);
    const DType dtype = wide ? DType::f32 : joint;
    refuse_attributes(*this, op, bound, args, contexts, stands);
    struct Adapter {
        std::shared_ptr<ir::Graph> graph;
    };
    thread_local std::unordered_map<std::string, Adapter> adapters;
    Adapter& adapter = adapters[pattern];
    if (!adapter.graph) {
        adapter.graph = std::make_shared<ir::Graph>(std::string(op.name()));
        ir::Graph& g = *adapter.graph;
        std::vector<ir::Node*> given, rest;
        for (size_t i = 0; i < args.size(); ++i) given.push_back(g.add_parameter("", {}));
        for (size_t i = 0; i < params.size(); ++i) rest.push_back(g.add_parameter(std::string(params[i].name), {}));
        auto emit = [&](std::string_view name, std::vector<Value> a) {
            return Value(g.add_call(lua::primitive(name), std::move(a), {}));
        };
        auto read = [&](const Host::Bound::Path& path) {
            Value v(given[path.argument]);
            if (!path.name.is_nil()) v = emit("raw_index", {v, path.name});
            if (path.item > 0) v = emit("raw_index", {v, Value(path.item)});
            v = emit("content", {v, Value::list({})});
            return path.number_as.is_nil() ? v : emit("number_tensor", {v, path.number_as});
        };
        std::vector<Value> positional;
        for (size_t i = 0; i < params.size(); ++i) {
            const auto& paths = bound.paths[i];
            if (paths.empty() || (!is_tensor_type(params[i].type) && !stands[i])) {
                positional.push_back(Value(rest[i]));
            } else if (params[i].type == ArgType::tensors) {
                std::vector<Value> items, keys;
                for (const auto& path : paths) {
                    items.push_back(read(path));
                    keys.push_back(Value(static_cast<int64_t>(items.size())));
                }
                // A stand-in is written in the host's language, which has tables.
                const Value count(static_cast<int64_t>(items.size()));
                Value tensors = Value::list(std::move(items));
                positional.push_back(other.is_nil() ? emit("spread", {tensors, Value()})
                                                    : emit("table", {Value::list(keys), tensors, count, Value()}));
            } else if (numbers[i]) {
                positional.push_back(emit("number_tensor", {read(paths[0]), Value(dtype)}));
            } else {
                positional.push_back(read(paths[0]));
            }
        }
        // The graph outlives the host, so a function of the host is no constant of it.
        const Value callee = other.is_nil() ? operator_value(op) : Value(g.add_parameter("", {}));
        g.result = emit("call", {callee, Value::list(std::move(positional))});
        if (wide) g.result = rounded(g, g.result, ir::infer_call(op, plain));
    }
    for (Value& v : bound.args) args.push_back(std::move(v));
    if (!other.is_nil()) args.push_back(other);
    enter({&function_of(*adapter.graph), adapter.graph}, contexts, std::move(args), to);
}

}  // namespace lunaria::vm
