#include "core/io/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/base/own_library.h"
#include "core/io/protobuf.h"

namespace lunaria {

namespace {

constexpr size_t kMostBytes = 1 << 20, kMostDepth = 32;

// Parts as events: keys of maps, types of plain scalars.
class Events final : public YamlParts {
  public:
    Events(std::string_view name, JsonEvents& events, YamlLines* lines) : name_(name), events_(events), lines_(lines) {}

    void scalar(std::string_view text, bool is_plain, size_t line) override {
        if (!is_utf8(text)) fail(line, "a text is not UTF-8");
        if (!open_.empty() && open_.back().is_map && open_.back().wants_key) return key(std::string(text), line);
        value(text, is_plain);
        has_value();
    }
    void begin(bool is_map, size_t line) override {
        if (!open_.empty() && open_.back().is_map && open_.back().wants_key) fail(line, "a key is not a text");
        if (open_.size() == kMostDepth) fail(line, str("it is nested more than ", kMostDepth, " times"));
        open_.push_back({is_map, is_map, {}, path_.size()});
        is_map ? events_.begin_object() : events_.begin_array();
    }
    void end() override {
        path_.resize(open_.back().path);
        open_.back().is_map ? events_.end_object() : events_.end_array();
        open_.pop_back();
        has_value();
    }
    [[noreturn]] void fail(size_t line, std::string_view what) const { throw file_error(str(name_, ":", line), what); }

  private:
    struct Open {
        bool is_map, wants_key;
        std::set<std::string, std::less<>> keys;
        size_t path;  // length of the path outside
    };

    void key(std::string text, size_t line) {
        Open& map = open_.back();
        map.wants_key = false;
        path_.resize(map.path);
        path_ += (path_.empty() ? "" : ".") + text;
        if (lines_) lines_->at(path_, line);
        events_.key(text);
        if (!map.keys.insert(text).second) fail(line, str("the key '", text, "' is there twice"));
    }
    void has_value() {
        if (!open_.empty() && open_.back().is_map) open_.back().wants_key = true;
    }

    void value(std::string_view text, bool is_plain) {
        if (!is_plain) return events_.string(std::string(text));
        if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return events_.null();
        if (text == "true" || text == "True" || text == "TRUE") return events_.boolean(true);
        if (text == "false" || text == "False" || text == "FALSE") return events_.boolean(false);
        if (!number(text)) events_.string(std::string(text));
    }

    // Whether it was a number.
    bool number(std::string_view text) {
        const bool is_negative = text.front() == '-';
        std::string_view digits = text;
        if (is_negative || text.front() == '+') digits.remove_prefix(1);
        if (digits == ".inf" || digits == ".Inf" || digits == ".INF") {
            const double infinity = std::numeric_limits<double>::infinity();
            events_.number(is_negative ? -infinity : infinity);
            return true;
        }
        if (text == ".nan" || text == ".NaN" || text == ".NAN") {
            events_.number(std::numeric_limits<double>::quiet_NaN());
            return true;
        }
        int64_t integer = 0;
        if (text.starts_with("0x") || text.starts_with("0o")) {
            const int base = text[1] == 'x' ? 16 : 8;
            const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + text.size(), integer, base);
            if (problem != std::errc() || end != text.data() + text.size() || text.size() == 2) return false;
            events_.integer(integer);
            return true;
        }
        // from_chars takes no plus sign, but words such as "inf" and "nan".
        if (digits.empty() || !(std::isdigit(static_cast<unsigned char>(digits[0])) || digits[0] == '.')) return false;
        const std::string_view signed_text = is_negative ? text : digits;
        const char* last = signed_text.data() + signed_text.size();
        if (const auto [end, problem] = std::from_chars(signed_text.data(), last, integer);
            problem == std::errc() && end == last) {
            events_.integer(integer);
            return true;
        }
        double real = 0;
        const auto [end, problem] = std::from_chars(signed_text.data(), last, real);
        if (problem != std::errc() || end != last) return false;
        events_.number(real);
        return true;
    }

    const std::string_view name_;
    JsonEvents& events_;
    YamlLines* const lines_;
    std::vector<Open> open_;
    std::string path_;
};

}  // namespace

void read_yaml(std::string_view text, std::string_view name, JsonEvents& events, YamlLines* lines, ReadYaml reader) {
    if (text.size() > kMostBytes)
        throw file_error(name, str("it has ", text.size(), " bytes; a configuration has at most ", kMostBytes));
    Events parts(name, events, lines);
    std::string problem;
    size_t line = 0;
    if (!reader(text, parts, problem, line)) parts.fail(line, problem);
}

void read_yaml(std::string_view text, std::string_view name, JsonEvents& events, YamlLines* lines) {
    std::string problem;
    void* reader = own_library_function("liblunaria_yaml.so", kReadYaml, problem);
    if (!reader)
        throw state_error("yaml", problem)
            .hint("YAML needs libyaml (libyaml-dev) and the target lunaria_yaml; JSON needs neither");
    read_yaml(text, name, events, lines, reinterpret_cast<ReadYaml>(reader));
}

}  // namespace lunaria
