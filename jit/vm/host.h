// The interface of the virtual machine to the language that it runs in: tables, functions, metamethods.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/ir/graph.h"
#include "jit/language.h"
#include "jit/vm/object.h"

namespace lunaria::vm {

// The result of resolving a called value.
struct Callee {
    enum class Kind : uint8_t { none, op, closure, function, opaque };
    Kind kind = Kind::none;
    const Op* op = nullptr;
    Value closure;                      // a closure; for `function` the host's function itself
    Function* function = nullptr;       // the graph of a host function with known source
    bool intrinsic = false;             // the function is the machine's, not the host's
    bool keeps_caller = false;          // the host keeps the caller's frame, even if the call is not followed
    std::shared_ptr<const void> owner;  // keeps the function's graph alive
    Values captures;                    // its upvalues
    std::vector<Value> prefix;          // arguments before the caller's: the object of a call through its metatable
    // Whether the machine's version of a host function accepts these arguments; null: any. Other arguments go to
    // `otherwise`, or, if that is nil, to the host.
    bool (*takes)(std::string_view kinds, std::span<const Value> args) = nullptr;
    std::string_view kinds;
    Value otherwise;
};

// The most metatables that a chain of __index or __newindex may have.
constexpr int kMostMetatables = 100;

// The place of a field: raw in `holder`, or a call of `method` with the object (and key).
struct Field {
    Value holder, value;
    Value method;
    bool raw = false;
};

class Host {
  public:
    virtual ~Host() = default;

    virtual Callee resolve(const Value& f) = 0;
    // The operator of the host's value f, or null; faster than resolve().
    virtual const Op* operator_in(const Value&) { return nullptr; }
    // The place of object[key]. For objects other than tables `raw` is false and `method` nil: use index().
    virtual Field find_field(const Value& object, const Value& key) = 0;
    virtual Field find_new_field(const Value& object, const Value& key) = 0;
    // The metamethod of an operation on a table or userdata, or nil.
    virtual Value metamethod(const Value& a, const Value& b, std::string_view event) = 0;
    // The operator for arithmetic on tensors, or null.
    virtual const Op* tensor_operator(const Op& primitive) { return lua::facts(primitive).on_tensors; }

    // Operations with the full meaning of the language.
    virtual Value index(const Value& object, const Value& key) = 0;
    virtual void set_index(const Value& object, const Value& key, const Value& value) = 0;
    virtual Values call(const Value& f, std::span<const Value> args) = 0;
    virtual Value arithmetic(const Op& primitive, const Value& a, const Value& b) = 0;
    virtual bool compare(const Op& primitive, const Value& a, const Value& b) = 0;
    virtual Value concat(const Value& a, const Value& b) = 0;
    virtual Value length(const Value& a) = 0;

    virtual Value new_table(size_t array, size_t fields) = 0;
    virtual Value raw_get(const Value& table, const Value& key) = 0;
    virtual void raw_set(const Value& table, const Value& key, const Value& value) = 0;
    virtual bool is_table(const Value& v) = 0;
    virtual bool is_function(const Value& v) = 0;
    // For messages: a type's name, or a function by name and place.
    virtual std::string describe(const Value& v) = 0;
    // Whether an opaque function of the host neither computes with numbers nor keeps or calls anything.
    virtual bool is_harmless(const Value& f) = 0;
    // Whether a harmless function returns keys of its first argument, a table.
    virtual bool gives_keys(const Value& f) = 0;
    // The stand-in for an opaque function with differentiated values in its arguments, for an operator that writes into
    // such values, and for any other operator with such a number among its attributes; or nil.
    virtual Value stand_in(const Value& f) = 0;
    // Whether there are floats or tensors in the table or in tables within it.
    virtual bool holds_floats(const Value& table) = 0;
    // The host's own coroutine, with functions that the machine does not see, which a call of f would resume; nil:
    // none.
    virtual Value resumed_by(const Value&, std::span<const Value>) { return {}; }
    // Whether such a coroutine can reach an object with a shadow in the differentiation, or a value of the machine for
    // which `follows` is true.
    virtual bool reaches(const Value&, const Context&, const std::function<bool(const Value&)>&) { return false; }
    // The reason why resolve() called a function opaque: "it is not written in Lua".
    virtual std::string why_opaque(const Value& f) = 0;

    // The arguments of an operator from those of a call: by name in a trailing table, lists of tensors, separate sizes.
    struct Bound {
        std::vector<Value> args;
        // The source of an argument.
        struct Path {
            size_t argument = 0;  // an argument of the call
            Value name = {};      // a name in the table there; nil: the argument itself
            int64_t item = 0;     // an item, from 1, of the list found so; 0: no list, or all of it
            // The dtype of a number among the tensors of a list, which becomes a tensor; nil: the item is a tensor.
            Value number_as = {};
        };
        // For each parameter: none if it has its default, or is a tensor made from other values; one for each tensor of
        // a list and each separate size; otherwise one.
        std::vector<std::vector<Path>> paths;
    };
    virtual Bound bind(const Op& op, std::span<const Value> args) = 0;

    // The meaning of tensor[key] as a function of the tensor and of index tensors; none for a field or method.
    struct Part {
        std::shared_ptr<const ir::Graph> function;
        std::vector<Value> args;  // after the tensor
    };
    virtual Part part_of(const Value& tensor, const Value& key) = 0;
    // Whether a text picks a part of a tensor, rather than naming a field or method.
    virtual bool is_part(const Value& text) = 0;
    // The meaning of tensor[key] = value as a function of the tensor, the key (not used), the value and index tensors.
    virtual Part put_part(const Value& tensor, const Value& key, const Value& value) = 0;
    // Calls a function for the table and all tables within it, each once.
    virtual void for_each_table(const Value& table, const std::function<void(const Value&)>& f) = 0;

    // The host's protected calls, and errors with a value.
    struct Protected {
        bool ok = true;
        Value error;
    };
    virtual Protected call_protected(const std::function<void()>& body) = 0;
    [[noreturn]] virtual void raise(const Value& error) = 0;

    // A batch for a function that the machine runs once for so many samples, see region.h; nil: there can be none here.
    // `around`: the machine's host.
    virtual Value open_batch(Host&, int64_t) { return {}; }

    virtual void poll() = 0;

    // For debuggers: at_line before another line of a program with stop points, failed before an error ends running
    // functions.
    virtual void at_line() {}
    virtual void failed(const Error&) {}

    // "file:line" of the function `level` calls further out than the caller of the machine; empty: unknown.
    virtual std::string outer_place(size_t) { return {}; }
};

}  // namespace lunaria::vm
