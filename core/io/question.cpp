#include "core/io/question.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/json_text.h"

namespace lunaria {

Question Question::below(size_t parts) const {
    Question question = *this;
    question.path.erase(question.path.begin(),
                        question.path.begin() + static_cast<ptrdiff_t>(std::min(parts, path.size())));
    return question;
}

std::optional<std::string> Question::parameter(std::string_view name) const {
    const auto found = parameters.lower_bound(name);
    return found == parameters.end() || found->first != name ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Question::all(std::string_view name) const {
    std::vector<std::string> values;
    const auto [first, last] = parameters.equal_range(name);
    for (auto at = first; at != last; ++at) values.push_back(at->second);
    return values;
}

double Question::number(std::string_view name, double missing) const {
    const auto text = parameter(name);
    if (!text || text->empty()) return missing;
    double value = 0;
    const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (problem != std::errc() || end != text->data() + text->size())
        throw Refusal{400, str(name, " must be a number, got '", *text, "'")};
    return value;
}

int64_t Question::integer(std::string_view name, int64_t missing, int64_t least, int64_t most) const {
    const auto text = parameter(name);
    if (!text || text->empty()) return missing;
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (problem != std::errc() || end != text->data() + text->size() || value < least || value > most)
        throw Refusal{400, str(name, " must be a whole number from ", least, " to ", most, ", got '", *text, "'")};
    return value;
}

Answer json_answer(std::string text, int status) {
    Answer answer;
    answer.status = status;
    answer.type = "application/json; charset=utf-8";
    answer.body = std::move(text);
    return answer;
}

Answer error_answer(int status, std::string_view sentence) {
    JsonText json;
    json.open('{').key("error").string(sentence).close('}');
    return json_answer(json.take(), status);
}

}  // namespace lunaria
