#include "interpreter/jit/trace.h"

#include <algorithm>
#include <cstring>

#include "core/ir/builder.h"
#include "core/ir/text.h"
#include "interpreter/jit/region.h"
#include "jit/language.h"
#include "jit/vm/object.h"

namespace lunaria::jit {

Block::Block() = default;
Block::~Block() = default;

bool identical(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Value::Kind::nil:
            return true;
        case Value::Kind::number: {
            const double x = a.number(), y = b.number();
            return std::memcmp(&x, &y, sizeof x) == 0;
        }
        case Value::Kind::boolean:
        case Value::Kind::integer:
        case Value::Kind::dtype:
            return a.integer() == b.integer();
        case Value::Kind::string:
            return a.string() == b.string();
        case Value::Kind::list: {
            const auto &x = a.items(), &y = b.items();
            return std::equal(x.begin(), x.end(), y.begin(), y.end(), identical);
        }
        case Value::Kind::node:
            return a.node() == b.node();
        default:
            return vm::identity_of(a) == vm::identity_of(b);
    }
}

bool same_operand(const Operand& a, const Operand& b) {
    // A tensor that is a constant was made of plain values: by another run it is made anew.
    const bool same = a.constant.is_tensor() && b.constant.is_tensor() ? same_value(a.constant, b.constant)
                                                                       : identical(a.constant, b.constant);
    return a.slot == b.slot && a.is_list == b.is_list && same &&
           std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_operand);
}

bool same_event(const Step& a, const Step& b) {
    return a.kind == b.kind && a.op == b.op && a.name == b.name && a.table == b.table &&
           std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), same_operand);
}

namespace {

std::string type_text(const Expected& e) {
    if (!e.open) return str(lunaria::name_of(e.type.dtype), e.type.shape);
    std::string sizes = "(";
    for (int i = 0; i < e.type.shape.rank(); ++i) sizes += i > 0 ? ", ?" : "?";
    return str(lunaria::name_of(e.type.dtype), sizes, ")");
}

bool takes_any_number(Step::Kind kind) {
    return kind == Step::Kind::call || kind == Step::Kind::make || kind == Step::Kind::loop ||
           kind == Step::Kind::again;
}

// The primitive that a step is, where it is no operator.
const Op& primitive_of(const Step& step) {
    if (step.op) return *step.op;
    if (step.kind == Step::Kind::compare) return lua::primitive(step.name);
    return lua::primitive(name_of(step.kind));
}

// Writes a tree as a graph. Each way on is a function of its own, which has the values before it as free variables.
class GraphWriter {
  public:
    using Values = std::unordered_map<int32_t, Value>;  // by slot

    static void write(const Block& block, ir::Graph& graph, Values values) {
        graph.result = Value::list({});
        for (const Step& step : block.steps) {
            std::vector<Value> args;
            for (const Operand& o : step.operands) args.push_back(value_of(o, graph, values));
            if (step.kind == Step::Kind::finish) {
                graph.result = Value::list(std::move(args));
                return;
            }
            const auto emit = [&](const Op& op, std::vector<Value> given, ir::NodeType type) {
                ir::Node* node = graph.add_call(op, std::move(given), std::move(type));
                node->span = step.span;
                return node;
            };
            // What takes any number of operands has the further ones in a list.
            const Op& op = primitive_of(step);
            if (takes_any_number(step.kind)) {
                const size_t count = op.signature.params.size() - 1;
                std::vector<Value> rest(args.begin() + static_cast<ptrdiff_t>(count), args.end());
                args.resize(count);
                args.push_back(Value::list(std::move(rest)));
            }
            std::vector<ir::NodeType> types;
            for (const Expected& e : step.expected) types.push_back(type_of(e));
            const bool one = types.size() == 1 && !step.list;
            ir::NodeType type = one ? types[0] : ir::NodeType::list(types);
            if (!is_inferred(op, args, type)) type = {};
            ir::Node* node = emit(op, std::move(args), std::move(type));
            if (step.fails) node = emit(lua::primitive("error_of"), {Value(node)}, types.at(0));
            for (size_t k = 0; k < step.expected.size(); ++k) {
                const Expected& e = step.expected[k];
                ir::Node* const result = one || step.fails ? node : graph.add_item(*node, k);
                if (result->kind == ir::NodeKind::item) result->type = types[k];
                const Value v(result);
                if (e.what == Expected::What::constant)
                    emit(lua::primitive("expect"), {v, constant(e.constant, graph)}, {});
                else if (e.what == Expected::What::same)
                    emit(lua::primitive("expect"), {v, values.at(e.slot)}, {});
                else
                    values[e.slot] = v;
            }
        }
        if (block.next.empty()) return;
        std::vector<Value> ways;
        for (const auto& next : block.next) {
            ir::Graph& inner = graph.add_inner("way");
            write(*next, inner, values);
            ways.emplace_back(graph.add_function(inner));
        }
        graph.result = Value(graph.add_call(lua::primitive("ways"), {Value::list(std::move(ways))}, {}));
    }

