// Formulas of elementwise operators as C: the same generic functions that other back ends make code of, called with a
// type that writes expressions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/lite/micro/text.h"

namespace lunaria::lite::micro {

// Writes statements that declare `variable` as the formula of `args` (names or literals) computed in `dtype`, and
// returns true; false, and nothing written, where there is no C for it.
bool write_formula(Lines& to, std::string_view formula, DType dtype, std::span<const std::string> args,
                   const std::string& variable);

}  // namespace lunaria::lite::micro
