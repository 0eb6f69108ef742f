// libyaml behind core/io/yaml.h.
#include <yaml.h>

#include "core/io/yaml.h"

namespace lunaria {

namespace {

struct Parser {
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event = false;

    explicit Parser(std::string_view text) {
        yaml_parser_initialize(&parser);
        yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    }
    ~Parser() {
        drop();
        yaml_parser_delete(&parser);
    }
    Parser(const Parser&) = delete;
    Parser& operator=(const Parser&) = delete;

    bool next() {
        drop();
        has_event = yaml_parser_parse(&parser, &event) == 1;
        return has_event;
    }
    void drop() {
        if (has_event) yaml_event_delete(&event);
        has_event = false;
    }
    size_t line() const { return event.start_mark.line + 1; }
};

// What is refused of an event; empty where it is taken.
std::string refusal(const yaml_event_t& event) {
    switch (event.type) {
        case YAML_ALIAS_EVENT:
            return "aliases are not read";
        case YAML_SCALAR_EVENT:
            return event.data.scalar.anchor ? "anchors are not read" : event.data.scalar.tag ? "tags are not read" : "";
        case YAML_SEQUENCE_START_EVENT:
            return event.data.sequence_start.anchor ? "anchors are not read"
                   : event.data.sequence_start.tag  ? "tags are not read"
                                                    : "";
        case YAML_MAPPING_START_EVENT:
            return event.data.mapping_start.anchor ? "anchors are not read"
                   : event.data.mapping_start.tag  ? "tags are not read"
                                                   : "";
        default:
            return {};
    }
}

}  // namespace

}  // namespace lunaria

extern "C" __attribute__((visibility("default"))) bool lunaria_yaml(std::string_view text, lunaria::YamlParts& parts,
                                                                    std::string& problem, size_t& line) {
    lunaria::Parser reader(text);
    int documents = 0;
    while (reader.next()) {
        const yaml_event_t& event = reader.event;
        line = reader.line();
        problem = lunaria::refusal(event);
        if (event.type == YAML_DOCUMENT_START_EVENT && ++documents > 1) problem = "it has a second document";
        if (!problem.empty()) return false;
        switch (event.type) {
            case YAML_SCALAR_EVENT: {
                const auto& scalar = event.data.scalar;
                parts.scalar({reinterpret_cast<const char*>(scalar.value), scalar.length},
                             scalar.style == YAML_PLAIN_SCALAR_STYLE, line);
                break;
            }
            case YAML_SEQUENCE_START_EVENT:
            case YAML_MAPPING_START_EVENT:
                parts.begin(event.type == YAML_MAPPING_START_EVENT, line);
                break;
            case YAML_SEQUENCE_END_EVENT:
            case YAML_MAPPING_END_EVENT:
                parts.end();
                break;
            case YAML_STREAM_END_EVENT:
                if (documents == 1) return true;
                problem = "it is empty";
                return false;
            default:
                break;
        }
    }
    line = reader.parser.problem_mark.line + 1;
    problem = reader.parser.problem ? reader.parser.problem : "it is no YAML";
    return false;
}
