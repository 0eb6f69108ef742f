// The values of a stopped program as a tree for graphical front ends, whose protocols show them line by line and ask
// for parts by number.
#pragma once

#include <functional>
#include <lua.hpp>
#include <set>
#include <string>
#include <vector>

#include "interpreter/debugger/debugger.h"
#include "interpreter/display/mime.h"

namespace lunaria {

// The value at `index` in one line, shortened where it is long.
std::string value_line(lua_State* T, int index);

struct ShownValue {
    std::string name, value, type;
    std::string evaluate;           // Lua code for the value, in its frame; may be empty
    int reference = 0;              // to its parts, 0 when there are none
    size_t named = 0, indexed = 0;  // numbers of parts; indexed ones come first
};

// Everything is for Lua's thread. A frame of npos means globals alone. Errors of the program's code are thrown as
// state_error with Lua's message.
class DebugVariables {
  public:
    static constexpr size_t npos = static_cast<size_t>(-1);
    struct Scope {
        std::string name;
        int reference;
        size_t count;
    };

    // Globals that exist already at this moment do not belong to the user and are not shown.
    explicit DebugVariables(State& state);
    ~DebugVariables();
    DebugVariables(const DebugVariables&) = delete;
    DebugVariables& operator=(const DebugVariables&) = delete;

    // To be called when the program goes on: references become invalid.
    void clear();
    std::vector<Scope> scopes(size_t frame);
    // Throws argument_error for an invalid reference. `start` and `count` (0: all) select parts; `filter` "named" or
    // "indexed" restricts them to a kind.
    std::vector<ShownValue> parts(int reference, const std::string& filter = {}, size_t start = 0, size_t count = 0);
    std::vector<ShownValue> globals();
    ShownValue evaluate(size_t frame, const std::string& code);
    // Gives a variable or a part the value of the code.
    ShownValue set(int reference, const std::string& name, const std::string& code);
    void copy_to_globals(size_t frame, const std::string& code, const std::string& name);
    MimeBundle rich(size_t frame, const std::string& code);

  private:
    enum class Kind { locals, upvalues, globals, value };
    struct Reference {
        Kind kind;
        size_t frame;
        std::string evaluate;
        int slot = 0;  // place of a value in the table of kept ones
    };
    using Visit = std::function<bool(const std::string& name, const std::string& evaluate)>;

    void guarded(const std::function<void(lua_State*)>& body);
    const Reference& at(int reference) const;
    ShownValue shown(lua_State* T, std::string name, std::string evaluate, size_t frame);
    // Calls `visit` with each part on top of T's stack until it answers false.
    void for_each_part(lua_State* T, const Reference& r, const std::string& filter, const Visit& visit);
    void for_each_field(lua_State* T, const std::string& path, const std::string& filter, const Visit& visit);
    void push_kept(lua_State* T, const Reference& r);
    std::vector<std::string> global_names(lua_State* T);

    State& state_;
    std::vector<Reference> references_;
    std::set<std::string> before_;
    int values_ = LUA_NOREF;
};

}  // namespace lunaria
