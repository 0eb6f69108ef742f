// JSON texts: reading as events, so that no tree is built in between; writing of strings and numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lunaria {

// The events that a reader receives, in the order of the text.
class JsonEvents {
  public:
    virtual ~JsonEvents() = default;
    virtual void null() = 0;
    virtual void boolean(bool value) = 0;
    virtual void integer(int64_t value) = 0;  // an integer that does not fit comes as a number
    virtual void number(double value) = 0;
    virtual void string(const std::string& value) = 0;
    virtual void begin_object() = 0;
    virtual void key(const std::string& name) = 0;
    virtual void end_object() = 0;
    virtual void begin_array() = 0;
    virtual void end_array() = 0;
};

// Reads one JSON value that fills the text. Throws value_error with line and column when the text is not one, or when
// it is nested deeper than `max_depth`.
void read_json(std::string_view text, JsonEvents& events, int max_depth = 200);

// The text in quotes. Throws value_error when it is not UTF-8.
std::string json_string(std::string_view text);

// The shortest text that reads back as the same number and shows that the number is not an integer: 1.0, 0.1, 1e+300.
std::string json_number(double value);

}  // namespace lunaria
