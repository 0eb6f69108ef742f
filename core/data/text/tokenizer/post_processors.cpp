// Post-processors: special tokens around a text and between the two of a pair, places without spaces.
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

namespace {

using nlohmann::json;

// One step of a template: a text (0 or 1), or tokens; and the type of what it gives.
struct Step {
    int text = -1;
    std::vector<std::pair<int, std::string>> tokens;
    int type = 0;
};
using Steps = std::vector<Step>;

Steps steps_of(const json& entry, const char* name, const json& specials) {
    Steps list;
    if (!entry.contains(name) || !entry[name].is_array()) fail_entry(entry, str(name, " must be a list"));
    for (const json& item : entry[name]) {
        const bool is_text = item.is_object() && item.contains("Sequence");
        if (!is_text && !(item.is_object() && item.contains("SpecialToken")))
            fail_entry(entry, str(name, " has an item that is neither Sequence nor SpecialToken"));
        const json& inner = item[is_text ? "Sequence" : "SpecialToken"];
        Step step;
        step.type = static_cast<int>(integer_of(inner, "type_id"));
        const std::string id = text_of(inner, "id");
        if (is_text) {
            step.text = id == "B" ? 1 : 0;
        } else {
            if (!specials.is_object() || !specials.contains(id))
                fail_entry(entry, str("special_tokens lacks '", id, "'"));
            const json ids = specials[id].value("ids", json()), tokens = specials[id].value("tokens", json());
            const std::string problem = str("special_tokens['", id, "'] needs ids and tokens");
            if (!ids.is_array() || !tokens.is_array() || ids.size() != tokens.size()) fail_entry(entry, problem);
            for (size_t i = 0; i < ids.size(); ++i) {
                if (!ids[i].is_number_integer() || !tokens[i].is_string()) fail_entry(entry, problem);
                step.tokens.emplace_back(ids[i].get<int>(), tokens[i].get<std::string>());
            }
        }
        list.push_back(std::move(step));
    }
    return list;
}

size_t added(const Steps& steps) {
    size_t count = 0;
    for (const Step& step : steps) count += step.tokens.size();
    return count;
}

PostProcessor by_template(Steps single, Steps pair) {
    PostProcessor made;
    made.added_to_single = added(single);
    made.added_to_pair = added(pair);
    made.process = [single = std::move(single), pair = std::move(pair)](Encoding first, Encoding* second,
                                                                        bool special) {
        Encoding all;
        for (const Step& step : second ? pair : single) {
            if (step.text < 0) {
                for (const auto& [number, token] : step.tokens)
                    if (special) all.push(number, token, {0, 0}, step.type, true);
                continue;
            }
            Encoding& text = step.text == 1 && second ? *second : first;
            std::ranges::fill(text.types, step.type);
            all.append(text);
        }
        return all;
    };
    return made;
}

Step text_step(int text, int type) { return {text, {}, type}; }

std::pair<int, std::string> token_of(const json& entry, const char* name) {
    const auto it = entry.find(name);
    if (it == entry.end() || !it->is_array() || it->size() != 2 || !(*it)[0].is_string() ||
        !(*it)[1].is_number_integer())
        fail_entry(entry, str(name, " must be a token and its number"));
    return {(*it)[1].get<int>(), (*it)[0].get<std::string>()};
}

PostProcessor from_template(const json& entry) {
    const json specials = entry.value("special_tokens", json::object());
    return by_template(steps_of(entry, "single", specials), steps_of(entry, "pair", specials));
}

PostProcessor add_bert(const json& entry) {
    const Step cls{-1, {token_of(entry, "cls")}, 0}, sep{-1, {token_of(entry, "sep")}, 0};
    Step last = sep;
    last.type = 1;
    return by_template({cls, text_step(0, 0), sep}, {cls, text_step(0, 0), sep, text_step(1, 1), last});
}

// Takes the spaces that byte-level tokens have at their ends off their places.
void trim(Encoding& text, bool prefix) {
    for (size_t i = 0; i < text.tokens.size(); ++i) {
        const std::vector<Character> letters = characters(kTokenizer, text.tokens[i]);
        constexpr int32_t kSpace = 0x120;
        const auto is_blank = [](const Character& c) { return c.code == kSpace || is_space(c.code); };
        size_t left = 0, right = 0;
        while (left < letters.size() && is_blank(letters[left])) ++left;
        while (right < letters.size() && is_blank(letters[letters.size() - 1 - right])) ++right;
        Place& place = text.places[i];
        // The one space that was put before the text is in none of its places.
        if (prefix && left == 1 && (i == 0 || place.begin == 0)) left = 0;
        const auto is_inside = [&](uint32_t at) {
            return at < text.source.size() && (static_cast<unsigned char>(text.source[at]) & 0xC0) == 0x80;
        };
        for (; left > 0 && place.begin < place.end; --left) do
                ++place.begin;
            while (place.begin < place.end && is_inside(place.begin));
        for (; right > 0 && place.end > place.begin; --right) do
                --place.end;
            while (place.end > place.begin && is_inside(place.end));
    }
}

PostProcessor trimming(const json& entry, PostProcessor then) {
    if (!flag_of(entry, "trim_offsets", true)) return then;
    const bool prefix = flag_of(entry, "add_prefix_space", true);
    PostProcessor made = then;
    made.process = [prefix, then = std::move(then.process)](Encoding first, Encoding* second, bool special) {
        trim(first, prefix);
        if (second) trim(*second, prefix);
        return then(std::move(first), second, special);
    };
    return made;
}

PostProcessor roberta(const json& entry) {
    const Step cls{-1, {token_of(entry, "cls")}, 0}, sep{-1, {token_of(entry, "sep")}, 0};
    return trimming(entry,
                    by_template({cls, text_step(0, 0), sep}, {cls, text_step(0, 0), sep, sep, text_step(1, 0), sep}));
}

PostProcessor plain() { return by_template({text_step(0, 0)}, {text_step(0, 0), text_step(1, 1)}); }

PostProcessor add_sequence(const json& entry) {
    if (!entry.contains("processors") || !entry["processors"].is_array())
        fail_entry(entry, "processors must be a list");
    // Those of ByteLevel change places only; one of the others adds tokens.
    PostProcessor last = plain();
    bool adds = false;
    std::vector<const json*> trims;
    for (const json& one : entry["processors"]) {
        if (type_of(one) == "ByteLevel" && !adds) {
            trims.push_back(&one);
            continue;
        }
        if (adds) fail_entry(entry, str(type_of(one), " after a processor that adds tokens is not supported"));
        last = post_processor_of(one);
        adds = true;
    }
    for (auto one = trims.rbegin(); one != trims.rend(); ++one) last = trimming(**one, std::move(last));
    return last;
}

}  // namespace

void Encoding::push(int number, std::string token, Place place, int type, bool is_special) {
    numbers.push_back(number);
    tokens.push_back(std::move(token));
    places.push_back(place);
    types.push_back(type);
    special.push_back(is_special);
}

void Encoding::append(const Encoding& other) {
    for (size_t i = 0; i < other.numbers.size(); ++i)
        push(other.numbers[i], other.tokens[i], other.places[i], other.types[i], other.special[i]);
}

PostProcessor post_processor_of(const json& entry) {
    if (entry.is_null()) return plain();
    const std::string type = type_of(entry);
    if (type == "TemplateProcessing") return from_template(entry);
    if (type == "BertProcessing") return add_bert(entry);
    if (type == "RobertaProcessing") return roberta(entry);
    if (type == "ByteLevel") return trimming(entry, plain());
    if (type == "Sequence") return add_sequence(entry);
    throw value_error(kTokenizer, str("the post-processor '", type, "' is not supported"));
}

}  // namespace lunaria::text
