// Functions of Lua's standard library in C++, for programs without an interpreter.
#pragma once

#include "jit/vm/plain_host.h"

namespace lunaria::runtime {

struct LibraryBody {
    const char* library;  // as jit/saving/library_functions.h has it
    const char* name;
    vm::PlainHost::Function::Body body;
    // It has no function among its arguments to call and no metamethod to ask: else the texts do it, and what comes
    // here are the calls that they leave.
    bool whole = true;
};

// math and _G; what needs the library itself is in library.cpp.
std::vector<LibraryBody> basic_functions();
std::vector<LibraryBody> text_functions();   // string
std::vector<LibraryBody> table_functions();  // table
std::vector<LibraryBody> tensor_methods();   // methods of tensors
// What an operator's method such as add_ does where the result does not fit: it throws.
Value in_place_function(const Op& op);

// The arguments of a call, with the messages of Lua for those that are of another type.
class Arguments {
  public:
    Arguments(std::string_view function, std::span<const Value> args) : function_(function), args_(args) {}
    size_t size() const { return args_.size(); }
    const Value& at(size_t i) const;  // nil beyond the last one
    bool has(size_t i) const { return !at(i).is_nil(); }
    // Throws where argument i is missing.
    const Value& any(size_t i) const;
    double number(size_t i) const;
    int64_t integer(size_t i) const;
    int64_t integer(size_t i, int64_t otherwise) const { return has(i) ? integer(i) : otherwise; }
    std::string text(size_t i) const;  // numbers become texts
    vm::PlainHost::Table& table(size_t i) const;
    [[noreturn]] void fail(size_t i, std::string_view what) const;

  private:
    [[noreturn]] void wrong_type(size_t i, std::string_view wanted) const;

    const std::string_view function_;
    const std::span<const Value> args_;
};

// As tostring() has it, without metamethods.
std::string text_of(const Value& v);

}  // namespace lunaria::runtime
