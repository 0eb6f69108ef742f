// The treatment in a recording of a call of the outside's function whose source is not available.
#pragma once

#include <cstdint>

namespace lunaria {

enum class Native : uint8_t {
    unknown,  // it may do anything
    pure,     // plain arguments give plain results, always the same
    text,     // the same, and all its results are texts
    reader,   // reads the content of its arguments; changes nothing and calls no function
    local,    // an effect that leaves all tables and variables as they are
    type_of,
    select,
    get_metatable,
    set_metatable,
    next_key,
    pairs,
    ipairs,
    raw_equal,
    raw_length,
    item,
    is_tensor,
    is_parameter,
    error,
    handler,  // xpcall
    check,    // assert
    itself,   // its first argument
    inside,   // whether this is a recording
    ignored,  // has no influence on results
    refused,  // the call is left to Lua
    shape,    // of tensors: its result depends on their type
    rank,     // of tensors: its result depends on their type without the sizes
};

}  // namespace lunaria
