// Brackets and properties of a tensor as functions of it: t[i], t[i] = v, t.T.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "jit/vm/host.h"

namespace lunaria {

class LuaHost;

class TensorParts {
  public:
    explicit TensorParts(LuaHost& host) : host_(host) {}
    // tensor[key], or the tensor after tensor[key] = *value.
    vm::Host::Part indexed(const Value& tensor, const Value& key, const Value* value);
    // The properties that are functions of the elements: the transposed matrix.
    vm::Host::Part property(const Value& tensor, const std::string& name);

  private:
    LuaHost& host_;
    std::map<std::string, std::shared_ptr<const ir::Graph>> parts_;
};

}  // namespace lunaria
