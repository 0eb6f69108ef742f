// Operators that programs define, beside those of the registry (custom_op.h, foreign_op.h). They share one set of
// names: what a graph names is one operator. They are never destroyed: functions of Lua and graphs refer to them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/operator/op.h"

namespace lunaria {

class DefinedOps {
  public:
    // Held by a definition from the choice of the name until the operator exists and is complete.
    std::mutex mutex;

    // The name, or the name with a number appended where it is taken.
    std::string free_name(const std::string& name) const;
    // Gives the operator an id and enters it under its name.
    template <class T>
    T& add(std::unique_ptr<T> op) {
        T& kept = *op.release();
        enter(kept);
        return kept;
    }
    const Op* find(std::string_view name) const;  // nullptr

  private:
    void enter(Op& op);
    std::unordered_map<std::string, const Op*> by_name_;
};
DefinedOps& defined_ops();

}  // namespace lunaria
