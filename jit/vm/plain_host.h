// A host without an interpreter: tables in memory, and functions written in C++. Programs that are graphs of the IR,
// such as saved ones, run in it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/interrupt.h"
#include "jit/vm/host.h"
#include "jit/vm/machine.h"
#include "jit/vm/native.h"
#include "jit/vm/tensor_parts.h"

namespace lunaria::vm {

// The exception of raise().
struct Raised {
    Value value;
};

class PlainHost final : public Host {
  public:
    class Table final : public Circular {
      public:
        Table() { search_from_here(); }
        Value get(const Value& key) const;
        // A value of nil removes the key.
        void set(const Value& key, Value value);
        // The next key, in the order of insertion; nil: there is none. After nil: the first.
        Value next(const Value& key) const;
        // The length of the list that begins at 1.
        int64_t length() const;
        // Moves all of another table here, replacing the content.
        void take(Table& other);
        void for_each(const std::function<void(const Value& key, const Value& value)>& f) const;
        void for_each_owned(const std::function<void(const Value&)>& f) const override;
        Value metatable;

      private:
        void empty() override;
        std::vector<std::pair<Value, Value>> fields_;  // also those that were taken out
        std::unordered_map<Value, size_t, KeyHash, KeyEqual> places_;
        size_t gone_ = 0;
    };
    // A function of the outside.
    class Function final : public Object {
      public:
        using Body = std::function<Values(std::span<const Value> args)>;
        Function(std::string name, Native native, Body body)
            : name(std::move(name)), native(native), body(std::move(body)) {}
        const std::string name;
        const Native native;  // the treatment in a recording
        const Body body;
    };

    // A table with these fields; its metatable, if any, is another table.
    static Value table(std::vector<std::pair<Value, Value>> fields, Value metatable = {});
    static Value function(std::string name, Native native, Function::Body body);
    // An operator whose arguments are spelled as in a call of the language; vm::operator_value() takes them complete,
    // in the order of the signature.
    static Value operator_value(const Op& op);
    static std::string type_name(const Value& v);
    static bool is_callable(const Value& v);

    // What the machine runs in place of a function of the outside, where the arguments are of these kinds
    // (Callee::takes).
    void replace(const Value& f, const Value& by, std::string_view kinds);
    // What stands for a function of the outside or an operator that writes, where a derivative is followed through it.
    void set_stand_in(const Value& f, const Value& by);
    void set_harmless(const Value& f) { harmless_.insert(identity_of(f)); }
    // Methods of tensors by their names; nil: there is none.
    std::function<Value(std::string_view name)> method;
    // The metatables of tensors' shapes and of texts; nil: none.
    Value shape_metatable, text_metatable;
    int lines = 0;  // how many stop points began a line

    Callee resolve(const Value& f) override;
    const Op* operator_in(const Value& f) override;
    Field find_field(const Value& object, const Value& key) override;
    Field find_new_field(const Value& object, const Value& key) override;
    // Follows the metatables from object[key] on, for reading (__index) or writing (__newindex).
    Field follow_chain(const Value& object, const Value& key, std::string_view event);
    Value metamethod(const Value& a, const Value& b, std::string_view event) override;
    Value index(const Value& object, const Value& key) override;
    void set_index(const Value& object, const Value& key, const Value& value) override;
    Values call(const Value& f, std::span<const Value> args) override;
    Value arithmetic(const Op& primitive, const Value& a, const Value& b) override;
    bool compare(const Op& primitive, const Value& a, const Value& b) override;
    Value concat(const Value& a, const Value& b) override;
    Value length(const Value& a) override;
    Value new_table(size_t array, size_t fields) override;
    Value raw_get(const Value& table, const Value& key) override;
    void raw_set(const Value& table, const Value& key, const Value& value) override;
    bool is_table(const Value& v) override;
    bool is_function(const Value& v) override;
    std::string describe(const Value& v) override;
    bool is_harmless(const Value& f) override { return harmless_.contains(identity_of(f)); }
    bool gives_keys(const Value& f) override;
    Value stand_in(const Value& f) override;
    bool holds_floats(const Value& table) override;
    std::string why_opaque(const Value&) override { return "it is not a part of the program"; }
    Bound bind(const Op& op, std::span<const Value> args) override;
    Part part_of(const Value& tensor, const Value& key) override;
    bool is_part(const Value& text) override { return is_slice_text(text.string()); }
    Part put_part(const Value& tensor, const Value& key, const Value& value) override;
    void for_each_table(const Value& table, const std::function<void(const Value&)>& f) override;
    Protected call_protected(const std::function<void()>& body) override;
    [[noreturn]] void raise(const Value& error) override;
    void poll() override { poll_interrupt(); }
    void at_line() override { ++lines; }

  private:
    struct Replacement {
        Value original, by;
        std::string_view kinds;
    };
    std::unordered_map<const void*, Replacement> replacements_;
    std::unordered_map<const void*, Value> stand_ins_;  // of functions
    std::unordered_map<const Op*, Value> operator_stand_ins_;
    std::unordered_set<const void*> harmless_;
    std::unordered_map<std::string, Value> methods_;  // that were asked for
    TensorParts parts_;
};

}  // namespace lunaria::vm
