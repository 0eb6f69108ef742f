// Tokens of text that may be broken or cut off anywhere, for completion: never fails, takes linear time, stores no
// values.
#pragma once

#include <string_view>
#include <vector>

#include "jit/frontend/token.h"

namespace lunaria::lua {

struct LooseToken {
    TokenKind kind;  // integer stands for every number; comments leave no token
    std::uint32_t begin, end;
};

// The construct in which the text stops.
enum class CutOff : std::uint8_t { nothing, string, long_string, comment };

struct LooseScan {
    std::vector<LooseToken> tokens;  // without the string that is cut off
    CutOff cut_off = CutOff::nothing;
    std::uint32_t cut_begin = 0;  // where that string or comment begins
};

LooseScan scan_loosely(std::string_view text);

}  // namespace lunaria::lua
