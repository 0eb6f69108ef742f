// The sign of the kernel in menus: a crescent, drawn by code.
#pragma once

#include <string>

namespace lunaria::jupyter {

std::string logo_svg();
// A square PNG of that many pixels on a side, with transparency.
std::string logo_png(int size);

}  // namespace lunaria::jupyter
