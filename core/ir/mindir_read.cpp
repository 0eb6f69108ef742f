#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "core/ir/arguments.h"
#include "core/ir/mindir_import.h"
#include "core/ir/text.h"
#include "core/ir/verifier.h"

namespace lunaria::ir {

namespace {

using namespace mindir;

// Reads a file that Lunaria wrote, see mindir_write.cpp. The file may have been changed since: nothing in it is
// trusted.
class ModelReader {
  public:
    ModelReader(const Model& model, const Vocabulary& vocabulary, const std::string& file)
        : model_(model), vocabulary_(vocabulary), file_(file) {}

    ParsedGraph run() {
        refuse_unknown_operators();
        std::vector<std::pair<const GraphEntry*, Graph*>> graphs;
        graphs.emplace_back(&*model_.graph, add_graph(*model_.graph));
        for (const GraphEntry& entry : model_.functions) graphs.emplace_back(&entry, add_graph(entry));
        // A graph is read before its inner graphs, which may use its nodes.
        for (auto [entry, graph] : graphs) read(*entry, *graph);
        for (Graph* top : tops_) number_functions(*top);
        return std::move(parsed_);
    }

  private:
    [[noreturn]] void fail(std::string_view what) const { throw file_error(file_, str("corrupt: ", what)); }

    static std::string text_of(const Attribute* a) { return a && !a->strings.empty() ? a->strings[0] : std::string(); }
    int64_t integer_of(const Attribute* a) const {
        if (!a) return 0;
        if (a->integers.size() != 1 || a->integers[0] < 0 || a->integers[0] > std::numeric_limits<int>::max())
            fail(str("the attribute '", a->name, "' is no small number"));
        return a->integers[0];
    }

    const Op* find_operator(std::string_view name) const {
        if (name.starts_with("ops.")) return registry().find(name.substr(4));
        const Op* op = vocabulary_.primitives ? vocabulary_.primitives->find(name) : nullptr;
        return op && vocabulary_.allows && !vocabulary_.allows(*op) ? nullptr : op;
    }
    void refuse_unknown_operators() const {
        std::string unknown;
        for (const auto& [name, primitive] : model_.primitives)
            if (!find_operator(primitive.op_type))
                unknown += str(unknown.empty() ? "'" : ", '", primitive.op_type, "'");
        if (!unknown.empty())
            throw file_error(file_, str("the graph uses operators that are not known here: ", unknown));
    }

    Graph* add_graph(const GraphEntry& entry) {
        const std::string name = text_of(entry.find("name")), parent = text_of(entry.find("parent"));
        Graph* graph = nullptr;
        if (!parent.empty()) {
            auto found = graphs_.find(parent);
            if (found == graphs_.end()) fail(str("graph '", entry.name, "' is inside of '", parent, "', not there"));
            int depth = 0;
            for (const Graph* g = found->second; g; g = g->parent)
                if (++depth > 200) fail("graphs are nested too deeply");
            graph = &found->second->add_inner(name);
        } else {
            auto top = std::make_unique<Graph>(name);
            graph = top.get();
            tops_.push_back(graph);
            (parsed_.graph ? parsed_.others.emplace_back() : parsed_.graph) = std::move(top);
        }
        if (!graphs_.try_emplace(entry.name, graph).second) fail(str("two graphs are called '", entry.name, "'"));
        graph->captures = static_cast<size_t>(integer_of(entry.find("captures")));
        graph->variadic = integer_of(entry.find("variadic")) != 0;
        graph->order = static_cast<int>(integer_of(entry.find("order")));
        graph->span = span_of(text_of(entry.find("span")));
        return graph;
    }

    // "chunk:line", the chunk quoted where it has to be.
    Span span_of(const std::string& text) {
        const size_t colon = text.rfind(':');
        if (colon == text.npos) return {};
        int line = 0;
        auto [end, code] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), line);
        if (code != std::errc() || end != text.data() + text.size() || line < 1) fail(str("'", text, "' is no place"));
        std::string chunk = text.substr(0, colon);
        if (chunk.starts_with('"')) chunk = unquoted(chunk, file_);
        auto& shared = chunks_[chunk];
        if (!shared && chunk != "?") shared = std::make_shared<const std::string>(chunk);
        return {shared, line, 0};
    }

