// MindSpore's GraphProto (anf_ir): {node = 1, name = 2, parameters = 3, outputs = 4, const_vals = 5}.
#include <algorithm>
#include <array>

#include "core/insight/graph_draft.h"
#include "core/io/json.h"

namespace lunaria::insight {

namespace {

constexpr std::array<std::string_view, 16> kTypes = {"undefined", "bool",   "int8",   "int16",  "int32",   "int64",
                                                     "uint8",     "uint16", "uint32", "uint64", "float16", "float32",
                                                     "float64",   "string", "tensor", "graph"};

std::string type_name(int64_t type) {
    if (type >= 0 && type < static_cast<int64_t>(kTypes.size())) return std::string(kTypes[type]);
    return str("type", type);
}

template <class List>
std::string joined(const List& list, std::string_view before, std::string_view after) {
    std::string text(before);
    for (const auto& item : list) text += str(text.size() > before.size() ? ", " : "", item);
    return text + std::string(after);
}

std::string tensor_type(ProtoReader p) {
    std::string type;
    std::vector<std::string> dims;
    while (p.next()) {
        if (p.field() == 1) type = type_name(p.integer());
        if (p.field() != 2) continue;
        for (ProtoReader shape = p.message(); shape.next();) {
            if (shape.field() != 1) continue;
            int64_t size = 0;
            std::string name;
            for (ProtoReader dim = shape.message(); dim.next();) {
                if (dim.field() == 1) size = dim.integer();
                if (dim.field() == 2) name = dim.text();
            }
            dims.push_back(name.empty() ? str(size) : name);
        }
    }
    return type + joined(dims, "(", ")");
}

// A TypeProto {data_type = 1, tensor_type = 2, sequence_type = 3{elem_types = 1}}.
std::string type_text(ProtoReader p) {
    std::string text;
    while (p.next()) {
        if (p.field() == 1 && text.empty()) text = type_name(p.integer());
        if (p.field() == 2) text = tensor_type(p.message());
        if (p.field() == 3) {
            std::vector<std::string> parts;
            for (ProtoReader part = p.message(); part.next();)
                if (part.field() == 1) parts.push_back(type_text(part.message()));
            text = joined(parts, "{", "}");
        }
    }
    return text;
}

// A TensorProto {dims = 1, data_type = 2} without its elements.
std::string tensor_text(ProtoReader p) {
    std::vector<int64_t> dims;
    std::string type;
    while (p.next()) {
        if (p.field() == 1) p.integers(dims);
        if (p.field() == 2) type = type_name(p.integer());
    }
    return type + joined(dims, "(", ")");
}

std::string quoted(const ProtoReader& p) {
    return is_utf8(p.bytes()) ? json_string(p.bytes()) : str(p.bytes().size(), " bytes");
}

std::string value_text(ProtoReader p);

std::string entry_text(ProtoReader p) {
    std::string key, value;
    while (p.next()) {
        if (p.field() == 1) key = p.text();
        if (p.field() == 2) value = value_text(p.message());
    }
    return key + " = " + value;
}

// The texts of a field of a ValueProto: of one value or, from 10 on, of an item of a list.
void add_parts(const ProtoReader& p, std::vector<std::string>& parts) {
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    std::vector<float> floats;
    const uint32_t field = p.field() >= 10 && p.field() <= 17 ? p.field() - 8 : p.field();
    switch (field) {
        case 2:
        case 3:
        case 4:
            p.integers(integers);
            for (const int64_t n : integers) parts.push_back(field > 2 ? str(n) : n ? "true" : "false");
            break;
        case 5:
            p.floats(floats);
            for (const float n : floats) parts.push_back(json_number(static_cast<double>(n)));
            break;
        case 6:
            p.doubles(numbers);
            for (const double n : numbers) parts.push_back(json_number(n));
            break;
        case 7:
            parts.push_back(quoted(p));
            break;
        case 8:
            parts.push_back(tensor_text(p.message()));
            break;
        case 18:
            parts.push_back(value_text(p.message()));
            break;
        case 19:
            parts.push_back(entry_text(p.message()));
            break;
        case 20:
            parts.push_back(type_text(p.message()));
            break;
        default:
            break;
    }
}

std::string value_text(ProtoReader p) {
    constexpr int64_t kTuple = 31, kList = 32;
    std::vector<std::string> parts;
    int64_t type = 0;
    bool is_list = false;
    while (p.next()) {
        if (p.field() == 1)
            type = p.integer();
        else
            add_parts(p, parts);
        is_list = is_list || (p.field() >= 10 && p.field() != 20);
    }
    if (is_list || type == kTuple || type == kList) return joined(parts, "{", "}");
    return parts.empty() ? type_name(type) : parts[0];
}

// One input of a NodeProto: {name = 1, type = 2: 1 is a control edge}.
GraphDraft::Input read_input(ProtoReader p) {
    GraphDraft::Input input;
    while (p.next()) {
        if (p.field() == 1) input.name = p.text();
        if (p.field() == 2) input.is_control = p.integer() == 1;
    }
    return input;
}

void read_node(ProtoReader p, GraphDraft& draft) {
    std::string name, type, scope, result, full_name;
    std::vector<GraphDraft::Input> inputs;
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
                for (ProtoReader a = p.message(); a.next();) {
                    if (a.field() == 1) key = a.text();
                    if (a.field() == 2) value = value_text(a.message());
                }
                break;
            }
            case 6:
                result = type_text(p.message());
                break;
            case 8:
                full_name = p.text();
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
    node.full_name = std::move(full_name);
    node.attributes = std::move(attributes);
}

// A parameter {name = 1, type = 2, default_val = 3}, or a constant {key = 1, value = 2}.
GivenValue read_given(ProtoReader p, bool is_constant) {
    GivenValue given;
    if (is_constant) given.kind = GivenValue::Kind::constant;
    while (p.next()) {
        if (p.field() == 1) given.name = p.text();
        if (p.field() == 2) given.text = is_constant ? value_text(p.message()) : type_text(p.message());
        if (p.field() == 3) given.kind = GivenValue::Kind::parameter;
    }
    // Files say of no parameter whether it is an input; those of cells have the cell's name before theirs.
    if (!is_constant && given.name.find('.') != std::string::npos) given.kind = GivenValue::Kind::parameter;
    return given;
}

}  // namespace

OperatorGraph read_anf_graph(ProtoReader graph) {
    GraphDraft draft;
    while (graph.next()) {
        if (graph.field() == 1) read_node(graph.message(), draft);
        if (graph.field() == 3 || graph.field() == 5) draft.is_given(read_given(graph.message(), graph.field() == 5));
    }
    OperatorGraph made = std::move(draft).finished();
    // What is loaded or updated in place is a parameter.
    for (const OperatorNode& node : made.nodes)
        if (node.type == "Load" || node.type.starts_with("Apply") || node.type.starts_with("Assign"))
            for (const auto& input : node.inputs)
                if (input.value >= 0 && made.values[input.value].kind == GivenValue::Kind::input)
                    made.values[input.value].kind = GivenValue::Kind::parameter;
    return made;
}

}  // namespace lunaria::insight
