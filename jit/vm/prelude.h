// Functions of the machine that are written down as the text of their graphs (prelude.cpp): the generic forms of
// reading and writing and their reverse, what meets errors, derivatives as functions, coroutines.
#pragma once

#include "jit/vm/code.h"

namespace lunaria::vm {

enum class Prelude : uint8_t {
    raw_index,          // table, key -> table[key] without metamethods
    raw_set,            // table, key, value -> table, whose field is the value
    content,            // x -> its content
    content_index,      // x, key -> content(x)[key]
    content_set_index,  // x, key, value -> x[key] = content(value)
    overwrite,          // x, value -> x, which has the value's content from then on
    stop,               // x -> x, not followed
    item,               // a tensor of one element -> its number
    shadow_add,         // captured: shadow, key; d -> nothing
    shadow_take,        // captured: shadow, key; -> nil, nil, the cotangent
    shadow,             // context, object, key -> its cotangent
    truth,              // captured: f; a, b -> whether f(a, b) is true, as a boolean
    bound,              // captured: f, first; args... -> f(first, args...)
    pcall,              // f, args... -> true, f(args...) or false, the error
    pcall_failed,       // of pcall, from an error of f on
    xpcall,             // f, handler, args... -> true, f(args...) or false, handler(error)
    xpcall_failed,      // of xpcall, from an error of f on
    xpcall_twice,       // of xpcall, from an error of its handler on, which is the result as it is
    error,              // value, level -> never
    vjp,                // f, positions, parameters, args... -> pull, context, results...
    derivative,     // name (for messages), f, positions, parameters, args... -> context, number of results, results...,
                    // cotangents of the arguments...
    gradient,       // name, f, position, args... -> first result, its derivative by the argument at the position
    custom,         // f, back, args... -> f(args...); back(args..., results..., d...)
    checkpoint,     // f, again, args... -> f(args...), for its derivative again(args...)
    batched,        // size, f, args... -> see BatchedFunction in region.h
    coroutine,      // f, args... -> f(args...)
    resume,         // co, args... -> true, what it gives or false, the error
    resume_failed,  // of resume, from an error of the coroutine on
    wrap,           // captured: co; args... -> what it gives
    resume_back,    // captured: co, k, order; d... -> cotangents of co, args...
    yield_back,     // d... -> what the resumption passes
    reversed,       // captured: r; d... -> cotangents of the function's arguments
    advance,        // co, k -> nothing: resumes it until resumption k is next
    count,
};

// Made from its text when it is asked for first.
const OperatorFunction& prelude(Prelude which);

}  // namespace lunaria::vm