    void read(const GraphEntry& entry, Graph& graph) {
        local_.clear();
        for (const ValueInfo& info : entry.inputs) {
            NodeType type;
            if (!info.tensors.empty())
                type = NodeType::of(tensor_type(info.tensors[0]));
            else if (info.info)
                type = type_of(*info.info, 0);
            define(info.name, *graph.add_parameter(info.doc, std::move(type)));
        }
        // Constants come in the order of their numbers, wherever they are in the file.
        std::vector<std::pair<int, const TensorEntry*>> parameters;
        for (const TensorEntry& t : entry.parameters) parameters.emplace_back(number_in(t.name), &t);
        std::stable_sort(parameters.begin(), parameters.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        size_t next = 0;
        auto parameters_before = [&](int id) {
            for (; next < parameters.size() && parameters[next].first < id; ++next) {
                const TensorEntry& t = *parameters[next].second;
                Node* node = graph.add_constant(Value(t.value));
                node->name = t.key;
                define(t.name, *node);
            }
        };
        for (const NodeEntry& node : entry.nodes) {
            if (node.op_type == "Constant" && !node.output.starts_with("ValueNode_"))
                parameters_before(number_in(node.output));
            else if (node.op_type != "Constant")
                parameters_before(std::numeric_limits<int>::max());
            read_node(node, graph);
        }
        parameters_before(std::numeric_limits<int>::max());
        if (entry.outputs.size() != 1) fail(str("graph '", entry.name, "' has ", entry.outputs.size(), " outputs"));
        graph.result = value_named(entry.outputs[0].name, graph);
    }

    void read_node(const NodeEntry& entry, Graph& graph) {
        const bool plain = entry.output.starts_with("ValueNode_");
        if (entry.op_type == "Constant" || entry.op_type == "MakeTuple") {
            Value v = entry.op_type == "Constant" ? constant_of(entry) : Value::list(inputs(entry, graph));
            if (plain) {
                if (!local_.try_emplace(entry.output, std::move(v)).second)
                    fail(str("two nodes are called '", entry.output, "'"));
                return;
            }
            if (entry.op_type == "Constant") return finish(entry, *graph.add_constant(std::move(v)), false);
        }
        std::vector<Value> args = inputs(entry, graph);
        if (entry.op_type == "TupleGetItem") {
            if (args.size() != 2 || !args[0].is_node() || args[1].kind() != Value::Kind::integer ||
                args[1].integer() < 0)
                fail(str("'", entry.output, "' picks no result"));
            const NodeType& list = args[0].node()->type;
            const auto index = static_cast<size_t>(args[1].integer());
            if (list.kind == NodeType::Kind::list && index >= list.items.size())
                fail(str("'", entry.output, "' picks a result that is not there"));
            return finish(entry, *graph.add_item(*args[0].node(), index), true);
        }
        if (entry.op_type == "Call") {
            if (args.empty() || !args[0].is_node()) fail(str("'", entry.output, "' calls nothing"));
            Node& callee = *args[0].node();
            args.erase(args.begin());
            return finish(entry, *graph.add_call(callee, std::move(args), {}), true);
        }
        const auto primitive = entry.op_type.starts_with("REF::") ? model_.primitives.find(entry.op_type.substr(5))
                                                                  : model_.primitives.end();
        if (primitive == model_.primitives.end())
            fail(str("node '", entry.output, "' names the primitive '", entry.op_type, "', which is not in the list"));
        const Op& op = *find_operator(primitive->second.op_type);
        try {
            if (registry().find(op.name()) == &op) complete_arguments(op, args);
        } catch (const Error& e) {
            fail(str("node '", entry.output, "': ", e.what()));
        }
        finish(entry, *graph.add_call(op, std::move(args), {}), true);
    }

    void finish(const NodeEntry& entry, Node& node, bool typed) {
        if (typed)
            if (const Attribute* type = entry.find("shape")) node.type = type_of(*type, 0);
        node.name = entry.domain;
        if (!entry.doc.empty()) node.span = span_of(entry.doc);
        define(entry.output, node);
    }

    Value constant_of(const NodeEntry& entry) const {
        const Attribute* value = entry.find("value");
        if (!value) fail(str("the constant '", entry.output, "' has no value"));
        if (value->kind == Kind::primitive) {
            const std::string name = text_of(value);
            if (vocabulary_.function && name.starts_with("function:")) {
                Value f = vocabulary_.function(name.substr(9));
                if (f.is_nil()) fail(str("a program cannot refer to a function '", name.substr(9), "'"));
                return f;
            }
            const Op* op = find_operator(text_of(value));
            if (!op || !vocabulary_.operator_value) fail(str("there is no operator '", text_of(value), "'"));
            return vocabulary_.operator_value(*op);
        }
        std::optional<Value> v = value_of(*value);
        if (!v) fail(str("the value of the constant '", entry.output, "' is not understood"));
        return *v;
    }

    std::vector<Value> inputs(const NodeEntry& entry, Graph& graph) {
        std::vector<Value> values;
        for (const std::string& name : entry.inputs) values.push_back(value_named(name, graph));
        return values;
    }

    Value value_named(const std::string& name, Graph& graph) {
        if (name.starts_with('@')) {
            auto found = graphs_.find(name.substr(1));
            if (found == graphs_.end()) fail(str("there is no graph '", name.substr(1), "'"));
            return Value(graph.add_function(*found->second));
        }
        if (auto found = local_.find(name); found != local_.end()) return found->second;
        auto found = nodes_.find(name);
        if (found == nodes_.end()) fail(str("there is no node '", name, "' before its use in '", graph.name, "'"));
        if (!found->second->graph().encloses(graph)) fail(str("'", name, "' cannot be seen in '", graph.name, "'"));
        return Value(found->second);
    }

    int number_in(const std::string& name) const {
        const size_t colon = name.rfind(':');
        int id = -1;
        if (colon != name.npos) std::from_chars(name.data() + colon + 1, name.data() + name.size(), id);
        if (id < 0 || id > std::numeric_limits<int>::max() / 2) fail(str("'", name, "' is no name of a node"));
        return id;
    }
    void define(const std::string& name, Node& node) {
        node.id = number_in(name);
        if (!nodes_.try_emplace(name, &node).second) fail(str("two nodes are called '", name, "'"));
    }
    // Function values have no number in the file; they are numbered after all other nodes.
    static void number_functions(Graph& top) {
        int next = 0;
        std::vector<Node*> functions;
        auto walk = [&](const auto& self, Graph& graph) -> void {
            for (auto& node : graph.nodes())
                if (node->function)
                    functions.push_back(node.get());
                else
                    next = std::max(next, node->id + 1);
            for (auto& inner : graph.inner()) self(self, *inner);
        };
        walk(walk, top);
        for (Node* node : functions) node->id = next++;
        top.reserve_ids(next);
    }

    TensorType tensor_type(const TensorEntry& t) const {
        if (!t.dtype() || !t.shape_is_valid()) fail(str("'", t.name, "' has no dtype or shape that tensors have"));
        return t.tensor_type();
    }
    NodeType type_of(const Attribute& a, int depth) const {
        if (depth > 60) fail("types are nested too deeply");
        if (a.kind == Kind::tensors && a.tensors.size() == 1) return NodeType::of(tensor_type(a.tensors[0]));
        if (a.kind == Kind::none) return {NodeType::Kind::host, {}, {}};
        if (a.kind != Kind::tuple) return {};
        std::vector<NodeType> items;
        for (const Attribute& item : a.values) items.push_back(type_of(item, depth + 1));
        return NodeType::list(std::move(items));
    }

    const Model& model_;
    const Vocabulary& vocabulary_;
    const std::string& file_;
    ParsedGraph parsed_;
    std::vector<Graph*> tops_;
    std::unordered_map<std::string, Graph*> graphs_;
    std::unordered_map<std::string, Node*> nodes_;
    std::unordered_map<std::string, Value> local_;  // values of the graph that is being read
    std::unordered_map<std::string, std::shared_ptr<const std::string>> chunks_;
};

}  // namespace

ParsedGraph read_mindir(const Source& source, const Vocabulary& vocabulary) {
    const Model model = read_model(source);
    // Graphs in our own form have their names in an attribute.
    const bool ours = model.producer == "Lunaria" && model.graph->find("name");
    ParsedGraph parsed =
        ours ? ModelReader(model, vocabulary, source.name()).run() : import_model(model, vocabulary, source.name());
    try {
        verify(*parsed.graph);
        for (auto& other : parsed.others) verify(*other);
    } catch (const Error& e) {
        throw source.error(str("the graph is not valid: ", e.what()));
    }
    return parsed;
}

}  // namespace lunaria::ir