  private:
    // Whether a graph of these operands alone would have that type: the sizes of some results depend on elements.
    static bool is_inferred(const Op& op, const std::vector<Value>& args, const ir::NodeType& type) {
        if (op.belongs_to(lua::language())) return true;
        try {
            return ir::infer_call(op, args) == type;
        } catch (const Error&) {
            return false;
        }
    }
    static ir::NodeType type_of(const Expected& e) {
        if (e.what != Expected::What::tensor) return {};
        TensorType type = e.type;
        for (int k = 0; e.open && k < type.shape.rank(); ++k) type.shape[k] = kUnknownDim;
        return ir::NodeType::of(type);
    }
    static Value constant(const Value& v, ir::Graph& graph) { return v.is_tensor() ? Value(graph.add_constant(v)) : v; }
    static Value value_of(const Operand& o, ir::Graph& graph, const Values& values) {
        if (o.slot >= 0) return values.at(o.slot);
        if (!o.is_list) return constant(o.constant, graph);
        std::vector<Value> items;
        for (const Operand& item : o.items) items.push_back(value_of(item, graph, values));
        return Value::list(std::move(items));
    }
};

}  // namespace

namespace {

void replace(Operand& o, const std::function<Value(const Value&)>& f) {
    if (o.constant.kind() == Value::Kind::object) o.constant = f(o.constant);
    for (Operand& item : o.items) replace(item, f);
}

void visit(Block& block, bool all, const std::function<void(Step&)>& f) {
    if (all || block.changed)
        for (Step& step : block.steps) f(step);
    for (auto& next : block.next) visit(*next, all, f);
}

}  // namespace

void for_each_step(Tree& tree, const std::function<void(Step&)>& f) { visit(tree.root, true, f); }

void for_each_new_step(Tree& tree, const std::function<void(Step&)>& f) { visit(tree.root, false, f); }

void replace_objects(Step& step, const std::function<Value(const Value&)>& f) {
    for (Operand& o : step.operands) replace(o, f);
    for (Expected& e : step.expected)
        if (e.constant.kind() == Value::Kind::object) e.constant = f(e.constant);
}

namespace {

// A branch without branches of its own, and the one that it comes from.
struct Leaf {
    Block* parent = nullptr;
    const Block* block = nullptr;
};

// The leaf below the block that was used before all others; whether `here` is the block or below it.
bool find_oldest(Block& block, const Block& here, Leaf& oldest) {
    bool leads = &block == &here;
    for (const auto& next : block.next) {
        const bool below = find_oldest(*next, here, oldest);
        leads |= below;
        if (!below && next->next.empty() && (!oldest.block || next->used < oldest.block->used))
            oldest = {&block, next.get()};
    }
    return leads;
}

}  // namespace

bool forget_oldest(Tree& tree, const Block& here) {
    Leaf oldest;
    find_oldest(tree.root, here, oldest);
    if (!oldest.block) return false;
    tree.steps -= std::min(tree.steps, oldest.block->steps.size());
    tree.branches -= std::min<size_t>(tree.branches, 1);
    ++tree.forgotten;
    oldest.parent->changed = true;
    std::erase_if(oldest.parent->next, [&](const auto& next) { return next.get() == oldest.block; });
    return true;
}

void make_room(Tree& tree, Block& block, const Limits& limits) {
    while (block.next.size() >= limits.ways) {
        const auto oldest = std::ranges::min_element(block.next, {}, [](const auto& next) { return next->used; });
        block.next.erase(oldest);
        block.changed = true;
        ++tree.forgotten;
    }
    while (tree.branches >= limits.branches && forget_oldest(tree, block)) {
    }
}

void Growth::begin(Block& in, const Block* new_way, size_t position) {
    if (block) return;
    block = &in;
    way = new_way;
    at = position;
}

void Growth::withdraw() {
    if (!block) return;
    block->changed = true;
    if (way) {
        std::erase_if(block->next, [&](const auto& next) { return next.get() == way; });
        return;
    }
    block->steps.resize(at);
    std::erase_if(block->regions, [&](const auto& region) { return region->end > at; });
    block->next.clear();
}

std::unique_ptr<ir::Graph> graph_of(const Tree& tree) {
    auto graph = std::make_unique<ir::Graph>("call");
    GraphWriter::write(tree.root, *graph, {});
    return graph;
}

std::string in_words(const std::vector<Expected>& results) {
    std::string text;
    for (const Expected& e : results) {
        if (!text.empty()) text += ", ";
        const bool object = e.constant.kind() == Value::Kind::object;
        switch (e.what) {
            case Expected::What::tensor:
                text += (e.parameter ? "parameter " : "") + type_text(e);
                break;
            case Expected::What::same:
                text += e.typed ? type_text(e) : "an object that is known already";
                break;
            case Expected::What::number:
                text += e.constant.kind() == Value::Kind::integer  ? "any integer"
                        : e.constant.kind() == Value::Kind::string ? "any string"
                                                                   : "any number";
                break;
            case Expected::What::table:
                text += "any table";
                break;
            case Expected::What::constant:
                text += object ? "an object" : to_string(e.constant);
        }
    }
    return text.empty() ? "nothing" : text;
}

std::string described(const ir::Span& span, std::string_view words) {
    const std::string place = ir::place_text(span);
    return str(place, place.empty() ? "" : ": ", words);
}

std::string_view name_of(Step::Kind kind) {
    static constexpr std::string_view kNames[] = {
        "argument_count", "argument",  "raw_index", "metatable",   "upvalue",       "raw_length", "next_key", "decide",
        "element",        "size_of",   "op",        "number",      "number_tensor", "index",      "compare",  "call",
        "make_table",     "set_index", "raw_set",   "set_upvalue", "loop",          "again",      "return"};
    return kNames[static_cast<size_t>(kind)];
}

}  // namespace lunaria::jit
