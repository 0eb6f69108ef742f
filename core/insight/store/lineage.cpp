// The messages (MindSpore's lineage.proto) are tables of fields; one function reads all of them.
#include "core/insight/store/lineage.h"

#include <charconv>
#include <span>

#include "core/insight/store/event_file.h"
#include "core/insight/store/wire.h"
#include "core/io/protobuf.h"

namespace lunaria::insight {

namespace {

enum class Content { text, integer, long_text, single, real, boolean, message, map };

struct FieldOf {
    uint32_t number;
    const char* name;
    Content content;
    bool repeated = false;
    // Of a message, or of the values of a map whose keys are texts.
    std::span<const FieldOf> (*inside)() = nullptr;
    Content value = Content::text;  // of a map
};
using Message = std::span<const FieldOf>;

Message texts() {
    static constexpr FieldOf fields[] = {{1, "strValue", Content::text, true}};
    return fields;
}
Message parameter() {
    static constexpr FieldOf fields[] = {{1, "mapStr", Content::map},
                                         {2, "mapStrList", Content::map, false, texts, Content::message},
                                         {3, "mapBool", Content::map, false, nullptr, Content::boolean},
                                         {4, "mapInt", Content::map, false, nullptr, Content::integer},
                                         {5, "mapDouble", Content::map, false, nullptr, Content::real}};
    return fields;
}
Message operation() {
    static constexpr FieldOf fields[] = {{1, "operationParam", Content::message, false, parameter},
                                         {2, "size", Content::integer, true},
                                         {3, "weights", Content::single, true}};
    return fields;
}
Message dataset_graph() {
    static constexpr FieldOf fields[] = {{1, "children", Content::message, true, dataset_graph},
                                         {2, "parameter", Content::message, false, parameter},
                                         {3, "operations", Content::message, true, operation},
                                         {4, "sampler", Content::message, false, operation}};
    return fields;
}
Message hyper_parameters() {
    static constexpr FieldOf fields[] = {{1, "optimizer", Content::text},     {2, "learning_rate", Content::single},
                                         {3, "loss_function", Content::text}, {4, "epoch", Content::integer},
                                         {5, "parallel_mode", Content::text}, {6, "device_num", Content::integer},
                                         {8, "batch_size", Content::integer}};
    return fields;
}
Message train_dataset() {
    static constexpr FieldOf fields[] = {{1, "train_dataset_path", Content::text},
                                         {2, "train_dataset_size", Content::integer}};
    return fields;
}
Message valid_dataset() {
    static constexpr FieldOf fields[] = {{1, "valid_dataset_path", Content::text},
                                         {2, "valid_dataset_size", Content::integer}};
    return fields;
}
Message algorithm() {
    static constexpr FieldOf fields[] = {{1, "network", Content::text}, {2, "loss", Content::single}};
    return fields;
}
Message model() {
    static constexpr FieldOf fields[] = {{3, "path", Content::text}, {4, "size", Content::long_text}};
    return fields;
}
Message train() {
    static constexpr FieldOf fields[] = {{1, "hyper_parameters", Content::message, false, hyper_parameters},
                                         {2, "train_dataset", Content::message, false, train_dataset},
                                         {3, "algorithm", Content::message, false, algorithm},
                                         {4, "model", Content::message, false, model}};
    return fields;
}
Message evaluation() {
    static constexpr FieldOf fields[] = {{2, "metric", Content::text},
                                         {3, "valid_dataset", Content::message, false, valid_dataset}};
    return fields;
}
Message user() {
    static constexpr FieldOf fields[] = {{3, "map_int32", Content::map, false, nullptr, Content::integer},
                                         {4, "map_str", Content::map},
                                         {5, "map_double", Content::map, false, nullptr, Content::real}};
    return fields;
}
Message user_infos() {
    static constexpr FieldOf fields[] = {{1, "user_info", Content::message, true, user}};
    return fields;
}

constexpr int kDeepest = 64;

// The shortest decimal that gives the same float, as a double.
double widened(float value) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    double wide = 0;
    return std::from_chars(text, end, wide).ec == std::errc() ? wide : static_cast<double>(value);
}

Json read(std::string_view bytes, Message message, int depth);

Json value_of(const Wire& m, Content content, Message (*inside)(), int depth) {
    switch (content) {
        case Content::text:
            return std::string(m.text());
        case Content::integer:
            return m.integer();
        case Content::long_text:
            return std::to_string(m.integer());
        case Content::single:
            return widened(static_cast<float>(m.float64()));
        case Content::real:
            return m.float64();
        case Content::boolean:
            return m.integer() != 0;
        default:
            return inside ? read(m.text(), inside(), depth + 1) : Json();
    }
}

Json default_of(Content content) {
    switch (content) {
        case Content::text:
            return "";
        case Content::message:
            return Json::object();
        default:
            return content == Content::boolean ? Json(false) : content == Content::real ? Json(0.0) : Json(0);
    }
}

void read_entry(const Wire& m, const FieldOf& field, Json& map, int depth) {
    Wire entry(m.text());
    std::string key;
    Json value = default_of(field.value);
    while (entry.next()) {
        if (entry.field == 1) key = entry.text();
        if (entry.field == 2) value = value_of(entry, field.value, field.inside, depth);
    }
    map[key] = std::move(value);
}

// All numbers of a field, packed or not.
void read_repeated(const Wire& m, const FieldOf& field, Json& list, int depth) {
    const bool is_packed = m.type == 2 && (field.content == Content::integer || field.content == Content::single);
    if (!is_packed) {
        list.push_back(value_of(m, field.content, field.inside, depth));
        return;
    }
    // Packed numbers, as a message of one field, which the reader of fields takes apart.
    ProtoWriter w;
    w.bytes(1, m.bytes);
    ProtoReader reader(w.text(), "lineage");
    reader.next();
    if (field.content == Content::integer) {
        std::vector<int64_t> numbers;
        reader.integers(numbers);
        for (const int64_t number : numbers) list.push_back(number);
    } else {
        std::vector<float> numbers;
        reader.floats(numbers);
        for (const float number : numbers) list.push_back(widened(number));
    }
}

Json read(std::string_view bytes, Message message, int depth) {
    if (depth > kDeepest) throw file_error("lineage", "corrupt: messages are nested too deep");
    Json json = Json::object();
    Wire m(bytes);
    while (m.next()) {
        const auto field = std::ranges::find(message, m.field, &FieldOf::number);
        if (field == message.end()) continue;
        if (field->content == Content::map)
            read_entry(m, *field, json[field->name], depth);
        else if (field->repeated)
            read_repeated(m, *field, json[field->name], depth);
        else
            json[field->name] = value_of(m, field->content, field->inside, depth);
    }
    if (m.broken()) throw file_error("lineage", "corrupt: it is no message");
    return json;
}

void add_event(std::string_view content, Lineage& lineage) {
    Wire m(content);
    while (m.next()) switch (m.field) {
            case 1:
                lineage.wall = std::max(lineage.wall, m.float64());
                break;
            case 6:
                lineage.train = read(m.text(), train(), 0);
                break;
            case 7:
                lineage.evaluation = read(m.text(), evaluation(), 0);
                break;
            case 9:
                lineage.dataset_graph = read(m.text(), dataset_graph(), 0);
                break;
            case 10: {
                const Json infos = read(m.text(), user_infos(), 0);
                for (const Json& info : infos.value("user_info", Json::array()))
                    for (const auto& [kind, map] : info.items())
                        for (const auto& [name, value] : map.items()) lineage.user[name] = value;
                break;
            }
            default:
                break;
        }
}

}  // namespace

