// Graph files as operators and edges: MindSpore's ModelProto (anf_ir), MindIR, ONNX, and events with graphs.
#include <algorithm>
#include <optional>

#include "core/data/files/frames.h"
#include "core/insight/graph_draft.h"
#include "core/io/json.h"
#include "core/io/onnx.h"
#include "core/io/proto_fields.h"
#include "core/ir/mindir_model.h"

namespace lunaria::insight {

namespace {

std::vector<GraphDraft::Input> inputs_of(const std::vector<std::string>& names) {
    std::vector<GraphDraft::Input> inputs;
    for (const std::string& name : names) inputs.push_back({name});
    return inputs;
}

template <class List, class Text>
std::string listed(const List& list, const Text& text_of) {
    std::string text;
    for (const auto& item : list) text += (text.empty() ? "" : ", ") + text_of(item);
    return text;
}

std::string quoted_name(const std::string& text) {
    return is_utf8(text) ? json_string(text) : str(text.size(), " bytes");
}

std::string text_of(const mindir::TensorEntry& tensor) {
    const auto dtype = tensor.dtype();
    return (dtype ? std::string(name_of(*dtype)) : str("type", tensor.type)) + "(" +
           listed(tensor.dims, [](int64_t d) { return str(d); }) + ")";
}

// An attribute of MindIR as a text that is equal where the values are; of tensors only dtype and shape count.
std::string text_of(const mindir::Attribute& a) {
    using mindir::Kind;
    std::vector<std::string> parts;
    for (const int64_t n : a.integers)
        parts.push_back(a.kind == Kind::boolean ? (n ? "true" : "false") : str(a.kind == Kind::dtype ? "type" : "", n));
    for (const double n : a.numbers) parts.push_back(json_number(n));
    for (const std::string& s : a.strings) parts.push_back(quoted_name(s));
    for (const mindir::TensorEntry& t : a.tensors) parts.push_back(text_of(t));
    for (const mindir::Attribute& v : a.values) parts.push_back(text_of(v));
    const std::string text = listed(parts, [](const std::string& part) { return part; });
    if (a.kind == Kind::umonad) return "umonad";
    if (a.kind == Kind::iomonad) return "iomonad";
    if (a.kind == Kind::none) return "none";
    return a.kind == Kind::tuple || a.kind == Kind::list || parts.size() != 1 ? "{" + text + "}" : text;
}

// The attribute of an operator that has its result's type.
constexpr std::string_view kType = "shape";

void add_attributes(const std::vector<mindir::Attribute>& from, OperatorNode& node) {
    for (const mindir::Attribute& a : from) {
        std::string value = text_of(a);
        if (a.name == kType)
            node.result = std::move(value);
        else
            node.attributes.emplace_back(a.name, std::move(value));
    }
}

void read_graph(const mindir::GraphEntry& graph, const mindir::Model& model, GraphDraft& draft,
                const std::string& function) {
    for (const auto& parameter : graph.parameters)
        draft.is_given({GivenValue::Kind::parameter, parameter.name, text_of(parameter)});
    for (const auto& input : graph.inputs) {
        std::string type;
        if (!input.tensors.empty())
            type = text_of(input.tensors[0]);
        else if (input.info)
            type = text_of(*input.info);
        draft.is_given({GivenValue::Kind::input, input.name, std::move(type)});
    }
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
        const size_t slash = full.rfind('/');
        node.scope = slash == std::string::npos ? function : full.substr(0, slash);
        if (model.producer == "Lunaria") node.line = entry.doc;
    }
}

OperatorGraph read_mindir(const Source& source) {
    const mindir::Model model = mindir::read_model(source);
    GraphDraft draft;
    read_graph(*model.graph, model, draft, "");
    for (const mindir::GraphEntry& function : model.functions) {
        const size_t outer = draft.enter();
        read_graph(function, model, draft, function.name);
        draft.leave(outer);
    }
    return std::move(draft).finished();
}

std::string text_of(const onnx::Attribute& a) {
    std::vector<std::string> parts;
    for (const double n : a.numbers) parts.push_back(json_number(n));
    for (const int64_t n : a.integers) parts.push_back(str(n));
    for (const std::string& s : a.strings) parts.push_back(quoted_name(s));
    for (const onnx::NamedTensor& t : a.tensors) parts.push_back(str(name_of(t.value.dtype()), t.value.shape()));
    if (!a.graphs.empty()) parts.push_back(str(a.graphs.size(), " graphs"));
    const std::string text = listed(parts, [](const std::string& part) { return part; });
    using Kind = onnx::Attribute::Kind;
    const bool is_list = a.kind == Kind::numbers || a.kind == Kind::integers || a.kind == Kind::strings;
    return is_list ? "{" + text + "}" : text;
}

std::string text_of(const onnx::TypeEntry& type) {
    if (type.kind != onnx::TypeEntry::Kind::tensor) return "";
    const auto dtype = onnx::dtype_of(type.element);
    const std::string name = dtype ? std::string(name_of(*dtype)) : str("type", type.element);
    if (!type.shape) return name;
    return name + "(" +
           listed(*type.shape, [](const onnx::TypeEntry::Dim& d) { return d.name.empty() ? str(d.size) : d.name; }) +
           ")";
}

void read_graph(const onnx::Graph& graph, GraphDraft& draft) {
    // Files may list parameters among the inputs too; the first of a name counts.
    for (const auto& value : graph.initializers)
        draft.is_given(
            {GivenValue::Kind::parameter, value.name, str(name_of(value.value.dtype()), value.value.shape())});
    for (const auto& value : graph.inputs) draft.is_given({GivenValue::Kind::input, value.name, text_of(value.type)});
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
    GraphDraft draft;
    if (model.graph) read_graph(*model.graph, draft);
    return std::move(draft).finished();
}

OperatorGraph read_anf(const std::string& bytes, const std::string& file) {
    for (ProtoReader p(bytes, file); p.next();)
        if (p.field() == 4) return read_anf_graph(p.message());
    return {};
}

// MindSpore's GraphProto has parameters where TensorBoard's GraphDef has a number, and its nodes have full names.
bool is_anf_graph(ProtoReader graph) {
    while (graph.next()) {
        if (graph.field() == 3) return graph.has_bytes();
        if (graph.field() != 1) continue;
        for (ProtoReader node = graph.message(); node.next();)
            if (node.field() == 8) return true;
    }
    return false;
}

// The last graph in a file of events, in the field graph_def = 4 of one.
std::optional<OperatorGraph> read_events(const Source& source) {
    std::string last;
    uint64_t at = 0;
    for (size_t record = 0; at < source.size() && !is_cut_off(source, at); ++record) {
        const Frame frame = frame_at(source, at, record);
        const std::string event = content_of(source, frame, record);
        for (ProtoReader p(event, source.name()); p.next();)
            if (p.field() == 4 && p.has_bytes()) last = std::string(p.bytes());
        at = frame.end();
    }
    if (last.empty()) return std::nullopt;
    const ProtoReader graph(last, source.name());
    return is_anf_graph(graph) ? read_anf_graph(graph) : read_graph_def(graph);
}

// Files of events begin with a length and its check sum.
bool has_frames(const Source& source) {
    try {
        return source.size() >= 16 && frame_at(source, 0, 0).end() <= source.size();
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

OperatorGraph read_operator_graph(const Source& source) {
    constexpr std::string_view kForms = "a graph is read from MindSpore's .pb files, MindIR, ONNX and files of events";
    if (has_frames(source)) {
        if (auto graph = read_events(source)) return std::move(*graph);
        throw source.error("there is no graph in its events").hint(kForms);
    }
    if (source.size() > uint64_t{1} << 31) throw source.error("is larger than 2 GiB, which no graph file is");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    // All three are models with a version first: of MindIR it is a text; ONNX has its graph in another field.
    bool is_anf = false;
    for (ProtoReader p(bytes, source.name()); p.next();) {
        if (p.field() == 1 && p.has_bytes()) return read_mindir(source);
        if (p.field() == 7 && p.has_bytes()) return read_onnx(source);
        is_anf = is_anf || (p.field() == 4 && p.has_bytes());
    }
    if (!is_anf) throw source.error("there is no graph in it").hint(kForms);
    return read_anf(bytes, source.name());
}

}  // namespace lunaria::insight
