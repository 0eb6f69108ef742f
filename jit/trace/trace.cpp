#include "jit/trace/trace.h"

#include <algorithm>
#include <cstring>

#include "core/ir/builder.h"
#include "core/ir/text.h"
#include "jit/language.h"
#include "jit/trace/region.h"
#include "jit/trace/size_pattern.h"
#include "jit/vm/object.h"

namespace lunaria::trace {

namespace {

const Op& primitive_of(Step::Kind kind) {
    static const std::vector<const Op*> known = [] {
        std::vector<const Op*> list;
        for (int k = 0; k <= static_cast<int>(Step::Kind::finish); ++k)
            list.push_back(lua::language().find(name_of(static_cast<Step::Kind>(k))));
        return list;
    }();
    return *known[static_cast<size_t>(kind)];
}

}  // namespace

Step::Step(Kind kind, const Op& op, std::vector<Value> args, const ir::Span& span)
    : kind(kind), node(new ir::Node(ir::NodeKind::call)), loose(node) {
    node->op = &op;
    node->args = std::move(args);
    node->span = span;
}

Step::Step(Kind kind, std::vector<Value> args) : Step(kind, primitive_of(kind), std::move(args), {}) {}

void Step::take_facts(const Step& other) {
    effect = other.effect;
    late = other.late;
    fails = other.fails;
    direct = other.direct;
    method = other.method;
    counts = other.counts;
    varies = other.varies;
    opens = other.opens;
    expected = other.expected;
    live = other.live;
    written = other.written;
    by_content = other.by_content;
    alone = other.alone;
    table = other.table;
    whole = other.whole;
    list = other.list;
    hits = other.hits;
    object_at = other.object_at;
    key_at = other.key_at;
}

Block::Block(ir::Graph& graph) : graph(&graph) {}
Block::~Block() = default;

void Block::append(Step step) {
    graph->append(std::move(step.loose));
    // Results that were known beforehand do not tell whether they are a list; the operator does.
    if (step.kind == Step::Kind::op) step.list |= step.expected.size() != 1 || !step.op().signature.results.empty();
    const auto emit = [&](std::string_view name, std::vector<Value> args) {
        ir::Node* node = graph->add_call(lua::primitive(name), std::move(args), {});
        node->span = step.span();
        return node;
    };
    ir::Node* const given = step.fails ? emit("error_of", {Value(step.node)}) : step.node;
    const bool one = step.fails || (step.expected.size() == 1 && !step.list);
    for (size_t k = 0; k < step.expected.size(); ++k) {
        Expected& e = step.expected[k];
        ir::Node* const result = one ? given : graph->add_item(*given, k);
        if (e.what == Expected::What::constant) {
            e.guard = emit("expect", {Value(result), e.constant});
        } else if (e.what == Expected::What::same) {
            emit("expect", {Value(result), Value(e.node)});
        } else {
            e.node = result;
            result->slot = e.slot;
        }
    }
    if (step.kind == Step::Kind::finish) graph->result = Value(step.node);
    steps.push_back(std::move(step));
    changed = true;
}

Block& Block::add_way() {
    erase_ways([](const Block&) { return false; });
    next.push_back(std::make_unique<Block>(graph->add_inner("way")));
    return *next.back();
}

void Block::split(size_t at) {
    auto tail = std::make_unique<Block>(graph->split(*steps[at].node, "way"));
    const auto first = steps.begin() + static_cast<ptrdiff_t>(at);
    tail->steps.assign(std::make_move_iterator(first), std::make_move_iterator(steps.end()));
    tail->next = std::exchange(next, {});
    tail->end = std::exchange(end, nullptr);
    steps.erase(first, steps.end());
    next.push_back(std::move(tail));
    // Other steps may take the places of these steps.
    std::erase_if(regions, [&](const auto& region) { return region->end > at; });
    changed = true;
}

void Block::cut(size_t at) {
    erase_ways([](const Block&) { return true; });
    if (at < steps.size()) graph->erase_from(*steps[at].node);
    steps.erase(steps.begin() + static_cast<ptrdiff_t>(at), steps.end());
    std::erase_if(regions, [&](const auto& region) { return region->end > at; });
}

void Block::erase_ways(const std::function<bool(const Block&)>& dead) {
    changed = true;
    if (end) graph->erase_from(*std::exchange(end, nullptr));
    std::erase_if(next, [&](const auto& way) {
        if (!dead(*way)) return false;
        graph->erase_inner([&](const ir::Graph& inner) { return &inner == way->graph; });
        return true;
    });
}

bool Block::join_only_way() {
    if (next.size() != 1) return false;
    erase_ways([](const Block&) { return false; });
    const std::unique_ptr<Block> only = std::move(next[0]);
    const size_t count = steps.size();
    steps.insert(steps.end(), std::make_move_iterator(only->steps.begin()), std::make_move_iterator(only->steps.end()));
    for (auto& region : only->regions) {
        region->begin += count;
        region->end += count;
        for (size_t& i : region->first) i += count;
        for (size_t& i : region->last) i += count;
        regions.push_back(std::move(region));
    }
    next = std::move(only->next);
    end = only->end;
    graph->join(*only->graph);
    return true;
}

void Block::write_ways() {
    if (!end && !next.empty()) {
        std::vector<Value> ways;
        for (const auto& way : next) ways.emplace_back(graph->add_function(*way->graph));
        end = ways[0].node();
        graph->result = Value(graph->add_call(lua::primitive("ways"), {Value::list(std::move(ways))}, {}));
    }
    // A recording may have ended there.
    if (graph->result.is_nil()) graph->result = Value::list({});
}

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

bool same_operand(const Value& a, const Value& b) {
    if (a.is_tensor() && b.is_tensor()) return same_value(a, b);
    if (!a.is_list() || !b.is_list()) return identical(a, b);
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same_operand);
}

