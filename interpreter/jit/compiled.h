// What a compiled function has beside its records: options, counts, what became of its calls.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpreter/jit/runner.h"

namespace lunaria::jit {

constexpr int64_t kFirstWait = 4;

struct Function {
    explicit Function(LuaHost& host) : host(host) {}
    LuaHost& host;
    int keepers = LUA_NOREF, keeper = -1;  // see LuaReference
    lua_State* pool = nullptr;             // what the function keeps once more, see Guards
    std::optional<bool> stops;             // whether it calls breakpoint()
    Tree tree;
    Limits limits;
    std::string eager;    // why it is left to Lua for good; empty while it is not
    std::string refusal;  // why the last recording was stopped; empty while none was
    // Until so many calls Lua does what is not compiled yet; after each refusal the wait is twice as long.
    int64_t refused_at = -1, retry_at = 0, wait = kFirstWait;
    bool stopped_late = false;  // recordings are stopped behind an effect: until retry_at Lua does all calls
    int64_t runs_before = -1;   // compiled calls when the last recording was stopped
    bool flat = false;          // operators run one by one
    bool unasked = false;       // it is compiled because it is called often
    bool full = false;          // being left to Lua is an error
    int64_t patience = 0;       // calls before it is compiled
    std::string label;          // what the user knows it by; empty: the function's own name and line
    int64_t calls = 0, runs = 0, interpreted = 0, resumed = 0, fruitless = 0, recorded = 0;
    struct Recording {
        std::string surprise, failure;
        double seconds = 0;
        size_t steps = 0;
    };
    std::vector<Recording> recordings;
    bool busy = false;
    vm::Values results;                         // of the last call, until they are taken
    std::unordered_map<std::string, int> keys;  // where the texts are that tables are indexed by
    Progress progress;                          // of the call that runs; its memory is kept for the next
};

// Of what ms.jit gave, at the index; throws a Lua error where it is something else.
Function& function_at(lua_State* L, int index);

// For the module: the records as text, the kernels of their regions, and what is known of the function as a table.
int text(lua_State* L);
int kernels(lua_State* L);
int report(lua_State* L);

}  // namespace lunaria::jit
