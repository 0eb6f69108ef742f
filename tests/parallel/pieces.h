// Calls computed piece by piece in one process, as ranks would compute them, and put together again.
#pragma once

#include <string>
#include <vector>

#include "core/parallel/rule.h"

namespace lunaria::parallel::testing {

// The host's device and one thread, which small calls take least time with, as long as this lives.
class OneThread {
  public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread&) = delete;

  private:
    int before_;
};

// The tensors of a value, also those in lists.
std::vector<Tensor> tensors_of(const Value& v);

Tensor part_of(const Tensor& whole, const Region& part);

// The arguments of a piece, with copies of the parts of the operands.
std::vector<Value> local_args(const Rule& rule, const Work& work);

// One piece of each call for each choice of intervals, which together cover the whole; the results put together.
std::vector<Tensor> in_pieces(const Rule& rule, const std::vector<std::vector<Interval>>& choices);

// Empty, or the first difference. `tolerance` 0: to the bit.
std::string difference(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double tolerance);

}  // namespace lunaria::parallel::testing
