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

// While it lives, this is the place: a compiled program carries out what several lines say. `place` outlives it; an
// empty one changes nothing.
class ProgramPlaceScope {
  public:
    explicit ProgramPlaceScope(const std::string& place);
    ~ProgramPlaceScope();
    ProgramPlaceScope(const ProgramPlaceScope&) = delete;
    ProgramPlaceScope& operator=(const ProgramPlaceScope&) = delete;

  private:
    const std::string* before_;
};

}  // namespace lunaria
