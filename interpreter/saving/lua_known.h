// Lua's answers to saving's questions about known values.
#pragma once

#include "interpreter/host/names.h"
#include "jit/saving/known.h"

namespace lunaria {

// The dtype that an object of Lua represents.
std::optional<DType> dtype_of(LuaHost& host, const Value& object);

class LuaKnown final : public Known {
  public:
    explicit LuaKnown(LuaHost& host) : Known(host), host_(host), names_(host) {}

    std::optional<std::vector<Value>> called(const Value& f, const std::vector<Value>& args) override;
    std::optional<DType> dtype_of(const Value& object) override { return lunaria::dtype_of(host_, object); }
    Content content_of(const Value& table) override;
    std::optional<Named> named(const Value& object) override;
    bool is_ipairs_step(const Value& f) override { return names_.is_ipairs_step(f); }
    Made made_by(const Value& object) override;

  private:
    LuaHost& host_;
    const FunctionNames names_;
};

}  // namespace lunaria
