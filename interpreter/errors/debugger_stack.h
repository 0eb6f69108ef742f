// The frames of a stopped program as its user knows them: functions of Lua and of the virtual machine, coroutines and
// what resumed them in one list; and the variables in them. Functions of C and of Lunaria's own library are left out.
#pragma once

#include <lua.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/state.h"
#include "jit/vm/inspect.h"

namespace lunaria {

struct StackFrame {
    enum class Kind { lua, machine, kept } kind = Kind::lua;
    lua_State* thread = nullptr;
    int level = 0;     // of the Lua function; of a machine's frame that of the C function that runs the machine
    size_t index = 0;  // in the machine, or in the list of frames that were kept
    std::string function;
    std::string chunk;   // as Lua names it: "@file", "=In[1]"
    std::string source;  // as messages name it
    int line = 0, first_line = 0;
    bool tail = false;      // the caller's frame gave way to it
    bool complete = true;   // all its variables are known
    bool backward = false;  // takes cotangents back through a differentiated function
};

enum class VariableKind { local, vararg, upvalue };

struct StackVariable {
    std::string name;
    VariableKind kind = VariableKind::local;
    int index = 0;  // among those of its kind, as DebugStack wants it back
};

class DebugStack {
  public:
    DebugStack() = default;
    // Of the running Lua thread and those that resumed it. Valid until the program goes on.
    explicit DebugStack(lua_State* L);
    // Of the last error, as the session keeps it; no frames when there was none.
    static DebugStack post_mortem(lua_State* L);

    const std::vector<StackFrame>& frames() const { return frames_; }
    bool empty() const { return frames_.empty(); }

    // Those visible: none hides another of its kind. Locals in the order of their declaration.
    std::vector<StackVariable> variables(lua_State* T, size_t frame, VariableKind kind) const;
    // The variable that a name means there, upvalues included; false when it is none, or a global.
    bool find(lua_State* T, size_t frame, const std::string& name, StackVariable& found) const;
    // Pushes its value to T.
    void push(lua_State* T, size_t frame, const StackVariable& v) const;
    // Gives it the value on top of T, which is popped. Throws state_error where the program has only a value that
    // others share.
    void assign(lua_State* T, size_t frame, const StackVariable& v) const;
    // Pushes the table in which the frame's code looks for globals.
    void push_environment(lua_State* T, size_t frame) const;
    // Pushes the function that runs; nil for one of the machine or of a kept frame.
    void push_function(lua_State* T, size_t frame) const;

  private:
    void add_lua_frames(lua_State* thread, bool library);
    void add_machine_frames(lua_State* thread, const lua_Debug& call, int level, bool library);
    std::vector<StackVariable> all(lua_State* T, size_t frame, VariableKind kind) const;
    vm::FrameView view(const StackFrame& frame) const;
    void push_kept(lua_State* T, const StackFrame& frame, int index) const;

    std::vector<StackFrame> frames_;
};

// Whether a chunk of this name is Lunaria's own library.
bool is_library(std::string_view chunk);
// How many levels the thread's stack has.
int stack_depth(lua_State* L);
// The source lines of a chunk by its Lua name; without the prefix that the session puts before what a cell shows.
std::vector<std::string> source_lines(State& state, const std::string& chunk);

}  // namespace lunaria
