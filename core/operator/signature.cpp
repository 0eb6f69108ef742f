#include "core/operator/signature.h"

#include <charconv>
#include <limits>

#include "core/base/error.h"

namespace lunaria {

bool Param::answers_to(std::string_view n) const {
    if (n == name) return true;
    for (auto other : other_names)
        if (n == other) return true;
    return false;
}

int Signature::find(std::string_view param) const {
    for (size_t i = 0; i < params.size(); ++i)
        if (params[i].answers_to(param)) return static_cast<int>(i);
    return -1;
}

namespace {

void skip_spaces(std::string_view& text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool eat(std::string_view& text, std::string_view what) {
    skip_spaces(text);
    if (!text.starts_with(what)) return false;
    text.remove_prefix(what.size());
    return true;
}

std::string_view word(std::string_view& text) {
    skip_spaces(text);
    size_t n = 0;
    while (n < text.size() && detail::word_char(text[n])) ++n;
    std::string_view w = text.substr(0, n);
    text.remove_prefix(n);
    return w;
}

std::string_view quoted(std::string_view& text) {
    eat(text, "\"");
    std::string_view w = text.substr(0, text.find('"'));
    text.remove_prefix(std::min(text.size(), w.size() + 1));
    return w;
}

constexpr std::pair<std::string_view, ArgType> kTypes[] = {
    {"same", ArgType::same},       {"float", ArgType::real},  {"tensor", ArgType::tensor},
    {"index", ArgType::index},     {"mask", ArgType::mask},   {"tensors", ArgType::tensors},
    {"bool", ArgType::boolean},    {"int", ArgType::integer}, {"number", ArgType::number},
    {"string", ArgType::string},   {"dtype", ArgType::dtype}, {"ints", ArgType::ints},
    {"numbers", ArgType::numbers}, {"shape", ArgType::shape}, {"scalar", ArgType::scalar},
    {"any", ArgType::any}};

Param parse_param(std::string_view& text) {
    Param param;
    param.name = word(text);
    while (eat(text, "/")) param.other_names.push_back(word(text));
    eat(text, ":");
    skip_spaces(text);
    if (text.starts_with('"')) {
        param.type = ArgType::string;
        do param.choices.push_back(quoted(text));
        while (eat(text, "|"));
    } else {
        std::string_view type = word(text);
        for (auto [name, t] : kTypes)
            if (name == type) param.type = t;
    }
    param.optional = eat(text, "?");
    if (eat(text, "=")) {
        param.default_value = parse_literal(text);
        param.has_default = true;
        // A default that is the name of a dtype is stored as the dtype.
        if (param.type == ArgType::dtype && param.default_value.kind() == Value::Kind::string)
            if (auto t = parse_dtype(param.default_value.string())) param.default_value = Value(*t);
    }
    if (param.optional) param.has_default = true;
    return param;
}

}  // namespace

Value parse_literal(std::string_view& text) {
    skip_spaces(text);
    if (text.starts_with('"')) return Value(quoted(text));
    if (eat(text, "{")) {
        std::vector<Value> items;
        if (!eat(text, "}")) {
            do items.push_back(parse_literal(text));
            while (eat(text, ","));
            if (!eat(text, "}")) throw argument_error("literal", str("'}' expected near '", text, "'"));
        }
        return Value::list(std::move(items));
    }
    size_t n = 0;
    while (n < text.size() && (detail::word_char(text[n]) || text[n] == '-' || text[n] == '+' || text[n] == '.')) ++n;
    std::string_view w = text.substr(0, n);
    text.remove_prefix(n);
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (w == "nil") return {};
    if (w == "true") return Value(true);
    if (w == "false") return Value(false);
    if (w == "inf") return Value(kInf);
    if (w == "-inf") return Value(-kInf);
    if (w == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
    int64_t integer = 0;
    const char* end = w.data() + w.size();
    if (auto r = std::from_chars(w.data(), end, integer); r.ec == std::errc() && r.ptr == end && !w.empty())
        return Value(integer);
    double number = 0;
    if (auto r = std::from_chars(w.data(), end, number); r.ec == std::errc() && r.ptr == end && !w.empty())
        return Value(number);
    throw argument_error("literal", str("'", w, "' is not a literal"));
}

Signature parse_signature(SignatureText checked) {
    std::string_view text = checked.text;
    Signature s;
    s.text = text;
    s.name = word(text);
    eat(text, "(");
    bool by_name_only = false;
    if (!eat(text, ")")) {
        do {
            if (eat(text, "*")) {
                by_name_only = true;
                continue;
            }
            s.params.push_back(parse_param(text));
            s.params.back().by_name_only = by_name_only;
        } while (eat(text, ","));
        eat(text, ")");
    }
    if (eat(text, "->")) {
        eat(text, "(");
        do s.results.push_back(word(text));
        while (eat(text, ","));
    }
    return s;
}

}  // namespace lunaria
