// What a saved program may do with a function that its host's libraries have.
#pragma once

#include <cstdint>

namespace lunaria {

// Only what computes has a name there: a file cannot name what reaches files,
// processes or the state of the session.
enum class Saved : uint8_t {
    unnamed,
    called,  // by name, when the saved program runs
    folded,  // the same, but with known arguments it is called when the program is saved
    known,   // the latter only: no name in a file
    writes   // by name; writes into the table that is its first argument
};

}  // namespace lunaria