bool same_event(const Step& a, const Step& b) {
    return a.kind == b.kind && a.node->op == b.node->op && a.opens == b.opens && a.table == b.table &&
           std::equal(a.args().begin(), a.args().end(), b.args().begin(), b.args().end(), same_operand);
}

namespace {

std::string type_text(const Expected& e) {
    if (!e.open) return str(lunaria::name_of(e.type.dtype), e.type.shape);
    std::string sizes = "(";
    for (int i = 0; i < e.type.shape.rank(); ++i) sizes += i > 0 ? ", ?" : "?";
    return str(lunaria::name_of(e.type.dtype), sizes, ")");
}

ir::NodeType type_of(const Expected& e) {
    if (e.what != Expected::What::tensor) return {};
    TensorType type = e.type;
    for (int k = 0; e.open && k < type.shape.rank(); ++k) type.shape[k] = kUnknownDim;
    return ir::NodeType::of(type);
}

// Whether a graph would infer that type from these operands alone: the sizes of some results depend on elements.
bool is_inferred(const Op& op, const std::vector<Value>& args, const ir::NodeType& type) {
    if (op.belongs_to(lua::language())) return true;
    try {
        return ir::infer_call(op, args) == type;
    } catch (const Error&) {
        return false;
    }
}

void visit_trace(Block& block, bool all, const std::function<void(Step&)>& f) {
    if (all || block.changed)
        for (Step& step : block.steps) f(step);
    for (auto& next : block.next) visit_trace(*next, all, f);
}

}  // namespace

void for_each_step(Tree& tree, const std::function<void(Step&)>& f) { visit_trace(tree.root, true, f); }

void for_each_new_step(Tree& tree, const std::function<void(Step&)>& f) { visit_trace(tree.root, false, f); }

void replace_objects(Step& step, const std::function<Value(const Value&)>& f) {
    for (Value& operand : step.node->args)
        operand = with_leaves(operand, [&](const Value& v) { return v.kind() == Value::Kind::object ? f(v) : v; });
    for (Expected& e : step.expected) {
        if (e.constant.kind() == Value::Kind::object) e.constant = f(e.constant);
        if (!e.holder.is_nil()) e.holder = f(e.holder);
        if (e.guard) e.guard->args[1] = e.constant;
    }
}

