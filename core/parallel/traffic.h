// The record of what redistributions moved, by lines of the user's program, and what happens where one is not asked
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel/laid.h"

namespace lunaria {
class Op;
}

namespace lunaria::parallel {

struct Plan;

// Movements with the same line, operator, operand and layouts.
struct MovementTotal {
    std::string place;      // file:line
    std::string operation;  // the operator; empty: the program asked for it
    std::string operand;
    std::string from, to;          // the tensor's type
    std::string path;              // the steps: all_gather(dp)
    std::string why;               // the operator's rule: ab,bc->ac b:sum
    int64_t calls = 0, bytes = 0;  // bytes: that the ranks of this process received
    bool is_implicit = false;
};

enum class OnReshard : uint8_t { silent, warn, error };
void set_on_reshard(OnReshard mode);
OnReshard on_reshard();

// The movements since the last call of forget_movements, in the order of their first calls.
std::vector<MovementTotal> movements();
void forget_movements();

// A tensor that is about to move.
struct Move {
    std::string from, to, path;  // as in MovementTotal
    int64_t bytes = 0;           // that all ranks together receive
    bool moves_pieces = false;   // and not only terms of sums that have to be completed
};
Move move_of(const Laid& x, const Plan& plan);
// Before: warns, or throws, where the program wants that of movements that it does not ask for.
void check_movement(const Move& move, const Cause& cause);
// Afterwards: `bytes` that the ranks of this process have received.
void note_movement(const Move& move, const Cause& cause, int64_t bytes);

}  // namespace lunaria::parallel
