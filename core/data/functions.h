// Operations that call functions of the host language; see Host.
#pragma once

#include <optional>

#include "core/data/node.h"

namespace lunaria::data {

// Replaces the columns at `inputs` by the results of the function, which are called `outputs` and come at the place of
// the first input. `where`: the operation's name in messages. `numbered`: the function gets the numbers of the row and
// of the epoch after the inputs. `tolerant`: a row for which it fails is a bad one (tolerant.h).
NodePtr map(NodePtr child, std::string where, uint64_t function, std::vector<size_t> inputs, Names outputs,
            uint64_t seed, bool numbered, bool tolerant = false);
// The same, but copies of the function run on the threads that make rows, as transforms do.
NodePtr map_anywhere(NodePtr child, std::string where, uint64_t function, std::vector<size_t> inputs, Names outputs,
                     uint64_t seed, bool numbered, std::optional<int> workers, bool tolerant = false);
// The rows for which the function returns true for the columns at `inputs`.
NodePtr filter(NodePtr child, uint64_t function, std::vector<size_t> inputs, uint64_t seed);
// Rows that the function produces, anew in every epoch; `rows`: their number if that is known.
NodePtr stream(std::string where, uint64_t function, Names columns, int64_t rows, uint64_t seed);

}  // namespace lunaria::data