Json parsed_json(std::string_view text) {
    constexpr int kDeepest = 200;
    bool is_deep = false;
    const auto look = [&](int depth, Json::parse_event_t, Json&) { return !(is_deep |= depth > kDeepest); };
    Json value = Json::parse(text, look, false);
    return is_deep ? Json(Json::value_t::discarded) : value;
}

namespace {

// The value of a text that should be JSON; the text itself where it is none.
Json parsed(const Json& text) {
    if (!text.is_string()) return text;
    Json value = parsed_json(text.get_ref<const std::string&>());
    return value.is_discarded() ? text : value;
}

const Json& at(const Json& json, std::initializer_list<const char*> names) {
    static const Json none;
    const Json* here = &json;
    for (const char* name : names) {
        if (!here->is_object() || !here->contains(name)) return none;
        here = &(*here)[name];
    }
    return *here;
}

struct DatasetNodes {
    Json nodes = Json::array(), edges = Json::array();

    // Returns the node's number.
    int64_t add(const Json& graph) {
        const auto number = static_cast<int64_t>(nodes.size());
        Json parameters = Json::object();
        std::string name = "?";
        for (const auto& [kind, map] : at(graph, {"parameter"}).items())
            for (const auto& [key, value] : map.items()) {
                if (key == "op_type" && value.is_string())
                    name = value;
                else
                    parameters[key] = value.is_object() && value.contains("strValue") ? value["strValue"] : value;
            }
        if (const Json& operations = at(graph, {"operations"}); !operations.is_null())
            parameters["operations"] = operations;
        if (const Json& sampler = at(graph, {"sampler"}); !sampler.is_null()) parameters["sampler"] = sampler;
        nodes.push_back({{"id", number}, {"name", name}, {"parameters", std::move(parameters)}});
        for (const Json& child : at(graph, {"children"})) edges.push_back({add(child), number});
        return number;
    }
};

}  // namespace

