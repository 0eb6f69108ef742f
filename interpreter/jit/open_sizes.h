// Sizes of tensors that may have any, as numbers of the program: x.shape gives them, and operators take them in lists
// (ops.reshape(x, {x.shape[1], 4})), without the record being for the sizes of this call.
#pragma once

#include <vector>

#include "interpreter/host/lua_host.h"

namespace lunaria::jit {

class Recorder;

// A new table of the sizes of a tensor; nil: they are those of this call in all calls.
Value open_shape(Recorder& recorder, const Value& tensor);

// The size of an axis: an open number where the tensor may have any.
Value size_of(Recorder& recorder, const Value& tensor, int axis);

// Lists of the run's own among the arguments of an operator: while it lives they hold plain numbers.
class OpenSizes {
  public:
    OpenSizes(Recorder& recorder, std::span<const Value> args);
    ~OpenSizes();
    OpenSizes(const OpenSizes&) = delete;
    OpenSizes& operator=(const OpenSizes&) = delete;

    // As the host does it, of the arguments without open numbers; these stand in the lists that the operator gets.
    vm::Host::Bound bind(const Op& op, std::span<const Value> real);

  private:
    void put_into(vm::Host::Bound& bound);
    void decide();

    struct Lent {
        size_t argument;
        Value table, key, number;
        bool stays = false;
    };
    Recorder& recorder_;
    std::vector<Lent> lent_;
};

}  // namespace lunaria::jit
