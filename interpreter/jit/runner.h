// Carries out a tree of traces: the whole call, or as far as what is found is what a trace expects.
#pragma once

#include "core/random.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/jit/steady.h"
#include "interpreter/jit/trace.h"

namespace lunaria::jit {

// Objects that were told apart from one another.
class Seen {
  public:
    // False: it is there already.
    bool insert(const void* object) {
        if (2 * ++count_ > entries_.size()) grow();
        Entry* at = find(object);
        if (at->round == round_) {
            --count_;
            return false;
        }
        *at = {object, round_};
        return true;
    }
    void clear() {
        ++round_;
        count_ = 0;
    }

  private:
    struct Entry {
        const void* object = nullptr;
        uint64_t round = 0;  // in which it was entered
    };
    Entry* find(const void* object) {
        const size_t mask = entries_.size() - 1;
        size_t i = (reinterpret_cast<uintptr_t>(object) >> 4) * 0x9E3779B97F4A7C15u >> 32 & mask;
        while (entries_[i].round == round_ && entries_[i].object != object) i = (i + 1) & mask;
        return &entries_[i];
    }
    void grow() {
        std::vector<Entry> before(entries_.empty() ? 16 : 2 * entries_.size());
        entries_.swap(before);
        for (const Entry& e : before)
            if (e.round == round_) *find(e.object) = e;
    }
    std::vector<Entry> entries_;  // a power of two
    uint64_t round_ = 1;
    size_t count_ = 0;
};

// How far a call has come.
struct Progress {
    std::vector<Value> slots;
    std::vector<Value> handles;  // by slot, where the very handle of a tensor goes out again
    std::vector<Block*> path;    // the blocks that it went through, the root first
    size_t done = 0;             // steps carried out, over all blocks
    bool effects = false;        // one of them was an effect
    // The step after them was carried out as well, but gave something new, or raised an error.
    bool observed = false, failed = false;
    vm::Values results;
    Value error;
    // Of tensors from outside that may have any sizes: those they had, by slot. Their slots may be empty by now.
    std::vector<std::pair<int32_t, Shape>> sizes;
    // Tensors and tables that were told apart from one another.
    Seen bodies, tables;
    std::vector<Tensor> inputs, outputs;  // of a compiled graph
    Steady* steady = nullptr;             // in a loop of calls that nothing else runs in

    void clear() {
        for (Value& v : slots) v = Value();
        path.clear();
        handles.clear();
        sizes.clear();
        bodies.clear();
        tables.clear();
        results.clear();
        error = Value();
        done = 0;
        effects = observed = failed = false;
    }
};

// The function call that is compiled: its arguments on the Lua stack.
struct Call {
    lua_State* L;
    int first, count;
    int kept = 0;                // stack position of the table of what the function keeps
    lua_State* shelf = nullptr;  // see Guards
    int table = LUA_NOREF;       // in the registry: the arguments, for whoever runs in another C function
};

// True when the call is done: `results` are there. False where no branch of the tree goes on.
// `flat`: nothing is compiled, every operator runs by itself.
bool run(LuaHost& host, const Call& call, Tree& tree, bool flat, Progress& progress, vm::Values& results);

// Reads and other questions to the outside, alike for the runner and the recorder. They leave the value on the stack.
void push_read(LuaHost& host, lua_State* L, const Value& table, const Value& key);
void push_metatable(LuaHost& host, lua_State* L, const Value& table);
void push_upvalue(LuaHost& host, lua_State* L, const Value& function, int position);
void push_next(LuaHost& host, lua_State* L, const Value& table, const Value& key);
int64_t raw_length(LuaHost& host, lua_State* L, const Value& table);
// False: f raised `error`.
bool call_function(LuaHost& host, const Value& f, std::span<const Value> args, const Step& step, vm::Values& results,
                   Value& error);
// Runs an operator; the result has a body of its own.
Value run_operator(const Op& op, std::span<const Value> args);
// A number as a tensor without axes.
Value scalar_tensor(const Value& number, DType dtype);
// An operation on plain numbers, or a comparison of them.
Value run_number(const Op& op, std::span<const Value> args);
// A new table: sizes, metatable, then keys and values in the order of insertion; a nil value takes the key out again.
Value make_table(LuaHost& host, lua_State* L, std::span<const Value> recipe);
// Whether a result is what was expected. `slots` for what must be the same object as one of them.
bool fits(const Expected& expected, const Value& v, std::span<const Value> slots);

}  // namespace lunaria::jit
