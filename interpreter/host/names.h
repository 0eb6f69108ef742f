// Functions of Lua's standard library and of Lunaria's that a saved program refers to by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "interpreter/host/lua_host.h"
#include "interpreter/library/library_functions.h"
#include "jit/saving/names.h"

namespace lunaria {

class FunctionNames {
  public:
    struct Entry {
        std::string name;  // "string.format", "ms.vmap"
        const LibraryFunction* row;
    };

    explicit FunctionNames(LuaHost& host);
    // Null for a function without a name.
    const Entry* find(const Value& f) const;
    // The steps of `for ... in ipairs(t)`.
    bool is_ipairs_step(const Value& f) const { return vm::identity_of(f) == ipairs_step_; }

  private:
    std::unordered_map<const void*, Entry> entries_;
    const void* ipairs_step_ = nullptr;
    std::vector<Value> kept_;
};

// The function of that name; nil: no saved program may refer to it.
Value function_named(LuaHost& host, std::string_view name);

}  // namespace lunaria
