// Warnings about code that Lua accepts and that tensors give no meaning: `t == 0`, which Lua answers by false without
// asking the tensor, and `if t then`, which holds for every tensor. A warning is given only where the text alone shows
// that a value is a tensor: it comes from ms.tensor or an operator, or is arithmetic with such a value, in all
// assignments to its variable. Parameters are unknown. Also about True, False and None, which are globals without a
// value: True is as false as False.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/ast.h"

namespace lunaria::lua {

// The value that a global holds when the chunk is loaded, if the chunk does not assign to it.
enum class GlobalValue : std::uint8_t { unknown, nothing, library, tensor };

struct Advice {
    std::uint32_t line = 0;
    std::string text, hint;
};

std::vector<Advice> advice_on(const Chunk& chunk, const std::function<GlobalValue(std::string_view)>& global);

}  // namespace lunaria::lua
