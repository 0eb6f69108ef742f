// Errors that users see. A message names the place (the name that the user typed), the problem with its values, and the
// remedy. The interpreter adds the Lua file and line, at the one place where an exception becomes a Lua error.
#pragma once

#include <exception>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lunaria {

enum class ErrorKind { value, shape, dtype, index, argument, memory, file, syntax, state, interrupt, arithmetic };

// A mistake of the user or a failure of the machine. `where` is the operator, function or file concerned; `what()` is
// "where: message" with the hint, if any, on a second line.
class Error : public std::exception {
  public:
    Error(ErrorKind kind, std::string_view where, std::string_view message);

    // Adds the line "  hint: ..." and returns the error, so that it can be thrown in one expression.
    Error hint(std::string_view text) const;
    // The same error at a known place of the user's text ("file:line"), for code that Lua itself does not run.
    Error at(std::string_view place) const {
        Error e = *this;
        e.place_ = place;
        return e;
    }
    const std::string& place() const { return place_; }
    ErrorKind kind() const { return kind_; }
    const std::string& where() const { return where_; }
    const std::string& message() const { return message_; }
    const char* what() const noexcept override { return full_.c_str(); }

  private:
    void compose();
    ErrorKind kind_;
    std::string where_, message_, hint_, full_, place_;
};

inline Error value_error(std::string_view where, std::string_view message) {
    return {ErrorKind::value, where, message};
}
inline Error shape_error(std::string_view where, std::string_view message) {
    return {ErrorKind::shape, where, message};
}
inline Error dtype_error(std::string_view where, std::string_view message) {
    return {ErrorKind::dtype, where, message};
}
inline Error index_error(std::string_view where, std::string_view message) {
    return {ErrorKind::index, where, message};
}
inline Error argument_error(std::string_view where, std::string_view message) {
    return {ErrorKind::argument, where, message};
}
inline Error memory_error(std::string_view where, std::string_view message) {
    return {ErrorKind::memory, where, message};
}
inline Error file_error(std::string_view where, std::string_view message) { return {ErrorKind::file, where, message}; }
inline Error state_error(std::string_view where, std::string_view message) {
    return {ErrorKind::state, where, message};
}

// One printable value of a message: its address, and the function that prints what lies there. One function for each
// type, and none for each message, is what keeps thousands of messages small.
struct MessagePart {
    const void* value;
    void (*print)(std::ostream& out, const void* value);
};

template <class T>
void print_value(std::ostream& out, const void* value) {
    out << *static_cast<const T*>(value);
}
void print_text(std::ostream& out, const void* characters);

inline MessagePart message_part(const char* text) { return {text, print_text}; }
template <class T>
requires(!std::is_convertible_v<const T&, const char*>) MessagePart message_part(const T& value) {
    return {std::addressof(value), print_value<T>};
}

std::string joined(std::initializer_list<MessagePart> parts);

// Joins anything printable into one string: str("axis ", axis, " is out of range").
template <class... Parts>
std::string str(const Parts&... parts) {
    return joined({message_part(parts)...});
}

}  // namespace lunaria
