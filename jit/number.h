// Arithmetic on plain numbers exactly as in Lua's reference manual: integers wrap and stay integers, / and ^ give
// floats, // and % round down, comparisons of integers with floats are exact.
#pragma once

#include <span>
#include <string>

#include "core/operator/op.h"

namespace lunaria::lua {

// Whether run_number knows the primitive: Lua's arithmetic, bit operations and comparisons, and everything named num_….
bool is_number_primitive(const Op& primitive);

// The primitive on plain numbers with the same meaning as the operator; throws state_error if there is none.
const Op& on_numbers(const Op& op);

// The value of a primitive at numbers (Value kinds integer and number). Throws with the words of Lua and no place
// before them: an arithmetic error for division of an integer by zero, a value error for a float without integer
// representation in a bit operation, an argument error for an operand that is not a number.
Value run_number(const Op& primitive, std::span<const Value> args);

// A number as Lua's tostring() has it.
std::string number_text(const Value& number);

// A numeric loop over integers: a bound of its last value, and the number of its iterations.
struct Turns {
    int64_t last = 0;
    uint64_t count = 0;
};
Turns turns_of(int64_t start, const Value& limit, int64_t step);

}  // namespace lunaria::lua
