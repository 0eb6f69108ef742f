// The frames of a stopped program as its user sees them: functions of Lua and of the virtual machine, coroutines and
// the functions that resumed them in one list; and the variables in them. Functions of C and of Lunaria's own library
// are left out.
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
    int level = 0;     // of the Lua function; for a frame of the machine, that of the C function that runs the machine
    size_t index = 0;  // in the machine, or in the list of kept frames
    std::string function;
    std::string chunk;   // its name in Lua: "@file", "=In[1]"
    std::string source;  // its name in messages
    int line = 0, first_line = 0;
    bool tail = false;      // it replaced its caller's frame
    bool complete = true;   // all its variables are known
    bool backward = false;  // takes cotangents back through a differentiated function
};

enum class VariableKind { local, vararg, upvalue };

struct StackVariable {
    std::string name;
    VariableKind kind = VariableKind::local;
    int index = 0;  // index among those of its kind, for DebugStack
};

class DebugStack {
  public:
    DebugStack() = default;
    // The frames of the running Lua thread and of those that resumed it. Valid until the program goes on.
    explicit DebugStack(lua_State* L);
    // The frames of the last error, as the session keeps it; none when there was no error.
    static DebugStack post_mortem(lua_State* L);

    const std::vector<StackFrame>& frames() const { return frames_; }
    bool empty() const { return frames_.empty(); }

    // The visible ones: none hides another of its kind. Locals are in the order of their declaration.
    std::vector<StackVariable> variables(lua_State* T, size_t frame, VariableKind kind) const;
    // The variable of that name there, upvalues included; false when there is none, or it is a global.
    bool find(lua_State* T, size_t frame, const std::string& name, StackVariable& found) const;
    // Pushes the variable's value to T.
    void push(lua_State* T, size_t frame, const StackVariable& v) const;
    // Sets the variable to the value on top of T, which is popped. Throws state_error where the program has only a
    // value that others share.
    void assign(lua_State* T, size_t frame, const StackVariable& v) const;
    // Pushes the table in which the frame's code looks for globals.
    void push_environment(lua_State* T, size_t frame) const;
    // Pushes the running function; nil for one of the machine or of a kept frame.
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
// The number of levels on the thread's stack.
int stack_depth(lua_State* L);
// The source lines of a chunk by its Lua name; without the prefix that the session puts before the last expression of a
// cell.
std::vector<std::string> source_lines(State& state, const std::string& chunk);

}  // namespace lunaria
