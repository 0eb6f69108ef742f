// The interface of a record to the outside of a call: its arguments, tables, variables and functions. A host of the
// virtual machine implements it beside vm::Host (interpreter/host/lua_outside.h), one object for each call.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "jit/trace/captured_numbers.h"
#include "jit/trace/guards.h"
#include "jit/trace/trace.h"
#include "jit/vm/native.h"

namespace lunaria::vm {
class Machine;
}

namespace lunaria::trace {

// One question of a record: a step of one of the kinds up to `next`.
struct Question {
    Step::Kind kind = Step::Kind::count;
    const Value* object = nullptr;  // a table, or the function of an upvalue
    const Value* key = nullptr;     // of `read` and `next`
    int position = 0;               // of an argument or an upvalue
    // The places where the outside keeps the object and the key, see Step; 0: only the values above tell them.
    int object_at = 0, key_at = 0;
    // Parts of the answer that are wanted beside those for comparison.
    bool value = false, handle = false;
};

struct Answer {
    enum class Kind : uint8_t { nil, boolean, integer, number, text, tensor, table, other };
    Kind kind = Kind::nil;
    union {
        int64_t integer = 0;
        bool boolean;
        double number;
        const Tensor* tensor;
    };
    const void* identity = nullptr;  // of an object and of a text
    std::string_view text;           // valid until the next use of the outside
    Value value;
    Value handle;  // the very object as which a tensor or an object of the machine came
};

class Outside {
  public:
    // The host of the machine; the outside of a call answers for the values of this host.
    Outside(vm::Host& host, int64_t count) : host(host), count(count) {}
    virtual ~Outside() = default;
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

    vm::Host& host;
    const int64_t count;  // of the arguments
    // The place in the program of the running step, for error messages; null: none is running.
    const ir::Span* span = nullptr;

    virtual Answer ask(const Question& question) = 0;
    // Whether all of these guards hold.
    virtual bool hold(const Guards& guards) = 0;

    // False: f raised `error`. The step tells how the program calls f.
    virtual bool call(const Value& f, std::span<const Value> args, const Step& step, vm::Values& results,
                      Value& error) = 0;
    // A new table from a recipe: sizes, metatable, then keys and values in the order of insertion; a nil value removes
    // the key again.
    virtual Value make_table(std::span<const Value> recipe) = 0;
    // Moves the whole content of a table, its metatable included, into another.
    virtual void pour(const Value& from, const Value& to) = 0;
    virtual void set_upvalue(const Value& function, int position, const Value& v) = 0;
    // The outside's object for a tensor: the one that it has, or a new one.
    virtual Value handle_of(const Value& tensor) = 0;

    // The kind of the outside's object that a value is; none: a plain value, a tensor, or an object of the machine.
    enum class Type : uint8_t { none, table, function, other };
    virtual Type type_of(const Value& v) = 0;
    // The behaviour of a function when it is called; error: it is no function.
    virtual Native native(const Value& f) = 0;
    // Whether derivatives replace the function by another.
    virtual bool is_in_derivatives(const Value& f) = 0;
    // The function that a compiled one was made from; any other value itself.
    virtual Value target(const Value& f) = 0;
    // Any function; all functions share its metatable.
    virtual Value any_function() = 0;
    // Identifies a variable of a function.
    virtual const void* variable(const Value& function, int position) = 0;
    virtual CapturedNumbers& captured_numbers() = 0;

    // The called function.
    virtual Value function() = 0;
    // Keeps the objects that the tree's new steps refer to for as long as the tree, and tells the steps their places.
    virtual void keep(Tree& tree) = 0;
    // The value such that it may outlive the tree.
    virtual Value lasting(const Value& v) = 0;
    // The outcome of the body, which may fail and may read the arguments of this call.
    virtual vm::Host::Protected protect(const std::function<void()>& body) = 0;
    // Lets the body run the machine in the name of this call.
    virtual void run(vm::Machine& machine, const std::function<void()>& body) = 0;
    // Announces that much memory is about to be needed: unreachable objects give theirs back, if finding them is quick.
    virtual void make_room() {}
};

}  // namespace lunaria::trace
