// An interrupt and variables that are to be closed. The flag of an interrupt stays up while the error goes its way, so
// that no pcall swallows it, and every instruction raises it anew; but what `local x <close>` calls on that way
// is how a program cleans up: it runs to its end, and only a second interrupt ends it.
#pragma once

#include <lua.hpp>
#include <unordered_set>

namespace lunaria {

class Closers {
  public:
    // When an interrupt is about to be raised: notes the metamethods __close of all variables on the thread's stack.
    void note(lua_State* L);
    // Of a hook: whether such a function runs, so that nothing is to be raised. While one runs, the flag is down.
    bool runs(lua_State* L, lua_Debug* event);
    // The flag goes up again if it was down: the error has come to its end.
    void settle();
    void clear();

  private:
    bool is_on_stack(lua_State* L) const;
    void begin(lua_State* L, const lua_Debug* event, const void* function);

    std::unordered_set<const void*> functions_;
    // The one that runs: its thread, its call and what is called; null for none.
    lua_State* thread_ = nullptr;
    const void *call_ = nullptr, *function_ = nullptr;
};

}  // namespace lunaria
