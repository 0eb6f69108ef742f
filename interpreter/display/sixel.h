// Pictures for terminals that draw sixels: columns of six pixels as characters, one colour after the other.
#pragma once

#include <string>

#include "interpreter/display/svg_picture.h"

namespace lunaria {

// In the 216 colours of a cube; transparent parts keep the terminal's own colour.
std::string sixel_text(const Picture& picture);

}  // namespace lunaria
