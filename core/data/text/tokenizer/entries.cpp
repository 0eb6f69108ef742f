// Reading of the entries of tokenizer.json.
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

using nlohmann::json;

std::string type_of(const json& entry) {
    const auto type = entry.is_object() ? entry.find("type") : entry.end();
    if (!entry.is_object() || type == entry.end() || !type->is_string())
        throw value_error(kTokenizer, "the file has an entry without a type where a part of the tokenizer is expected");
    return type->get<std::string>();
}

void fail_entry(const json& entry, std::string_view problem) {
    const std::string type = entry.is_object() && entry.contains("type") ? type_of(entry) : "an entry";
    throw value_error(kTokenizer, str(type, " of the file: ", problem));
}

bool flag_of(const json& entry, const char* name, bool missing) {
    const auto it = entry.find(name);
    if (it == entry.end() || it->is_null()) return missing;
    if (!it->is_boolean()) fail_entry(entry, str(name, " must be true or false"));
    return it->get<bool>();
}

std::string text_of(const json& entry, const char* name) {
    const auto it = entry.find(name);
    if (it == entry.end() || !it->is_string()) fail_entry(entry, str(name, " must be a text"));
    return it->get<std::string>();
}

int64_t integer_of(const json& entry, const char* name) {
    const auto it = entry.find(name);
    if (it == entry.end() || !it->is_number_integer()) fail_entry(entry, str(name, " must be an integer"));
    return it->get<int64_t>();
}

}  // namespace lunaria::text
