#include "core/io/json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace lunaria {

namespace {

// Passes on nlohmann's events and stops at the first error.
class Adapter final : public nlohmann::json_sax<nlohmann::json> {
  public:
    Adapter(std::string_view text, JsonEvents& events, int max_depth)
        : text_(text), events_(events), max_depth_(max_depth) {}

    bool null() override {
        events_.null();
        return true;
    }
    bool boolean(bool value) override {
        events_.boolean(value);
        return true;
    }
    bool number_integer(number_integer_t value) override {
        events_.integer(value);
        return true;
    }
    bool number_unsigned(number_unsigned_t value) override {
        if (value > static_cast<number_unsigned_t>(INT64_MAX))
            events_.number(static_cast<double>(value));
        else
            events_.integer(static_cast<int64_t>(value));
        return true;
    }
    bool number_float(number_float_t value, const string_t&) override {
        events_.number(value);
        return true;
    }
    bool string(string_t& value) override {
        events_.string(value);
        return true;
    }
    bool binary(binary_t&) override { return false; }
    bool start_object(std::size_t) override {
        enter();
        events_.begin_object();
        return true;
    }
    bool key(string_t& name) override {
        events_.key(name);
        return true;
    }
    bool end_object() override {
        --depth_;
        events_.end_object();
        return true;
    }
    bool start_array(std::size_t) override {
        enter();
        events_.begin_array();
        return true;
    }
    bool end_array() override {
        --depth_;
        events_.end_array();
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) override {
        // nlohmann counts from 1 and points past the text that it has read.
        const std::string_view before = text_.substr(0, std::min(position ? position - 1 : 0, text_.size()));
        const auto line = 1 + std::ranges::count(before, '\n');
        const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
        std::string what = e.what();
        // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …"
        if (const size_t colon = what.find(": "); colon != std::string::npos) what.erase(0, colon + 2);
        // "[json.exception.out_of_range.406] number overflow parsing …"
        if (what.starts_with('[')) what.erase(0, what.find("] ") + 2);
        throw value_error("json", str("line ", line, ", column ", before.size() - start + 1, ": ", what));
    }

  private:
    void enter() {
        if (++depth_ > max_depth_)
            throw value_error("json", str("the text is nested deeper than ", max_depth_, " levels"));
    }

    std::string_view text_;
    JsonEvents& events_;
    int max_depth_, depth_ = 0;
};

}  // namespace

void read_json(std::string_view text, JsonEvents& events, int max_depth) {
    Adapter adapter(text, events, max_depth);
    nlohmann::json::sax_parse(text.begin(), text.end(), &adapter);
}

std::string json_string(std::string_view text) {
    try {
        return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
        throw value_error("json", "a string is not valid UTF-8, which JSON requires");
    }
}

std::string json_number(double value) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, value);
    std::string result(text, end.ptr);
    if (result.find_first_not_of("-0123456789") == std::string::npos) result += ".0";
    return result;
}

}  // namespace lunaria
