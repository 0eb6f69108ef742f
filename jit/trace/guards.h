// Questions of a trace whose objects, keys and answers are known beforehand, asked as one: most of what a call reads
// are methods, attributes and options, the same each time. They are put in the order of their tables, and packed, so
// that asking them reads little memory. What the function keeps lies in a pool, where objects and keys are found by
// their place alone.
//
// Nothing is kept of the answers, so that they may be asked in any order, and anew one by one should one be another.
#pragma once

#include <unordered_set>
#include <vector>

#include "jit/trace/trace.h"

namespace lunaria::trace {

class Guards {
  public:
    // Places of the pool.
    static constexpr int kPool = 16384;

    struct Check {
        enum class What : uint8_t {
            object,  // those after it ask the one at this place
            read,    // by a text
            item,    // by an integer
            metatable,
            upvalue,
            length,
            next,  // after the key that was found last
            value  // of that key
        };
        enum class Kind : uint8_t { nil, boolean, integer, number, text, object };
        What what = What::object;
        bool first = false;     // of `next`: the first key
        Kind kind = Kind::nil;  // that the answer must have, and what it must be
        int at = 0;             // place of the object or the key, or the position of an upvalue
        int64_t key = 0;        // of an item
        union {
            const void* pointer = nullptr;
            int64_t bits;
        };
        const Value* text = nullptr;  // of an answer that is one
    };

    Guards() = default;
    // Of these steps, all of which are carried out before anything that changes something.
    Guards(const std::vector<Step>& steps, const std::vector<size_t>& asked);

    const std::vector<Check>& checks() const { return checks_; }
    bool empty() const { return checks_.empty(); }
    // The steps among them that are not asked here, in their order.
    const std::vector<size_t>& rest() const { return rest_; }

  private:
    static bool expect(Check& check, const Expected& expected);
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

}  // namespace lunaria::trace