void tell_types(Tree& tree) {
    for_each_step(tree, [](Step& step) {
        std::vector<ir::NodeType> types;
        for (const Expected& e : step.expected) {
            types.push_back(type_of(e));
            if (e.node && e.what != Expected::What::same) e.node->type = types.back();
        }
        if (step.fails) return;
        const bool one = types.size() == 1 && !step.list;
        ir::NodeType type = one ? types[0] : ir::NodeType::list(std::move(types));
        if (!is_inferred(step.op(), step.args(), type)) type = {};
        step.node->type = std::move(type);
    });
}

namespace {

// A branch without branches of its own, and its parent.
struct Leaf {
    Block* parent = nullptr;
    const Block* block = nullptr;
};

// Finds the leaf below the block that was not used for the longest time; returns whether `here` is the block or below
// it.
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
    oldest.parent->erase_ways([&](const Block& way) { return &way == oldest.block; });
    return true;
}

void make_room(Tree& tree, Block& block, const Limits& limits) {
    while (block.next.size() >= limits.ways) {
        const auto oldest = std::ranges::min_element(block.next, {}, [](const auto& next) { return next->used; });
        block.erase_ways([&](const Block& way) { return &way == oldest->get(); });
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

void Growth::withdraw(Tree& tree) {
    if (!block) return;
    if (way)
        block->erase_ways([&](const Block& one) { return &one == way; });
    else
        block->cut(at);
    // Nothing keeps tables of which only these steps knew.
    std::unordered_set<const void*> known;
    for_each_step(tree, [&](Step& step) {
        if (!step.args().empty()) known.insert(vm::identity_of(step.args()[0]));
    });
    std::erase_if(tree.tables, [&](const void* table) { return !known.contains(table); });
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

std::string_view name_of(const Step& step) {
    return step.kind == Step::Kind::op || step.kind == Step::Kind::number ? step.op().name() : name_of(step.kind);
}

std::string_view name_of(Step::Kind kind) {
    static constexpr std::string_view kNames[] = {
        "argument_count", "argument",  "raw_index", "metatable",   "upvalue",       "raw_length", "next_key", "decide",
        "element",        "size_of",   "op",        "number",      "number_tensor", "index",      "compare",  "call",
        "make_table",     "set_index", "raw_set",   "set_upvalue", "loop",          "again",      "finish"};
    return kNames[static_cast<size_t>(kind)];
}

bool fits_shape(const Expected& e, const Shape& shape) {
    return e.open ? shape.rank() == e.type.shape.rank() : shape == e.type.shape;
}

bool fits(vm::Host& host, const Expected& e, const Value& v, std::span<const Value> slots) {
    switch (e.what) {
        case Expected::What::constant:
            return identical(e.constant, v);
        case Expected::What::tensor: {
            if (!v.is_tensor()) return false;
            const Tensor& t = v.tensor();
            return t.dtype() == e.type.dtype && fits_shape(e, t.shape()) && (t.parameter() != nullptr) == e.parameter;
        }
        case Expected::What::same:
            if (v.is_number()) return identical(v, slots[static_cast<size_t>(e.slot)]);
            return vm::identity_of(v) && vm::identity_of(v) == vm::identity_of(slots[static_cast<size_t>(e.slot)]) &&
                   (!e.typed || fits_shape(e, v.tensor().shape()));
        case Expected::What::number:
            return v.kind() == e.constant.kind();
        case Expected::What::table:
            return host.is_table(v);
    }
    return false;
}

bool all_fit(vm::Host& host, const Step& step, bool fails, const vm::Values& results, std::span<const Value> slots) {
    if (step.sizes && !step.sizes->fits(slots)) return false;
    const size_t count = step.sizes ? 1 : step.expected.size();
    if (count != results.size() || step.fails != fails) return false;
    for (size_t k = 0; k < results.size(); ++k)
        if (!fits(host, step.expected[k], results[k], slots)) return false;
    return true;
}

}  // namespace lunaria::trace
