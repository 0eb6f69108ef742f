// What a recording makes of a call of a function that the outside has and whose source it does not know.
#pragma once

#include <cstdint>

namespace lunaria {

enum class Native : uint8_t {
    unknown,  // it may do anything
    pure,     // plain arguments give plain results, always the same
    text,     // the same, and all that it gives are texts
    reader,   // looks at its arguments' content; changes nothing and calls no function
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
    ignored,  // nothing that a result depends on
    refused,  // a call of it is left to Lua
    shape,    // of tensors: what their type tells
    rank,     // of tensors: what their type tells, but for the sizes
};

}  // namespace lunaria
