// The line of the program that runs, for what speaks of it later than it is there: work that a device was given.
#pragma once

#include <functional>
#include <string>

namespace lunaria {

// "file:line" of the program that this thread runs; empty where there is none.
std::string program_place();
// For this thread; an empty function takes it away.
void set_program_place(std::function<std::string()> place);

}  // namespace lunaria
