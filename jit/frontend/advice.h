// What a chunk says that Lua accepts and no tensor means: `t == 0`, which Lua answers by false without asking the
// tensor, and `if t then`, which holds whatever the tensor does. A warning is given only where a value is known to be a
// tensor by the text alone: it comes from ms.tensor or an operator, or is arithmetic with such a value, in all
// assignments to its variable. Parameters are not known.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/ast.h"

namespace lunaria::lua {

// What a global that the chunk does not assign to holds when it is loaded.
enum class GlobalValue : std::uint8_t { unknown, library, tensor };

struct Advice {
    std::uint32_t line = 0;
    std::string text, hint;
};

std::vector<Advice> advice_on(const Chunk& chunk, const std::function<GlobalValue(std::string_view)>& global);

}  // namespace lunaria::lua
