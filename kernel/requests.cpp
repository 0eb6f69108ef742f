#include "kernel/requests.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace lunaria::jupyter {

namespace {

using nlohmann::json;

enum class Kind { text, boolean, integer, object, texts_by_name };

struct Field {
    const char* name;
    Kind kind;
    json fallback;  // null: there is none, the field must be there
};

const std::map<std::string, std::vector<Field>>& fields() {
    static const std::map<std::string, std::vector<Field>> all = {
        {"execute_request",
         {{"code", Kind::text, nullptr},
          {"silent", Kind::boolean, false},
          {"store_history", Kind::boolean, true},
          {"user_expressions", Kind::texts_by_name, json::object()},
          {"allow_stdin", Kind::boolean, true},
          {"stop_on_error", Kind::boolean, true}}},
        {"complete_request", {{"code", Kind::text, nullptr}, {"cursor_pos", Kind::integer, -1}}},
        {"inspect_request",
         {{"code", Kind::text, nullptr}, {"cursor_pos", Kind::integer, -1}, {"detail_level", Kind::integer, 0}}},
        {"is_complete_request", {{"code", Kind::text, nullptr}}},
        {"history_request",
         {{"hist_access_type", Kind::text, "tail"},
          {"output", Kind::boolean, false},
          {"raw", Kind::boolean, true},
          {"session", Kind::integer, 0},
          {"start", Kind::integer, 1},
          {"stop", Kind::integer, std::numeric_limits<int>::max()},
          {"n", Kind::integer, std::numeric_limits<int>::max()},
          {"pattern", Kind::text, "*"},
          {"unique", Kind::boolean, false}}},
        {"kernel_info_request", {}},
        {"comm_info_request", {{"target_name", Kind::text, ""}}},
        {"comm_open",
         {{"comm_id", Kind::text, nullptr},
          {"target_name", Kind::text, nullptr},
          {"data", Kind::object, json::object()}}},
        {"comm_msg", {{"comm_id", Kind::text, nullptr}, {"data", Kind::object, json::object()}}},
        {"comm_close", {{"comm_id", Kind::text, nullptr}, {"data", Kind::object, json::object()}}},
        {"shutdown_request", {{"restart", Kind::boolean, false}}},
        {"interrupt_request", {}},
        {"input_reply", {{"value", Kind::text, nullptr}}},
        {"create_subshell_request", {}},
        {"list_subshell_request", {}},
        {"delete_subshell_request", {{"subshell_id", Kind::text, nullptr}}},
        {"usage_request", {}},
        {"debug_request", {}},
    };
    return all;
}

const char* name_of(Kind kind) {
    static constexpr const char* kNames[] = {"a string", "a boolean", "an integer", "an object",
                                             "an object of strings"};
    return kNames[static_cast<size_t>(kind)];
}

bool fits(const json& value, Kind kind) {
    switch (kind) {
        case Kind::text:
            return value.is_string();
        case Kind::boolean:
            return value.is_boolean();
        case Kind::integer:
            // Numbers beyond 64 bits are read as floating point.
            return value.is_number_integer() || (value.is_number() && std::abs(value.get<double>()) >= 0x1p63);
        case Kind::object:
            return value.is_object();
        case Kind::texts_by_name:
            return value.is_object() && std::ranges::all_of(value, [](const json& v) { return v.is_string(); });
    }
    return false;
}

int clamped(const json& value) {
    constexpr int64_t kLowest = std::numeric_limits<int>::min(), kHighest = std::numeric_limits<int>::max();
    if (value.is_number_float()) return value.get<double>() < 0 ? kLowest : kHighest;
    if (value.is_number_unsigned())
        return static_cast<int>(std::min<uint64_t>(value.get<uint64_t>(), static_cast<uint64_t>(kHighest)));
    return static_cast<int>(std::clamp(value.get<int64_t>(), kLowest, kHighest));
}

}  // namespace

bool is_request(const std::string& type) { return fields().contains(type) && type != "input_reply"; }

std::optional<std::string> complete_content(const std::string& type, json& content) {
    const auto known = fields().find(type);
    if (known == fields().end()) return "messages of type " + type + " are not known";
    if (!content.is_object()) return "the content of " + type + " is no JSON object in UTF-8, or nested too deeply";
    for (const Field& field : known->second) {
        json& value = content[field.name];
        if (value.is_null()) {
            if (field.fallback.is_null()) return type + " has no " + field.name;
            value = field.fallback;
        } else if (!fits(value, field.kind)) {
            return std::string(field.name) + " of " + type + " must be " + name_of(field.kind) + ", got " +
                   value.type_name();
        } else if (field.kind == Kind::integer) {
            value = clamped(value);
        }
    }
    return std::nullopt;
}

std::string reply_type(const std::string& type) {
    constexpr std::string_view kEnd = "_request";
    if (!type.ends_with(kEnd)) return "";
    return type.substr(0, type.size() - kEnd.size()) + "_reply";
}

}  // namespace lunaria::jupyter
