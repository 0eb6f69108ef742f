// Graph files as operators and edges: MindSpore's ModelProto (anf_ir), MindIR and ONNX. Graphs inside of graphs
// (functions, bodies of loops) are parts of the one graph; their values are known by name inside of them only.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/insight/operator_graph.h"
#include "core/io/onnx.h"
#include "core/io/proto_fields.h"
#include "core/ir/mindir_model.h"

namespace lunaria::insight {

namespace {

// A graph while it is read: inputs are names until all nodes are there.
class Draft {
  public:
    struct Input {
        std::string name;
        bool is_control = false;
    };

    // Goes into a graph inside of the current one, whose names come first from here on; and back.
    size_t enter() {
        scopes_.push_back({current_, {}});
        return std::exchange(current_, scopes_.size() - 1);
    }
    void leave(size_t outer) { current_ = outer; }

    // The next node. Names that files give twice are made different by a number.
    OperatorNode& add(std::string name, std::vector<Input> inputs) {
        OperatorNode& node = graph_.nodes.emplace_back();
        int& count = names_[name];
        if (++count > 1) {
            std::string other;
            while (names_.contains(other = str(name, '#', count))) ++count;
            names_[other] = 1;
            name = std::move(other);
        }
        node.name = std::move(name);
        inputs_.push_back({current_, std::move(inputs)});
        return node;
    }
    // The value that others name so is the last node's. The first node of a name has it.
    void gives(const std::string& value) {
        scopes_[current_].values.emplace(value, static_cast<int32_t>(graph_.nodes.size()) - 1);
    }
    // The value that others name so comes from no node.
    void is_given(const std::string& value) { scopes_[current_].values.emplace(value, -1); }

    OperatorGraph finished() && {
        for (size_t i = 0; i < inputs_.size(); ++i)
            for (const Input& input : inputs_[i].list) {
                const int32_t from = source_of(input.name, inputs_[i].scope);
                graph_.nodes[i].inputs.push_back({from == static_cast<int32_t>(i) ? -1 : from, input.is_control});
            }
        return std::move(graph_);
    }

  private:
    struct Scope {
        size_t outer;
        std::unordered_map<std::string, int32_t> values;
    };
    struct Inputs {
        size_t scope;
        std::vector<Input> list;
    };

    int32_t source_of(const std::string& name, size_t scope) const {
        for (;; scope = scopes_[scope].outer) {
            if (const auto found = scopes_[scope].values.find(name); found != scopes_[scope].values.end())
                return found->second;
            if (scope == 0) return -1;
        }
    }

