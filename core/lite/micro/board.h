// Texts of generated projects that do not depend on the network: makefiles, and the start of the simulated board.
#pragma once

#include <string_view>

namespace lunaria::lite::micro {

extern const std::string_view kMakefile, kCMake, kBoardMakefile, kBoardStart, kBoardScript;

}  // namespace lunaria::lite::micro
