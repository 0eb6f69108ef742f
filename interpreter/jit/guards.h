// Questions of a trace whose objects, keys and answers are known beforehand, asked as one: most of what a call reads
// are methods, attributes and options, the same each time. They are put in the order of their tables, and packed, so
// that asking them reads little memory. Objects and keys lie on the stack of a Lua thread that never runs, the pool:
// there they are found by their place alone.
//
// Nothing is kept of the answers, so that they may be asked in any order, and anew one by one should one be another.
#pragma once

#include <lua.hpp>
#include <unordered_set>
#include <vector>

#include "interpreter/jit/trace.h"

namespace lunaria::jit {

class Guards {
  public:
    // Places of the pool, and what has to be free above it.
    static constexpr int kPool = 16384, kSpace = 40;

    Guards() = default;
    // Of these steps, all of which are carried out before anything that changes something.
    Guards(const std::vector<Step>& steps, const std::vector<size_t>& asked);

    // Whether all are answered as expected. `pool` has what the function keeps on its stack, each at its place.
    bool hold(lua_State* pool) const;
    bool empty() const { return checks_.empty(); }
    // The steps among them that are not asked here, in their order.
    const std::vector<size_t>& rest() const { return rest_; }

  private:
    struct Check {
        enum class What : uint8_t {
            object,  // those after it ask the one at this place
            read,    // by a text
            item,    // by an integer
            metatable,
            upvalue,
            length,
            next,  // after the key on the stack
            value  // of that key
        };
        What what = What::object;
        bool first = false;      // of `next`: the first key
        int8_t type = LUA_TNIL;  // that the answer must have, and what it must be
        bool integer = false;    // of a number
        int at = 0;              // place of the object or the key, or the position of an upvalue
        int64_t key = 0;         // of an item
        union {
            const void* pointer = nullptr;
            int64_t bits;
        };
        const Value* text = nullptr;  // of an answer that is one
    };
    static bool expect(Check& check, const Expected& expected);
    static bool fits(const Check& check, lua_State* pool, int type, int index);
    void add_group(const std::vector<Step>& steps, const std::vector<size_t>& group, std::unordered_set<size_t>& asked);

    std::vector<Check> checks_;
    std::vector<size_t> rest_;
};

// Questions, one after the other, that no compiled graph has to wait for.
struct GuardGroup {
    size_t begin = 0, end = 0;  // steps of the block
    Guards guards;
    std::vector<int32_t> drops;
};

}  // namespace lunaria::jit
