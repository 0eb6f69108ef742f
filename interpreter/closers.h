// Interrupts and variables that are to be closed. The flag of an interrupt stays up while its error unwinds, so that no
// pcall swallows it, and every instruction raises it anew. But the functions that `local x <close>` calls meanwhile are
// a program's clean-up: each runs to its end, and only a second interrupt ends it.
#pragma once

#include <lua.hpp>
#include <unordered_set>

namespace lunaria {

class Closers {
  public:
    // Called when an interrupt is about to be raised: notes the metamethods __close of all variables on the thread's
    // stack.
    void note(lua_State* L);
    // Called by a hook: whether such a function runs, so that nothing is to be raised. While one runs, the flag is
    // down.
    bool runs(lua_State* L, lua_Debug* event);
    // Raises the flag again if it was down: the error has been handled.
    void settle();
    void clear();

  private:
    bool is_on_stack(lua_State* L) const;
    void begin(lua_State* L, const lua_Debug* event, const void* function);

    std::unordered_set<const void*> functions_;
    // The running one: its thread, its call and the called function; null for none.
    lua_State* thread_ = nullptr;
    const void *call_ = nullptr, *function_ = nullptr;
};

}  // namespace lunaria
