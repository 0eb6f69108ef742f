// TensorBoard's GraphDef: {node = 1{name = 1, op = 2, input = 3, attr = 5{key = 1, value = 2}}, versions = 4}.
#include <algorithm>
#include <set>

#include "core/insight/graph_draft.h"
#include "core/io/json.h"

namespace lunaria::insight {

namespace {

// A TensorShapeProto {dim = 2{size = 1}, unknown_rank = 3}.
std::string shape_text(ProtoReader p) {
    std::string text;
    while (p.next()) {
        if (p.field() == 3 && p.boolean()) return "(?)";
        if (p.field() != 2) continue;
        int64_t size = 0;
        for (ProtoReader dim = p.message(); dim.next();)
            if (dim.field() == 1) size = dim.integer();
        text += str(text.empty() ? "" : ", ", size);
    }
    return "(" + text + ")";
}

std::string attribute_text(ProtoReader p);

std::string list_text(ProtoReader p) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    while (p.next()) {
        std::vector<int64_t> integers;
        std::vector<float> floats;
        if (p.field() == 2) add(is_utf8(p.bytes()) ? json_string(p.bytes()) : str(p.bytes().size(), " bytes"));
        if (p.field() == 3 || p.field() == 5 || p.field() == 6) p.integers(integers);
        if (p.field() == 4) p.floats(floats);
        if (p.field() == 7) add(shape_text(p.message()));
        for (const int64_t n : integers) add(p.field() == 5 ? (n ? "true" : "false") : str(n));
        for (const float n : floats) add(json_number(static_cast<double>(n)));
    }
    return "{" + text + "}";
}

// An AttrValue {list = 1, s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7, tensor = 8}.
std::string attribute_text(ProtoReader p) {
    while (p.next()) switch (p.field()) {
            case 1:
                return list_text(p.message());
            case 2:
                return is_utf8(p.bytes()) ? json_string(p.bytes()) : str(p.bytes().size(), " bytes");
            case 3:
                return str(p.integer());
            case 4:
                return json_number(static_cast<double>(p.float32()));
            case 5:
                return p.boolean() ? "true" : "false";
            case 6:
                return str("type", p.integer());
            case 7:
                return shape_text(p.message());
            default:
                break;
        }
    return "";
}

// "name", "name:1" for another of its results, "^name" for an order only.
GraphDraft::Input input_of(std::string name) {
    const bool is_control = name.starts_with('^');
    if (is_control) name.erase(0, 1);
    const size_t colon = name.rfind(':');
    if (colon != std::string::npos && name.find_first_not_of("0123456789", colon + 1) == std::string::npos)
        name.erase(colon);
    return {name, is_control};
}

bool is_given(const std::string& type, const std::vector<GraphDraft::Input>& inputs, GivenValue::Kind& kind) {
    if (!inputs.empty()) return false;
    const std::set<std::string> inputs_types = {"Input", "Placeholder"}, constants = {"Const", "Constant"};
    if (inputs_types.contains(type))
        kind = GivenValue::Kind::input;
    else if (constants.contains(type))
        kind = GivenValue::Kind::constant;
    else if (type == "Parameter")
        kind = GivenValue::Kind::parameter;
    else
        return false;
    return true;
}

void read_def_node(ProtoReader p, GraphDraft& draft) {
    std::string name, type, result;
    std::vector<GraphDraft::Input> inputs;
    std::vector<std::pair<std::string, std::string>> attributes;
    while (p.next()) {
        if (p.field() == 1) name = p.text();
        if (p.field() == 2) type = p.text();
        if (p.field() == 3) inputs.push_back(input_of(p.text()));
        if (p.field() != 5) continue;
        std::string key, value;
        for (ProtoReader a = p.message(); a.next();) {
            if (a.field() == 1) key = a.text();
            if (a.field() == 2) value = attribute_text(a.message());
        }
        if (key == "_output_shapes")
            result = value;
        else
            attributes.emplace_back(key, value);
    }
    std::sort(attributes.begin(), attributes.end());
    if (GivenValue given{{}, name, result}; is_given(type, inputs, given.kind)) return draft.is_given(given);
    OperatorNode& node = draft.add(name, std::move(inputs));
    draft.gives(name);
    if (const size_t slash = name.rfind('/'); slash != std::string::npos) node.scope = name.substr(0, slash);
    node.type = std::move(type);
    node.result = std::move(result);
    node.attributes = std::move(attributes);
}

}  // namespace

OperatorGraph read_graph_def(ProtoReader graph) {
    GraphDraft draft;
    while (graph.next())
        if (graph.field() == 1) read_def_node(graph.message(), draft);
    return std::move(draft).finished();
}

}  // namespace lunaria::insight
