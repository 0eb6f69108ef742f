#include "jit/saving/partial.h"

#include <algorithm>
#include <bit>

#include "core/operator/op.h"
#include "jit/language.h"
#include "jit/saving/names.h"
#include "jit/vm/object.h"

namespace lunaria {

Partial Partial::list(std::vector<Partial> items) {
    Partial p;
    p.structure = std::make_shared<const Structure>(Structure{nullptr, nullptr, std::move(items), false});
    return p;
}

Partial Partial::open_list(std::vector<Partial> items) {
    Partial p;
    p.structure = std::make_shared<const Structure>(Structure{nullptr, nullptr, std::move(items), true});
    return p;
}

Partial Partial::closure(const ir::Graph& graph, std::shared_ptr<const void> owner, std::vector<Partial> captures) {
    Partial p;
    p.structure = std::make_shared<const Structure>(Structure{&graph, std::move(owner), std::move(captures), false});
    return p;
}

bool Partial::is_list() const { return structure && !structure->graph && !structure->open; }
bool Partial::is_open_list() const { return structure && structure->open; }
bool Partial::is_closure() const { return structure && structure->graph; }
const std::vector<Partial>& Partial::items() const { return structure->items; }

void append_key(std::string& key, const Partial& p) {
    if (p.structure) {
        key += str(p.structure->open ? '[' : '(', static_cast<const void*>(p.structure->graph), ' ');
        for (const Partial& item : p.items()) append_key(key, item);
        key += ')';
        return;
    }
    const Value& v = p.value;
    switch (v.kind()) {
        case Value::Kind::node:
            key += '%';
            break;
        case Value::Kind::nil:
            key += 'n';
            break;
        case Value::Kind::boolean:
        case Value::Kind::dtype:
        case Value::Kind::integer:
            key +=
                str(static_cast<int>(v.kind()), ':', v.kind() == Value::Kind::boolean ? v.boolean() : v.integer(), ' ');
            break;
        case Value::Kind::number:
            key += str('f', std::bit_cast<int64_t>(v.number()), ' ');
            break;
        case Value::Kind::string:
            key += str('s', v.string().size(), ' ', v.string());
            break;
        case Value::Kind::list:
            key += 'l';
            for (const Value& item : v.items()) append_key(key, item);
            key += ' ';
            break;
        default:
            key += str('o', vm::identity_of(v), ' ');
    }
}

std::string key_of(const std::vector<Partial>& values) {
    std::string key;
    for (const Partial& p : values) append_key(key, p);
    return key;
}

void gather_nodes(const Partial& p, std::vector<Value>& nodes) {
    if (p.is_node()) nodes.push_back(p.value);
    if (p.structure)
        for (const Partial& item : p.items()) gather_nodes(item, nodes);
}

Partial with_nodes(const Partial& p, const std::vector<Value>& nodes, size_t& next) {
    if (p.is_node()) return nodes.at(next++);
    if (!p.structure) return p;
    std::vector<Partial> items;
    for (const Partial& item : p.items()) items.push_back(with_nodes(item, nodes, next));
    Partial made;
    made.structure = std::make_shared<const Structure>(
        Structure{p.structure->graph, p.structure->owner, std::move(items), p.structure->open});
    return made;
}

std::vector<Partial> with_nodes(const std::vector<Partial>& values, const std::vector<Value>& nodes) {
    std::vector<Partial> made;
    size_t next = 0;
    for (const Partial& p : values) made.push_back(with_nodes(p, nodes, next));
    return made;
}

bool is_lasting(const Value& field) {
    return field.kind() == Value::Kind::string && (field.string() == "dtype" || field.string() == "ndim");
}

namespace {

// Whether this is the first result of an operator, which is a tensor unless the operator returns sizes or dtypes.
bool gives_tensor(const ir::Node& result) {
    if (result.op != &lua::primitive("result") || !result.args[0].is_node()) return false;
    const ir::Node& call = *result.args[0].node();
    if (call.op != &lua::primitive("call")) return false;
    const Op* op = operator_named(call.args[0]);
    return op && !op->host_fn;
}

}  // namespace

std::optional<std::vector<Partial>> told_by_structure(std::string_view function, const std::vector<Partial>& args) {
    if (function == "type" && args.size() == 1 && args[0].is_closure()) return {{Partial(Value("function"))}};
    if ((function == "ms.is_tensor" || function == "ms.is_parameter" || function == "is_jit") && args.size() == 1 &&
        args[0].is_closure())
        return {{Partial(Value(false))}};
    // A program is compiled as a whole: what ms.jit gives of a function is the function.
    if (function == "make" && !args.empty()) return {{args[0]}};
    if ((function == "type" || function == "ms.is_tensor") && args.size() == 1 && args[0].is_node() &&
        gives_tensor(*args[0].value.node()))
        return {{function == "type" ? Partial(Value("userdata")) : Partial(Value(true))}};
    if (function != "select" || args.empty() || !args[0].is_known()) return std::nullopt;
    const auto count = static_cast<int64_t>(args.size()) - 1;
    const Value& n = args[0].value;
    if (n.kind() == Value::Kind::string && n.string() == "#") return {{Partial(Value(count))}};
    if (n.kind() != Value::Kind::integer || n.integer() < 1) return std::nullopt;
    return {{args.begin() + std::min(n.integer(), count + 1), args.end()}};
}

bool BlockEntries::once(const ir::Graph& function, const ir::Graph& block) {
    auto [entry, fresh] = counts_.try_emplace(&function);
    if (fresh)
        for (const ir::Graph* b : ir::blocks_of(function)) {
            if (b->body().empty() || !ir::goes_on(*b->body().back())) continue;
            const ir::Node& last = *b->body().back();
            if (last.callee) ++entry->second[last.callee->function];
            if (last.op)
                for (size_t i : {1, 3}) ++entry->second[last.args[i].node()->function];
        }
    return entry->second[&block] == 1;
}

}  // namespace lunaria
