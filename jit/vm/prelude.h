// Functions of the machine given by the text of their graphs (prelude.cpp): the generic forms of reads and writes and
// of their reverse, functions that catch errors, derivatives as functions, coroutines.
#pragma once

#include "jit/vm/code.h"

namespace lunaria::vm {

enum class Prelude : uint8_t {
    raw_index,          // table, key -> table[key] without metamethods
    raw_set,            // table, key, value -> table, whose field is the value
    content,            // x -> its content
    content_index,      // x, key -> content(x)[key]
    content_set_index,  // x, key, value -> x[key] = content(value)
    overwrite,          // x, value -> x, which from then on has the value's content
    stop,               // x -> x, not followed
    item,               // a tensor of one element -> its number
    shadow_add,         // captured: shadow, key; d -> nothing
    shadow_take,        // captured: shadow, key; -> nil, nil, the cotangent
    shadow,             // context, object, key -> its cotangent
    truth,              // captured: f; a, b -> whether f(a, b) is true, as a boolean
    alike,              // captured: f; args... -> f(args...)
    bound,              // captured: f, first; args... -> f(first, args...)
    pcall,              // f, args... -> true, f(args...) or false, the error
    pcall_failed,       // the part of pcall after an error of f
    xpcall,             // f, handler, args... -> true, f(args...) or false, handler(error)
    xpcall_failed,      // the part of xpcall after an error of f
    handled,            // itself, handler, left, error -> handler(error); the handler gets its own errors too, until
                        // none are left
    handled_failed,     // the part of handled after an error of the handler
    error,              // value, level -> never
    vjp,                // f, positions, parameters, args... -> pull, context, results...
    derivative,     // name (for messages), f, positions, parameters, args... -> context, number of results, results...,
                    // cotangents of the arguments...
    gradient,       // name, f, position, args... -> first result, its derivative by the argument at the position
    custom,         // f, back, args... -> f(args...); back(args..., results..., d...)
    checkpoint,     // f, again, args... -> f(args...), for its derivative again(args...)
    batched,        // size, f, args... -> see BatchedFunction in region.h
    coroutine,      // f, args... -> f(args...)
    resume,         // co, args... -> true, its results or false, the error
    resume_failed,  // the part of resume after an error of the coroutine
    wrap,           // captured: co; args... -> its results
    resume_back,    // captured: co, k, order; d... -> cotangents of co, args...
    yield_back,     // d... -> the arguments of the resumption
    reversed,       // captured: r; d... -> cotangents of the function's arguments
    advance,        // co, k -> nothing: resumes it until resumption k is next
    count,
};

// Built from its text at the first request.
const OperatorFunction& prelude(Prelude which);

}  // namespace lunaria::vm
