// A host without a language: tables in memory, so that the virtual machine and the transform are tested with texts of
// the IR alone (core/ir/printer.h has their form).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/parser.h"
#include "jit/vm/host.h"
#include "jit/vm/machine.h"

namespace lunaria::testing {

// What raise() carries through C++.
struct Raised {
    Value value;
};

class TextHost final : public vm::Host {
  public:
    struct Table final : Object {
        std::vector<std::pair<Value, Value>> fields;
        Value metatable;
    };

    // A table with those fields; its metatable, if any, is another one.
    static Value table(std::vector<std::pair<Value, Value>> fields, Value metatable = {});
    int lines = 0;  // how many stop points began a line

    vm::Callee resolve(const Value& f) override;
    const Op* operator_in(const Value& f) override { return vm::operator_of(f); }
    vm::Field find_field(const Value& object, const Value& key) override;
    vm::Field find_new_field(const Value& object, const Value& key) override;
    Value metamethod(const Value& a, const Value& b, std::string_view event) override;
    const Op* tensor_operator(std::string_view primitive) override;
    Value index(const Value& object, const Value& key) override;
    void set_index(const Value& object, const Value& key, const Value& value) override;
    vm::Values call(const Value& f, std::span<const Value> args) override;
    Value arithmetic(std::string_view primitive, const Value& a, const Value& b) override;
    bool compare(std::string_view primitive, const Value& a, const Value& b) override;
    Value concat(const Value& a, const Value& b) override;
    Value length(const Value& a) override;
    Value new_table(size_t array, size_t fields) override;
    Value raw_get(const Value& table, const Value& key) override;
    void raw_set(const Value& table, const Value& key, const Value& value) override;
    bool is_table(const Value& v) override;
    bool is_function(const Value& v) override;
    std::string describe(const Value& v) override { return to_string(v); }
    bool is_harmless(const Value&) override { return false; }
    bool gives_keys(const Value&) override { return false; }
    Value stand_in(const Value&) override { return {}; }
    bool holds_floats(const Value&) override { return true; }
    std::string why_opaque(const Value&) override { return "it is not in the text"; }
    Bound bind(const Op& op, std::span<const Value> args) override;
    Part part_of(const Value& tensor, const Value& key) override;
    bool is_part(const Value&) override { return false; }
    Part put_part(const Value& tensor, const Value& key, const Value& value) override;
    void for_each_table(const Value& table, const std::function<void(const Value&)>& f) override;
    Protected call_protected(const std::function<void()>& body) override;
    [[noreturn]] void raise(const Value& error) override;
    void poll() override {}
    void at_line() override { ++lines; }
};

// A text of the IR as a function that runs.
class TextProgram {
  public:
    // The first graph of the text is the function. Throws what the parser and the verifier throw.
    explicit TextProgram(std::string_view text);

    std::vector<Value> run(std::span<const Value> args);
    std::vector<Value> run(std::initializer_list<Value> args) { return run(std::span(args.begin(), args.size())); }
    // The first result and its derivative by the argument at `position`.
    std::pair<Value, Value> gradient(std::initializer_list<Value> args, int64_t position = 0);
    // The derivative of that derivative by the same argument.
    Value second_derivative(std::initializer_list<Value> args, int64_t position = 0);
    // The message of the error that it raises, with its place; "no error".
    std::string error(std::initializer_list<Value> args);

    const ir::Graph& graph() const { return *parsed_.graph; }
    Value function() const;
    TextHost& host() { return host_; }

  private:
    ir::ParsedGraph parsed_;
    TextHost host_;
    vm::Machine machine_{host_};
};

// A function of the machine as a value: vm::pcall_function() and its like.
Value function_value(const vm::OperatorFunction& f);

}  // namespace lunaria::testing
