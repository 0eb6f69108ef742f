// The prologue of every function of the user's: a test of one variable that all of them share, which is nil until graph
// mode is switched on. Then it holds a function, which is asked whether it runs the call in place of the body
// (interpreter/jit/hot.h). In Lua the prologue would read
//
//     local ask = entry
//     if ask then
//       local done = ask(false, arguments...)
//       if done then return ask(done) end
//     end
//
// It is put into compiled code, where it takes no line, no local variable of the function's and no name of the
// program's: a program sees it only as one more upvalue of its functions, the last, which the debug library leaves out.
// Before it there is another such upvalue, which all functions of a chunk share and none reads: it holds the chunk's
// text, which therefore lives as long as any of them.
#pragma once

#include <lua.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lunaria {

// The name of the variable, and its name in functions that contain functions, from which those get it: names that Lua's
// grammar does not allow.
inline constexpr const char *kEntryVariable = "(entry)", *kOuterEntryVariable = "(entry of outer)";
// The name of the variable with the text.
inline constexpr const char* kTextVariable = "(text)";

class Prologues {
  public:
    // The dump of a chunk with a prologue in each function in it that has room and use for one, and the variable with
    // the text in each that has room; the chunk itself, which is called once, only gets the variables. Empty where
    // nothing can be done.
    std::string add(lua_State* L, std::string_view dump);

  private:
    struct Code {
        std::string instructions;
        unsigned char registers = 0;
    };
    using Kind = std::pair<int, bool>;  // number of parameters, whether it is variadic
    struct Proto;
    class Reader;
    class Writer;
    const Code* code_for(lua_State* L, Kind kind);
    static bool may_compute(const Proto& f);
    static void add_upvalue(Proto& f, const char* name, bool of_stack, unsigned char outer);
    void extend(lua_State* L, Proto& f, size_t outer_text, size_t outer_entry);

    std::map<Kind, std::optional<Code>> codes_;
};

// lua_getupvalue and lua_setupvalue, without these variables.
const char* get_upvalue(lua_State* L, int function, int position);
const char* set_upvalue(lua_State* L, int function, int position);
// The position of the variable of the prologue among the upvalues of the function; 0: it has none.
int entry_position(lua_State* L, int function);
// The number of the function's upvalues, including these variables.
int upvalue_count(lua_State* L, int function);
// The number of these variables, the last ones among the function's upvalues.
int hidden_upvalues(lua_State* L, int function);

// Gives its text to the chunk on top of the stack, which add() made ...
void bind_text(lua_State* L, std::string_view text);
// ... and any of its functions returns it; nothing for a function without such a variable. Valid as long as the
// function.
std::optional<std::string_view> text_of(lua_State* L, int function);

// Sets the shared variable, nil at first, to the value on top of the stack, which is popped ...
void set_entry(lua_State* L);
// ... binds the chunk on top of the stack, which add() made, to it ...
void bind_entry(lua_State* L);
// (tells whether the function at the index is its value) ...
bool is_entry_function(lua_State* L, int index);
// ... and releases a function from it, about which it is never asked again. False: it contains functions, which would
// be released with it.
bool release_entry(lua_State* L, int function);

// Whether Lua calls the variable there: the call replaces the body of the Lua function one level further out.
bool is_entry_call(const lua_Debug& frame);

}  // namespace lunaria
