// Guards whose objects, keys and answers are known beforehand, asked as one question: most of what a call reads are
// methods, attributes and options, which are the same each time. They are sorted by their tables and packed, so that
// asking them reads little memory. Objects and keys that the function keeps are in a pool and are found by their
// position alone.
//
// No answers are kept, so that the questions may be asked in any order, and one by one again if an answer differs.
#pragma once

#include <unordered_set>
#include <vector>

#include "jit/trace/trace.h"

namespace lunaria::trace {

class Guards {
  public:
    // The size of the pool.
    static constexpr int kPool = 16384;

    struct Check {
        enum class What : uint8_t {
            object,  // the questions after it are put to the object at this position
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
        Kind kind = Kind::nil;  // the kind that the answer must have
        int at = 0;             // position of the object or the key in the pool, or of an upvalue
        int64_t key = 0;        // of an item
        union {
            const void* pointer = nullptr;
            int64_t bits;
        };
        const Value* text = nullptr;  // for an answer that is a text
    };

    Guards() = default;
    // The guards of these steps, all of which run before any step that changes something.
    Guards(const std::vector<Step>& steps, const std::vector<size_t>& asked);

    const std::vector<Check>& checks() const { return checks_; }
    bool empty() const { return checks_.empty(); }
    // The steps whose guards are not in this group, in their order.
    const std::vector<size_t>& rest() const { return rest_; }

  private:
    static bool expect(Check& check, const Expected& expected);
    void add_group(const std::vector<Step>& steps, const std::vector<size_t>& group, std::unordered_set<size_t>& asked);

    std::vector<Check> checks_;
    std::vector<size_t> rest_;
};

// Consecutive questions between the compiled graphs of a block.
struct GuardGroup {
    size_t begin = 0, end = 0;  // steps of the block
    Guards guards;
    std::vector<int32_t> drops;
};

}  // namespace lunaria::trace
