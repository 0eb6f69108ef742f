// A state with everything that Lunaria adds to Lua. The standard library is Lua's own; only the functions that read Lua
// text (load, loadfile, dofile, require) are replaced by ours, which do the same and keep the source.
#pragma once

#include <functional>
#include <string>

#include "interpreter/debugger/debugger.h"
#include "interpreter/loader/loader.h"
#include "interpreter/state.h"

namespace lunaria {

// Objects that a state refers to, made before it and destroyed after it.
struct StateParts {
    explicit StateParts(State& state) : own_debugger(state) {}
    Loader own_loader;
    Debugger own_debugger;
};

class ProgramState : private StateParts, public State {
  public:
    // Opens the libraries and makes `require "lunaria"` work. Throws std::bad_alloc.
    ProgramState() : ProgramState(Options()) {}
    explicit ProgramState(const Options& options);
    ~ProgramState() override;

    std::string place(lua_State* L) const override;
    MakeWorker worker_maker() const override;

  private:
    static int collect_garbage(lua_State* L);
    bool collect_cycles(lua_State* L) override;
    void in_thread(lua_State* thread, const std::function<void()>& body) override;
};

}  // namespace lunaria