    OperatorGraph graph_;
    std::vector<Inputs> inputs_;
    std::vector<Scope> scopes_{{0, {}}};
    size_t current_ = 0;
    std::unordered_map<std::string, int> names_;
};

// One input of a NodeProto of anf_ir: {name = 1, type = 2: 1 is a control edge}.
Draft::Input read_input(ProtoReader p) {
    Draft::Input input;
    while (p.next()) {
        if (p.field() == 1) input.name = p.text();
        if (p.field() == 2) input.is_control = p.integer() == 1;
    }
    return input;
}

void read_node(ProtoReader p, Draft& draft) {
    std::string name, type, scope, result;
    std::vector<Draft::Input> inputs;
    std::vector<std::pair<std::string, std::string>> attributes;
    while (p.next()) switch (p.field()) {
            case 1:
                inputs.push_back(read_input(p.message()));
                break;
            case 2:
                name = p.text();
                break;
            case 3:
                type = p.text();
                break;
            case 4:
                scope = p.text();
                break;
            case 5: {
                auto& [key, value] = attributes.emplace_back();
                for (ProtoReader a = p.message(); a.next();) (a.field() == 1 ? key : value) = std::string(a.bytes());
                break;
            }
            case 6:
                result = std::string(p.bytes());
                break;
            default:
                break;
        }
    std::sort(attributes.begin(), attributes.end());
    OperatorNode& node = draft.add(name, std::move(inputs));
    draft.gives(name);
    node.type = std::move(type);
    node.scope = std::move(scope);
    node.result = std::move(result);
    node.attributes = std::move(attributes);
}

OperatorGraph read_anf(const std::string& bytes, const std::string& file) {
    Draft draft;
    for (ProtoReader p(bytes, file); p.next();) {
        if (p.field() != 4) continue;
        for (ProtoReader g = p.message(); g.next();)
            if (g.field() == 1) read_node(g.message(), draft);
    }
    return std::move(draft).finished();
}

std::vector<Draft::Input> inputs_of(const std::vector<std::string>& names) {
    std::vector<Draft::Input> inputs;
    for (const std::string& name : names) inputs.push_back({name});
    return inputs;
}

// An attribute of MindIR as a text that is equal where the values are; of tensors only dtype and shape count.
void add_text(const mindir::Attribute& a, std::string& text) {
    text += str('k', static_cast<int>(a.kind));
    for (const int64_t n : a.integers) text += str('i', n);
    for (const double n : a.numbers) text += str('n', n);
    for (const std::string& s : a.strings) text += str('s', s.size(), ':', s);
    for (const mindir::TensorEntry& t : a.tensors) {
        text += str('t', t.type);
        for (const int64_t d : t.dims) text += str('d', d);
    }
    for (const mindir::Attribute& v : a.values) add_text(v, text);
    text += '.';
}

// The attribute of an operator that has its result's type.
constexpr std::string_view kType = "shape";

void add_attributes(const std::vector<mindir::Attribute>& from, OperatorNode& node) {
    for (const mindir::Attribute& a : from) {
        std::string value;
        add_text(a, value);
        if (a.name == kType)
            node.result = std::move(value);
        else
            node.attributes.emplace_back(a.name, std::move(value));
    }
}

void read_graph(const mindir::GraphEntry& graph, const mindir::Model& model, Draft& draft) {
    for (const auto& parameter : graph.parameters) draft.is_given(parameter.name);
    for (const auto& input : graph.inputs) draft.is_given(input.name);
    constexpr std::string_view kReference = "REF::";
    for (const mindir::NodeEntry& entry : graph.nodes) {
        OperatorNode& node = draft.add(entry.output, inputs_of(entry.inputs));
        draft.gives(entry.output);
        node.type = entry.op_type;
        if (node.type.starts_with(kReference)) node.type.erase(0, kReference.size());
        if (const auto known = model.primitives.find(node.type); known != model.primitives.end()) {
            node.type = known->second.op_type.empty() ? known->second.name : known->second.op_type;
            add_attributes(known->second.attributes, node);
        }
        add_attributes(entry.attributes, node);
        std::sort(node.attributes.begin(), node.attributes.end());
        // The full name of an operator is its scope and its own name.
        const std::string& full = entry.domain.empty() ? entry.name : entry.domain;
        if (const size_t slash = full.rfind('/'); slash != std::string::npos) node.scope = full.substr(0, slash);
    }
}

OperatorGraph read_mindir(const Source& source) {
    const mindir::Model model = mindir::read_model(source);
    Draft draft;
    read_graph(*model.graph, model, draft);
    for (const mindir::GraphEntry& function : model.functions) {
        const size_t outer = draft.enter();
        read_graph(function, model, draft);
        draft.leave(outer);
    }
    return std::move(draft).finished();
}

std::string text_of(const onnx::Attribute& a) {
    std::string text = str('k', static_cast<int>(a.kind));
    for (const double n : a.numbers) text += str('n', n);
    for (const int64_t n : a.integers) text += str('i', n);
    for (const std::string& s : a.strings) text += str('s', s.size(), ':', s);
    for (const onnx::NamedTensor& t : a.tensors) text += str('t', name_of(t.value.dtype()), t.value.shape());
    return text + str('g', a.graphs.size());
}

void read_graph(const onnx::Graph& graph, Draft& draft) {
    for (const auto& value : graph.inputs) draft.is_given(value.name);
    for (const auto& value : graph.initializers) draft.is_given(value.name);
    for (const onnx::Node& entry : graph.nodes) {
        const std::string first = entry.outputs.empty() ? "" : entry.outputs[0];
        OperatorNode& node = draft.add(entry.name.empty() ? first : entry.name, inputs_of(entry.inputs));
        for (const std::string& value : entry.outputs)
            if (!value.empty()) draft.gives(value);
        node.type = entry.domain.empty() ? entry.op : entry.domain + "." + entry.op;
        if (const size_t slash = entry.name.rfind('/'); slash != std::string::npos)
            node.scope = entry.name.substr(0, slash);
        for (const onnx::Attribute& a : entry.attributes) node.attributes.emplace_back(a.name, text_of(a));
        std::sort(node.attributes.begin(), node.attributes.end());
        for (const onnx::Attribute& a : entry.attributes)
            for (const onnx::Graph& body : a.graphs) {
                const size_t outer = draft.enter();
                read_graph(body, draft);
                draft.leave(outer);
            }
    }
}

OperatorGraph read_onnx(const Source& source) {
    const size_t slash = source.name().rfind('/');
    const onnx::Model model =
        onnx::read_model(source, slash == std::string::npos ? "." : source.name().substr(0, slash));
    Draft draft;
    if (model.graph) read_graph(*model.graph, draft);
    return std::move(draft).finished();
}

}  // namespace

OperatorGraph read_operator_graph(const Source& source) {
    if (source.size() > uint64_t{1} << 31) throw source.error("is larger than 2 GiB, which no graph file is");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    // All three are models with a version first: of MindIR it is a text; ONNX has its graph in another field.
    bool is_anf = false;
    for (ProtoReader p(bytes, source.name()); p.next();) {
        if (p.field() == 1 && p.has_bytes()) return read_mindir(source);
        if (p.field() == 7 && p.has_bytes()) return read_onnx(source);
        is_anf = is_anf || (p.field() == 4 && p.has_bytes());
    }
    if (!is_anf)
        throw source.error("there is no graph in it")
            .hint("a graph is read from MindSpore's .pb files, MindIR and ONNX");
    return read_anf(bytes, source.name());
}

}  // namespace lunaria::insight
