#include "core/data/text/tokenizer/aligned.h"

#include <algorithm>

#include "core/base/error.h"

namespace lunaria::text {

Aligned::Aligned(std::string_view where, std::string_view text) : text_(text), places_(text.size()) {
    for (const Character& c : characters(where, text))
        std::fill(places_.begin() + c.begin, places_.begin() + c.end, Place{c.begin, c.end});
}

Place Aligned::place(size_t begin, size_t end) const {
    if (places_.empty()) return {0, 0};
    // Pieces whose prefixes count as bytes may reach beyond the text.
    begin = std::min(begin, places_.size());
    end = std::min(end, places_.size());
    if (begin >= end) {
        const uint32_t at = begin < places_.size() ? places_[begin].begin : places_.back().end;
        return {at, at};
    }
    return {places_[begin].begin, std::max(places_[begin].begin, places_[end - 1].end)};
}

namespace {

// A file may ask for texts that grow with every step.
void check_growth(size_t before, size_t after) {
    constexpr size_t kMost = 1 << 24, kTimes = 4;
    if (after > std::max(kMost, kTimes * before))
        throw value_error("Tokenizer", str("a text of ", before, " bytes grows to ", after, " when it is normalized"));
}

}  // namespace

Aligned Aligned::slice(size_t begin, size_t end) const {
    Aligned part;
    part.text_ = text_.substr(begin, end - begin);
    part.places_.assign(places_.begin() + static_cast<std::ptrdiff_t>(begin),
                        places_.begin() + static_cast<std::ptrdiff_t>(end));
    return part;
}

void Aligned::transform(const std::vector<Change>& list, size_t removed) { transform(0, text_.size(), list, removed); }

void Aligned::transform(size_t begin, size_t end, const std::vector<Change>& list, size_t removed) {
    const auto size_at = [&](size_t at) -> size_t {
        const auto first = static_cast<unsigned char>(text_[at]);
        return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    };
    size_t at = begin;
    const auto skip = [&](size_t count) {
        for (; count > 0 && at < end; --count) at += size_at(at);
    };
    skip(removed);
    std::string made;
    std::vector<Place> places;
    for (const Change& c : list) {
        Place place{0, 0};
        if (c.change > 0)
            place = at > 0 ? places_[at - 1] : place;
        else if (at < places_.size())
            place = places_[at];
        if (c.change <= 0) skip(static_cast<size_t>(1 - c.change));
        const std::string bytes = utf8_of(c.code);
        made += bytes;
        places.insert(places.end(), bytes.size(), place);
    }
    check_growth(text_.size(), text_.size() + made.size());
    text_.replace(begin, end - begin, made);
    const auto first = places_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto rest = places_.erase(first, first + static_cast<std::ptrdiff_t>(end - begin));
    places_.insert(rest, places.begin(), places.end());
}

void Aligned::prepend(std::string_view text) {
    if (text_.empty()) return;
    std::vector<Change> list;
    for (const Character& c : characters("Tokenizer", text)) list.push_back({c.code, list.empty() ? 0 : 1});
    if (list.empty()) return;
    const Character next = letters().front();
    list.push_back({next.code, 1});
    transform(0, next.end, list, 0);
}

void Aligned::replace(const std::vector<Match>& all, std::string_view content) {
    std::string made;
    std::vector<Place> places;
    for (const Match& match : all) {
        check_growth(text_.size(), made.size());
        if (match.is_match) {
            made += content;
            places.insert(places.end(), content.size(), match.end > 0 ? places_[match.end - 1] : Place{0, 0});
        } else {
            made.append(text_, match.begin, match.end - match.begin);
            places.insert(places.end(), places_.begin() + static_cast<std::ptrdiff_t>(match.begin),
                          places_.begin() + static_cast<std::ptrdiff_t>(match.end));
        }
    }
    text_ = std::move(made);
    places_ = std::move(places);
}

namespace {

// How many bytes at `at` belong to one character, or to the longest beginning of one; `whole` says which.
size_t prefix_at(std::string_view bytes, size_t at, bool& whole) {
    const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
    const unsigned first = byte(at);
    whole = first < 0x80;
    if (first < 0xC2 || first > 0xF4) return 1;
    const size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    // Surrogates, over-long forms and numbers beyond U+10FFFF show in the second byte.
    const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < size; ++i) {
        const unsigned next = byte(at + i);
        if (next < (i == 1 ? least : 0x80) || next > (i == 1 ? most : 0xBF)) return i;
    }
    whole = true;
    return size;
}

}  // namespace

std::string repaired(std::string_view bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
        bool whole = false;
        const size_t size = prefix_at(bytes, at, whole);
        if (whole)
            text += bytes.substr(at, size);
        else
            text += "\xEF\xBF\xBD";
        at += size;
    }
    return text;
}

}  // namespace lunaria::text
