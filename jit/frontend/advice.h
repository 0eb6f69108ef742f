// Warnings about code that Lua accepts and that tensors give no meaning: `t == 0`, which Lua answers by false without
// asking the tensor, and `if t then`, which holds for every tensor. A warning is given only where the text alone shows
// that a value is a tensor (kinds.h). Also about `t.sum(0)`, which gets the number in place of the tensor, and about
// True, False and None, which are globals without a value: True is as false as False.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/kinds.h"

namespace lunaria::lua {

struct Advice {
    std::uint32_t line = 0;
    std::string text, hint;
};

std::vector<Advice> advice_on(const Chunk& chunk, const KnownGlobal& global);

}  // namespace lunaria::lua
