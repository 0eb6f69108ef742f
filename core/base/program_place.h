// The line of the user's program that is running. Work that a device does later keeps it, so that its errors can name
// the line that asked for the work.
#pragma once

#include <functional>
#include <string>

namespace lunaria {

// "file:line" of the program that this thread runs; empty where there is none.
std::string program_place();
// Sets the function that finds the place for this thread; an empty function removes it.
void set_program_place(std::function<std::string()> place);

}  // namespace lunaria
