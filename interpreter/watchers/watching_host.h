// A watcher that sees every operator: the machine gets none to run by itself, so that all operators come by call() and
// arithmetic(). The machine runs Lua functions itself, so that their calls are seen.
#pragma once

#include "interpreter/host/lua_host.h"
#include "jit/vm/watcher.h"

namespace lunaria {

class WatchingHost : public vm::Watcher {
  public:
    explicit WatchingHost(LuaHost& host) : Watcher(host), host_(host) {}

    vm::Callee resolve(const Value& f) override;
    // None, so that arithmetic on tensors comes to arithmetic().
    const Op* tensor_operator(const Op&) override { return nullptr; }
    [[noreturn]] void raise(const Value& error) override { host_.raise(error); }

  protected:
    LuaHost& host_;

  private:
    bool is_c_function(const Value& f) const;
};

}  // namespace lunaria
