#include "core/ir/mindir_translate.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/ir/arguments.h"
#include "core/ir/mindir_import.h"
#include "core/ir/text.h"

namespace lunaria::mindir {

namespace {

using ir::GraphBuilder;
using ir::NodeKind;

std::string short_name(const std::string& name) { return name.substr(name.rfind(':') + 1); }

// One node of the file, for the function that translates its operator.
struct Entry {
    GraphBuilder& builder;
    const PrimitiveEntry& primitive;
    std::vector<Value> args;  // without inputs that only order side effects
    std::string where;        // for messages

    [[noreturn]] void fail(std::string_view what) const { throw value_error(where, what); }
    Expr in(size_t i) const {
        if (i >= args.size()) fail(str("has ", args.size(), " inputs, but needs ", i + 1));
        return {builder, args[i]};
    }
    // An attribute of the primitive or, since version 2.3, an input at this place.
    std::optional<Value> setting(std::string_view name, size_t place = ~size_t{0}) const {
        if (place < args.size() && !args[place].is_node() && !args[place].is_nil()) return args[place];
        for (const Attribute& a : primitive.attributes)
            if (a.name == name) return value_of(a);
        return std::nullopt;
    }
    bool flag(std::string_view name, size_t place) const {
        const std::optional<Value> v = setting(name, place);
        if (!v) return false;
        if (v->kind() != Value::Kind::boolean && v->kind() != Value::Kind::integer) fail(str(name, " must be a bool"));
        return v->integer() != 0;
    }
    int64_t integer(std::string_view name, int64_t otherwise) const {
        const std::optional<Value> v = setting(name);
        if (!v) return otherwise;
        if (v->kind() != Value::Kind::integer) fail(str(name, " must be an integer"));
        return v->integer();
    }
    double number(std::string_view name, size_t place, double otherwise) const {
        const std::optional<Value> v = setting(name, place);
        return v && v->is_number() ? v->number() : otherwise;
    }
    // Checks the layout of images: only NCHW is supported.
    void check_format() const {
        const std::optional<Value> v = setting("format");
        const bool numbered = v && v->kind() == Value::Kind::integer && v->integer() == 0;
        if (v && !numbered && !(v->kind() == Value::Kind::string && v->string() == "NCHW"))
            fail(str("format ", to_string(*v), " is not supported, only NCHW"));
    }
    // Sizes along height and width. The file has two of them or, with batch and channels, four.
    Value two(std::string_view name, int64_t otherwise) const {
        const std::optional<Value> v = setting(name);
        if (!v) return Value::list({Value(otherwise), Value(otherwise)});
        if (v->kind() == Value::Kind::integer) return Value::list({*v, *v});
        if (!v->is_list() || (v->items().size() != 2 && v->items().size() != 4)) fail(str(name, " must be two sizes"));
        return Value::list({v->items()[v->items().size() - 2], v->items().back()});
    }
    std::string text(std::string_view name, std::string_view otherwise) const {
        const std::optional<Value> v = setting(name);
        if (v && v->kind() != Value::Kind::string) fail(str(name, " must be a string, not ", to_string(*v)));
        std::string s(v ? v->string() : otherwise);
        std::ranges::transform(s, s.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
        return s;
    }
    Expr call(std::string_view op, std::initializer_list<Arg> list) const { return builder.call(op, list); }
};

Expr turned(const Expr& e, bool turn) { return turn ? e.builder().call("swapaxes", {e, int64_t{-1}, int64_t{-2}}) : e; }

Value matmul(const Entry& e) {
    const Expr a = turned(e.in(0), e.flag("transpose_a", 2)), b = turned(e.in(1), e.flag("transpose_b", 3));
    return e.call("matmul", {a, b}).value();
}

Value bias_add(const Entry& e) { return e.call("bias_add", {e.in(0), e.in(1)}).value(); }

Value conv2d(const Entry& e) {
    e.check_format();
    const std::string mode = e.text("pad_mode", "valid");
    Value padding(0);
    if (mode == "pad") {
        const std::optional<Value> pad = e.setting("pad");
        if (pad) padding = *pad;
    }
    return e
        .call("conv2d", {e.in(0), e.in(1), Arg("stride", e.two("stride", 1)), Arg("pad_mode", Value(mode)),
                         Arg("padding", padding), Arg("dilation", e.two("dilation", 1)),
                         Arg("groups", Value(e.integer("group", 1)))})
        .value();
}

// Windows that do not fit are dropped in mode "valid"; other modes are not translated.
Value pool(const Entry& e, std::string_view op) {
    e.check_format();
    if (e.text("pad_mode", "valid") != "valid") e.fail("only pad_mode 'valid' is supported");
    return e.call(op, {e.in(0), Arg("kernel_size", e.two("kernel_size", 1)), Arg("stride", e.two("strides", 1))})
        .value();
}
Value max_pool(const Entry& e) { return pool(e, "max_pool2d"); }
Value avg_pool(const Entry& e) { return pool(e, "avg_pool2d"); }

// x, scale, offset, mean, variance, is_training, epsilon …; the first of five results is the one that networks use.
Value batch_norm(const Entry& e) {
    if (e.flag("is_training", 5))
        e.fail("a network in training mode is not supported; export it with set_train(false)");
    const Expr y = e.call(
        "batch_norm", {e.in(0), e.in(3), e.in(4), e.in(1), e.in(2), false, 0.1, Value(e.number("epsilon", 6, 1e-5))});
    return Value::list({y.value(), e.in(3).value(), e.in(4).value(), e.in(3).value(), e.in(4).value()});
}

// x, axes, whether reduced axes stay, dtype.
Value sum(const Entry& e) {
    const Value axes = e.setting("dim", 1).value_or(Value()), dtype = e.setting("dtype", 3).value_or(Value());
    if (!dtype.is_nil()) e.fail("a dtype is not supported");
    return e.call("sum", {e.in(0), Arg("axis", axes), Arg("keepdims", Value(e.flag("keepdim", 2)))}).value();
}

// Operators whose second operand is a number.
Value mul(const Entry& e) { return e.call("mul", {e.in(0), e.in(1)}).value(); }
Value less(const Entry& e) { return e.call("less", {e.in(0), e.in(1)}).value(); }

Value flatten(const Entry& e) { return e.call("flatten", {e.in(0)}).value(); }

Value get_item(const Entry& e) {
    const Value list = e.in(0).value();
    const std::optional<Value> index = e.setting("index", 1);
    if (!index || index->kind() != Value::Kind::integer || index->integer() < 0) e.fail("the index is no number");
    const auto i = static_cast<size_t>(index->integer());
    if (list.is_list() && i >= list.items().size()) e.fail(str("a tuple of ", list.items().size(), " has no item ", i));
    return e.builder.item(list, i);
}

Value first(const Entry& e) { return e.in(0).value(); }
Value nothing(const Entry&) { return {}; }
Value make_tuple(const Entry& e) { return Value::list(e.args); }

using Translate = Value (*)(const Entry&);
constexpr std::pair<std::string_view, Translate> kTranslations[] = {
    // These only order side effects, and an exported network has none.
    {"Load", first},           {"Depend", first},          {"UpdateState", nothing}, {"Return", first},
    {"MakeTuple", make_tuple}, {"TupleGetItem", get_item}, {"MatMul", matmul},       {"BatchMatMul", matmul},
    {"BiasAdd", bias_add},     {"Conv2D", conv2d},         {"MaxPool", max_pool},    {"AvgPool", avg_pool},
    {"BatchNorm", batch_norm}, {"Flatten", flatten},       {"SumExt", sum},          {"Muls", mul},
    {"LessScalar", less}};

// The operator of ours whose name differs only in spelling.
const Op* same_operator(std::string_view type) {
    std::string name;
    for (size_t i = 0; i < type.size(); ++i) {
        const char c = type[i];
        const bool upper = c >= 'A' && c <= 'Z';
        const bool after_lower = i > 0 && !(type[i - 1] >= 'A' && type[i - 1] <= 'Z');
        const bool before_lower = i + 1 < type.size() && type[i + 1] >= 'a' && type[i + 1] <= 'z';
        if (upper && i > 0 && (after_lower || before_lower)) name += '_';
        name += upper ? static_cast<char>(c + 32) : c;
    }
    std::string plain = name;
    std::erase(plain, '_');
    for (const std::string& candidate : {name, plain})
        if (const Op* op = registry().find(candidate)) return op;
    return nullptr;
}

Translate translation_of(std::string_view type) {
    for (auto [name, f] : kTranslations)
        if (name == type) return f;
    return nullptr;
}

// Inputs go by position, further settings by name.
Value by_signature(const Op& op, const Entry& e) {
    const auto& params = op.signature.params;
    if (e.args.size() > params.size()) e.fail(str("has ", e.args.size(), " inputs; ", op.signature.text));
    std::vector<Value> args = e.args;
    for (size_t i = args.size(); i < params.size(); ++i) {
        std::optional<Value> found;
        for (const Attribute& a : e.primitive.attributes)
            if (params[i].answers_to(a.name)) found = value_of(a);
        if (!found && !params[i].has_default) e.fail(str("has no ", params[i].name));
        args.push_back(found ? *found : params[i].default_value);
    }
    ir::complete_arguments(op, args);
    return e.builder.emit(op, args);
}

Value argument(const Term& ours, size_t i, const Param& param, const Bindings& bindings) {
    if (i >= ours.items.size() || ours.items[i].kind == Term::Kind::anything) return param.default_value;
    const Term& term = ours.items[i];
    if (term.kind == Term::Kind::literal) return term.value;
    return term.kind == Term::Kind::function ? computed(term, bindings) : bindings[term.name];
}

}  // namespace

bool has_control_flow(const Model& model) {
    return std::ranges::any_of(model.primitives, [](const auto& p) { return p.second.op_type == "Switch"; });
}

void NodeTranslator::fail(std::string_view what) const { throw file_error(file_, str("corrupt: ", what)); }

void NodeTranslator::refuse_unknown_operators(std::span<const std::string_view> others) const {
    std::set<std::string> unknown;
    for (const auto& [name, p] : model_.primitives)
        if (!translation_of(p.op_type) && !same_operator(p.op_type) && !is_in_rules(p.op_type) &&
            std::ranges::find(others, p.op_type) == others.end())
            unknown.insert(p.op_type);
    if (unknown.empty()) return;
    std::string list;
    for (const std::string& name : unknown) list += (list.empty() ? "" : ", ") + name;
    throw file_error(file_, str("the graph uses operators that are not supported: ", list));
}

std::string_view NodeTranslator::operator_of(const NodeEntry& node) const {
    if (!node.op_type.starts_with("REF::")) return {};
    const auto found = model_.primitives.find(node.op_type.substr(5));
    return found == model_.primitives.end() ? std::string_view() : found->second.op_type;
}

const CallFinder& NodeTranslator::calls_of(const GraphEntry& g) {
    auto [calls, is_new] = calls_of_.try_emplace(&g, nullptr);
    if (is_new) calls->second = std::make_unique<CallFinder>(model_, g);
    return *calls->second;
}

Value NodeTranslator::translate(const GraphEntry& g, const NodeEntry& node, const Named& named) {
    if (const FoundCall* found = calls_of(g).find(node.output)) return found_call(node, *found, named);
    if (node.op_type == "Constant") {
        std::optional<Value> v = constant_of(node);
        if (!v) fail(str("the constant '", node.output, "' has no value that is understood"));
        return *v;
    }
    if (!node.op_type.starts_with("REF::")) fail(str("node '", node.output, "' has the type '", node.op_type, "'"));
    const std::string name = node.op_type.substr(5);
    std::vector<Value> args;
    for (const std::string& input : node.inputs) args.push_back(named(input));
    auto primitive = model_.primitives.find(name);
    if (primitive == model_.primitives.end())
        fail(str("node '", node.output, "' names the primitive '", name, "', which is not in the list"));
    const PrimitiveEntry& p = primitive->second;
    builder_.span = span_of(node.doc);
    const Entry entry{builder_, p, std::move(args), str(p.op_type, " (", short_name(node.output), ")")};
    try {
        const Translate f = translation_of(p.op_type);
        const Op* op = f ? nullptr : same_operator(p.op_type);
        if (!f && !op) entry.fail("has settings that are not supported");
        Value v = f ? f(entry) : by_signature(*op, entry);
        if (v.is_node() && v.node()->kind == NodeKind::call && v.node()->name.empty()) v.node()->name = node.domain;
        return v;
    } catch (const Error& e) {
        throw file_error(file_, str("node '", node.output, "': ", e.what()));
    }
}

Value NodeTranslator::found_call(const NodeEntry& node, const FoundCall& found, const Named& named) {
    Bindings bindings;
    for (const auto& [name, operand] : found.variables) {
        const auto* output = std::get_if<std::string>(&operand);
        bindings.values[name] = output ? named(*output) : std::get<Value>(operand);
    }
    const Op& op = registry().get(found.rule->ours.name);
    builder_.span = span_of(node.doc);
    try {
        std::vector<Value> args;
        for (size_t i = 0; i < op.signature.params.size(); ++i)
            args.push_back(argument(found.rule->ours, i, op.signature.params[i], bindings));
        for (const auto& [function, value] : found.promised)
            if (!same_value(computed(*function, bindings), value))
                fail(str("node '", node.output, "' has another ", function->name, " than such a call"));
        ir::complete_arguments(op, args);
        Value v = builder_.emit(op, args);
        if (v.is_node() && v.node()->kind == NodeKind::call && v.node()->name.empty()) v.node()->name = node.domain;
        return v;
    } catch (const Error& e) {
        throw file_error(file_, str("node '", node.output, "': ", e.what()));
    }
}

ir::NodeType NodeTranslator::type_of(const ValueInfo& input) const {
    if (input.tensors.size() != 1)
        throw file_error(file_, str("the input '", short_name(input.name), "' is no tensor, which is not supported"));
    const TensorEntry& t = input.tensors[0];
    if (!t.dtype() || !t.shape_is_valid()) fail(str("the input '", input.name, "' has no valid dtype and shape"));
    if (std::ranges::any_of(t.dims, [](int64_t d) { return d < 0; }))
        throw file_error(file_, str("the input '", short_name(input.name), "' has a shape that is not fixed"))
            .hint("export the network with an input of a fixed shape");
    return ir::NodeType::of(t.tensor_type());
}

std::vector<std::pair<std::string, ir::Node*>> NodeTranslator::weights_of(const GraphEntry& g, ir::Graph& graph) const {
    std::vector<std::pair<std::string, ir::Node*>> weights;
    for (const TensorEntry& t : g.parameters) {
        ir::Node* node = graph.add_constant(Value(t.value));
        node->name = t.key.empty() ? short_name(t.name) : t.key;
        weights.emplace_back(t.name, node);
    }
    return weights;
}

// The place of the call in the saved program, "chunk:line".
ir::Span NodeTranslator::span_of(const std::string& text) {
    const size_t colon = text.rfind(':');
    int line = 0;
    if (model_.producer != "Lunaria" || colon == text.npos) return {};
    const auto [end, code] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
    if (code != std::errc() || end != text.data() + text.size() || line < 1) return {};
    std::string chunk = text.substr(0, colon);
    if (chunk.starts_with('"')) chunk = ir::unquoted(chunk, file_);
    auto& shared = chunks_[chunk];
    if (!shared) shared = std::make_shared<const std::string>(chunk);
    return {shared, line, 0};
}

std::optional<Value> value_of(const Attribute& a) {
    switch (a.kind) {
        case Kind::none:
        case Kind::umonad:
        case Kind::iomonad:
            return Value();
        case Kind::boolean:
            if (a.integers.size() == 1) return Value(a.integers[0] != 0);
            return std::nullopt;
        case Kind::uint8:
        case Kind::int8:
        case Kind::int16:
        case Kind::int32:
        case Kind::int64:
        case Kind::uint32:
            if (a.integers.size() == 1) return Value(a.integers[0]);
            return std::nullopt;
        case Kind::float16:
        case Kind::float32:
        case Kind::float64:
            if (a.numbers.size() == 1) return Value(a.numbers[0]);
            return std::nullopt;
        case Kind::string:
            if (a.strings.size() == 1) return Value(a.strings[0]);
            return std::nullopt;
        case Kind::dtype:
            if (a.strings.size() == 1)
                if (std::optional<DType> t = parse_dtype(a.strings[0])) return Value(*t);
            return std::nullopt;
        case Kind::tensor:
        case Kind::tensors:
            if (a.tensors.size() == 1 && a.tensors[0].value) return Value(a.tensors[0].value);
            return std::nullopt;
        case Kind::tuple:
        case Kind::list: {
            std::vector<Value> items;
            for (const Attribute& item : a.values) {
                std::optional<Value> v = value_of(item);
                if (!v) return std::nullopt;
                items.push_back(std::move(*v));
            }
            return Value::list(std::move(items));
        }
        default:
            return std::nullopt;
    }
}

}  // namespace lunaria::mindir
