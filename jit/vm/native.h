// The treatment in a recording of a call of the outside's function whose source is not available.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor/value.h"

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
    handler,   // xpcall
    check,     // assert
    alike,     // another function that does what its first argument does
    is_alike,  // whether such a function is asked about
    inside,    // whether this is a recording
    ignored,   // has no influence on results
    refused,   // the call is left to Lua
    shape,     // of tensors: its result depends on their type
    rank,      // of tensors: its result depends on their type without the sizes
};

// Whether arguments are of these kinds, one letter each: A anything, N number, I number with an integer value, L the
// same or such a text, T table, F function, # a number or the string "#", S string, X table or tensor; lower case: may
// be missing or nil; -: is missing or nil; * at the end: any number of the one before. `object_is`: whether an object
// is of a kind; what stands for a value that is not known yet may be any.
bool arguments_fit(std::string_view kinds, std::span<const Value> args, bool (*object_is)(const Value&, char kind));

}  // namespace lunaria
