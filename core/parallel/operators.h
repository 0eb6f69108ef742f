// The operators of core/ops/communication.cpp, carried out by the communicator of the program.
#pragma once

#include "core/operator/ranks.h"
#include "core/parallel/communicator.h"

namespace lunaria::parallel {

// The communicator of the program, or one of a single rank where it has none.
Communicator& own_world();

// While it lives, requests of operators on this thread are started, and not waited for: their operands and results have
// to be kept until they are done. Only for operators whose operands are dense and in the order of memory.
class StartScope {
  public:
    explicit StartScope(std::vector<Pending>& started);
    ~StartScope();
    StartScope(const StartScope&) = delete;
    StartScope& operator=(const StartScope&) = delete;

  private:
    std::vector<Pending>* before_;
};

// From now on operators that ask other ranks ask those of world(). Called once when a program starts.
void serve_operators();

}  // namespace lunaria::parallel