void add_lineage(const std::string& path, Lineage& lineage) {
    try {
        RecordSource source(path);
        uint64_t offset = 0;
        while (const auto content = source.record(offset)) {
            add_event(*content, lineage);
            offset = RecordSource::end_of(offset, *content);
        }
    } catch (const Error&) {
        // What stands before the damage is shown.
    }
}

// HParamsPluginData { SessionStartInfo { map<string, google.protobuf.Value> hparams = 1 } session_start_info = 3 }
void add_hparams(std::string_view value, Lineage& lineage) {
    const auto inside = [](std::string_view bytes, uint32_t field) {
        Wire m(bytes);
        std::string_view found;
        while (m.next())
            if (m.field == field && m.type == 2) found = m.bytes;
        return found;
    };
    Wire start(inside(inside(inside(inside(value, 9), 1), 2), 3));
    while (start.next()) {
        if (start.field != 1) continue;
        Wire entry(start.text());
        std::string name;
        Json setting;
        while (entry.next()) {
            if (entry.field == 1) name = entry.text();
            if (entry.field != 2) continue;
            Wire boxed(entry.text());
            while (boxed.next()) {
                if (boxed.field == 2) setting = boxed.float64();
                if (boxed.field == 3) setting = std::string(boxed.text());
                if (boxed.field == 4) setting = boxed.integer() != 0;
            }
        }
        if (!name.empty()) lineage.user[name] = std::move(setting);
    }
}

Json hyper_of(const Lineage& lineage) {
    Json hyper = at(lineage.train, {"hyper_parameters"});
    if (!hyper.is_object()) hyper = Json::object();
    if (const Json& network = at(lineage.train, {"algorithm", "network"}); !network.is_null())
        hyper["network"] = network;
    for (const auto& [name, value] : lineage.user.items()) hyper[name] = value;
    return hyper;
}

Json evaluation_metrics(const Lineage& lineage) {
    Json metrics = parsed(at(lineage.evaluation, {"metric"}));
    return metrics.is_object() ? metrics : Json::object();
}

Json metrics_of(const Lineage& lineage) {
    Json metrics = evaluation_metrics(lineage);
    if (const Json& loss = at(lineage.train, {"algorithm", "loss"}); !loss.is_null()) metrics["loss"] = loss;
    return metrics;
}

Json data_of(const Lineage& lineage) {
    Json data = Json::object();
    for (const auto& [name, value] : at(lineage.train, {"train_dataset"}).items()) data[name] = value;
    for (const auto& [name, value] : at(lineage.evaluation, {"valid_dataset"}).items()) data[name] = value;
    return data;
}

Json dataset_graph_of(const Lineage& lineage) {
    if (lineage.dataset_graph.is_null()) return nullptr;
    DatasetNodes graph;
    graph.add(lineage.dataset_graph);
    return {{"nodes", std::move(graph.nodes)}, {"edges", std::move(graph.edges)}};
}

}  // namespace lunaria::insight
