// What the virtual machine asks of the language that it runs in: tables, functions, metamethods.
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

// What a call comes down to.
struct Callee {
    enum class Kind : uint8_t { none, op, closure, function, opaque };
    Kind kind = Kind::none;
    const Op* op = nullptr;
    Value closure;                      // closure; function: the host's function itself
    Function* function = nullptr;       // of a host function whose source is known
    bool intrinsic = false;             // the function is the machine's own, not the host's
    bool keeps_caller = false;          // the host keeps the caller's frame, also where nothing follows the call
    std::shared_ptr<const void> owner;  // of its graph
    Values captures;                    // its upvalues
    std::vector<Value> prefix;          // arguments before the caller's: an object called through its metatable
    // Whether the machine's own version of a host function takes these arguments; null: any. What it does not take is
    // the business of `otherwise`, or, where that is nil, of the host.
    bool (*takes)(std::string_view kinds, std::span<const Value> args) = nullptr;
    std::string_view kinds;
    Value otherwise;
};

// Where a field is found: raw in `holder`, or by calling `method` with the object (and key).
struct Field {
    Value holder, value;
    Value method;
    bool raw = false;
};

class Host {
  public:
    virtual ~Host() = default;

    virtual Callee resolve(const Value& f) = 0;
    // The operator that the host's value f is, or null; quicker than to ask resolve().
    virtual const Op* operator_in(const Value&) { return nullptr; }
    // Of object[key]; for objects that are no tables `raw` is false and `method` nil: use index().
    virtual Field find_field(const Value& object, const Value& key) = 0;
    virtual Field find_new_field(const Value& object, const Value& key) = 0;
    // The metamethod of an operation on a table or userdata, or nil.
    virtual Value metamethod(const Value& a, const Value& b, std::string_view event) = 0;
    // The operator that stands for arithmetic on tensors, or null.
    virtual const Op* tensor_operator(const Op& primitive) { return lua::facts(primitive).on_tensors; }

    // With the language's whole meaning.
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
    // Whether a function of the host, known to be opaque, neither computes with numbers nor keeps or calls anything.
    virtual bool is_harmless(const Value& f) = 0;
    // Whether a harmless function gives keys of its first argument, a table.
    virtual bool gives_keys(const Value& f) = 0;
    // What stands for an opaque function where its arguments hold what is differentiated, for an operator that writes
    // where that has to do with it, and for any other operator where a number among its attributes is it; or nil.
    virtual Value stand_in(const Value& f) = 0;
    // Whether there are floats or tensors in the table or in tables within it.
    virtual bool holds_floats(const Value& table) = 0;
    // The host's own coroutine, whose functions the machine does not see, that a call of f would go on with; nil: none.
    virtual Value resumed_by(const Value&, std::span<const Value>) { return {}; }
    // Whether such a coroutine can come to something that has a shadow in the differentiation, or to a value of the
    // machine for which `follows` says yes.
    virtual bool reaches(const Value&, const Context&, const std::function<bool(const Value&)>&) { return false; }
    // Why a function that resolve() called opaque is it: "it is not written in Lua".
    virtual std::string why_opaque(const Value& f) = 0;

    // Arguments of an operator from those of a call: by name in a trailing table, lists of tensors, sizes spelled out.
    struct Bound {
        std::vector<Value> args;
        // Where an argument came from.
        struct Path {
            size_t argument = 0;  // of the call
            Value name = {};      // in the table there; nil: the argument itself
            int64_t item = 0;     // of the list found so, from 1; 0: no list, or all of it
            // A number among the tensors of a list, which becomes one of this dtype; nil: a tensor.
            Value number_as = {};
        };
        // Per parameter: none where it has its default, or where a tensor was made of something else; one for each
        // tensor of a list and for each size that was spelled out; otherwise one.
        std::vector<std::vector<Path>> paths;
    };
    virtual Bound bind(const Op& op, std::span<const Value> args) = 0;

    // What tensor[key] stands for as a function of the tensor and of index tensors; none for a field or method.
    struct Part {
        std::shared_ptr<const ir::Graph> function;
        std::vector<Value> args;  // after the tensor
    };
    virtual Part part_of(const Value& tensor, const Value& key) = 0;
    // Whether a text picks a part of a tensor, and is no name of a field or method.
    virtual bool is_part(const Value& text) = 0;
    // What tensor[key] = value stands for as a function of the tensor, the key (not used), the value and index tensors.
    virtual Part put_part(const Value& tensor, const Value& key, const Value& value) = 0;
    // The table and all tables within it, each once.
    virtual void for_each_table(const Value& table, const std::function<void(const Value&)>& f) = 0;

    // The host's way of running something that may fail, and of failing with a value.
    struct Protected {
        bool ok = true;
        Value error;
    };
    virtual Protected call_protected(const std::function<void()>& body) = 0;
    [[noreturn]] virtual void raise(const Value& error) = 0;

    // A batch for a function that the machine runs once for so many samples, see region.h; nil: here it cannot.
    // `around`: the host that the machine has.
    virtual Value open_batch(Host&, int64_t) { return {}; }

    virtual void poll() = 0;

    // For debuggers: another line of a program with stop points begins; an error is about to end functions that run.
    virtual void at_line() {}
    virtual void failed(const Error&) {}

    // "file:line" of the function that is `level` calls further out than who called the machine; empty: unknown.
    virtual std::string outer_place(size_t) { return {}; }
};

}  // namespace lunaria::vm
