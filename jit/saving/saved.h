// Permissions of a saved program for a function of its host's libraries.
#pragma once

#include <cstdint>

namespace lunaria {

// Only functions that compute have a name there: a file cannot name one that reaches files, processes or the state of
// the session.
enum class Saved : uint8_t {
    unnamed,
    called,  // by name, when the saved program runs
    folded,  // the same, but with known arguments the call happens when the program is saved
    known,   // only the latter: no name in a file
    writes   // by name; writes into the table that is its first argument
};

}  // namespace lunaria
