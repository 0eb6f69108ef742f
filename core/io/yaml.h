// YAML texts as the events of JSON: configurations. The module lunaria_yaml (yaml_module.cpp) reads them by libyaml and
// is opened at the first use. Read are one document of maps, lists, texts, numbers, true, false and null (YAML 1.2's
// core schema); anchors, aliases and tags are refused, so that a short text cannot stand for a long one, and no key may
// come twice.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/io/json.h"

namespace lunaria {

// Parts of a YAML text in their order.
class YamlParts {
  public:
    virtual ~YamlParts() = default;
    virtual void scalar(std::string_view text, bool is_plain, size_t line) = 0;
    virtual void begin(bool is_map, size_t line) = 0;
    virtual void end() = 0;
};

// What the module defines. False where the text is no YAML: `problem` says why, `line` where, from 1.
inline constexpr const char* kReadYaml = "lunaria_yaml";
using ReadYaml = bool (*)(std::string_view text, YamlParts& parts, std::string& problem, size_t& line);

// The lines of keys, for errors about what they hold.
class YamlLines {
  public:
    virtual ~YamlLines() = default;
    // A key of a map stands in a line; `path`: the keys that lead to it, with dots in between.
    virtual void at(const std::string& path, size_t line) = 0;
};

// `name`: of the text, for errors. Throws a file_error with the line where it is not a YAML text as above.
void read_yaml(std::string_view text, std::string_view name, JsonEvents& events, YamlLines* lines = nullptr);
void read_yaml(std::string_view text, std::string_view name, JsonEvents& events, YamlLines* lines, ReadYaml reader);

}  // namespace lunaria
