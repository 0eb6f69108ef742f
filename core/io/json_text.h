// JSON as text, for answers with many numbers. Numbers that JSON lacks are the texts "NaN", "Infinity" and "-Infinity".
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace lunaria {

class JsonText {
  public:
    JsonText& open(char bracket) {
        separate();
        text_ += bracket;
        return *this;
    }
    JsonText& close(char bracket) {
        text_ += bracket;
        return *this;
    }
    JsonText& key(std::string_view name) {
        string(name);
        text_ += ':';
        return *this;
    }
    JsonText& string(std::string_view text);
    // JSON that is text already.
    JsonText& raw(std::string_view json) {
        separate();
        text_ += json;
        return *this;
    }
    JsonText& boolean(bool value) { return raw(value ? "true" : "false"); }
    template <class T>
    JsonText& number(T value) {
        if constexpr (std::is_floating_point_v<T>)
            if (!std::isfinite(value)) return string(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        separate();
        char digits[40];
        text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
        return *this;
    }
    // "name": [one(element), ...] for the elements of a list.
    template <class List, class One>
    JsonText& numbers(std::string_view name, const List& list, One one) {
        key(name).open('[');
        for (const auto& element : list) number(one(element));
        return close(']');
    }

    const std::string& text() const { return text_; }
    std::string take() { return std::move(text_); }

  private:
    void separate() {
        // A text ends in a quote: such a mark at the end is JSON's own.
        if (!text_.empty() && std::string_view("{[:,").find(text_.back()) == std::string_view::npos) text_ += ',';
    }
    std::string text_;
};

}  // namespace lunaria
