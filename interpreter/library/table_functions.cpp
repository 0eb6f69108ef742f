#include "interpreter/library/table_functions.h"

#include <initializer_list>
#include <limits>
#include <utility>

#include "core/base/interrupt.h"
#include "interpreter/protect.h"
#include "interpreter/values/callables.h"

namespace lunaria {

namespace {

// Checks for a table, or a value whose metatable has the events that the function needs.
void check_table(lua_State* L, int index, std::initializer_list<const char*> needs) {
    if (lua_istable(L, index)) return;
    bool has_all = lua_getmetatable(L, index) != 0;
    const int top = lua_gettop(L);
    for (const char* name : needs) {
        if (!has_all) break;
        lua_pushstring(L, name);
        has_all = lua_rawget(L, top) != LUA_TNIL;
        lua_settop(L, top);
    }
    if (!has_all) luaL_checktype(L, index, LUA_TTABLE);
    lua_pop(L, 1);
}

// Looks at an interrupt once in a while, in functions whose calls take some ten nanoseconds each.
class Look {
  public:
    void operator()() {
        if (++count_ % kTurn == 0) poll_interrupt();
    }

  private:
    static constexpr unsigned kTurn = 1 << 14;
    unsigned count_ = 0;
};

// Quicksort around the median of three, as in Lua's library, so that equal elements, and elements in an inconsistent
// order, end in the same places and with the same errors. The table is argument 1, the order argument 2 or nil.
class TableSort {
  public:
    explicit TableSort(lua_State* L) : L_(L), has_order_(!lua_isnil(L, 2)) {}

    // `turn` selects other pivots than the middle once a split was bad.
    void sort(lua_Unsigned low, lua_Unsigned high, lua_Unsigned turn = 0) {
        while (low < high) {
            order(low, high);
            if (high - low == 1) return;
            const lua_Unsigned middle = pivot_place(low, high, turn);
            order_middle(low, middle, high);
            if (high - low == 2) return;
            const lua_Unsigned split = partition(low, middle, high);
            // The smaller part first, so that the depth is at most that of halving.
            lua_Unsigned smaller = 0;
            if (split - low < high - split) {
                sort(low, split - 1, turn);
                smaller = split - low;
                low = split + 1;
            } else {
                sort(split + 1, high, turn);
                smaller = high - split;
                high = split - 1;
            }
            if (low < high && (high - low) / kBadSplit > smaller) turn = wheel_ = wheel_ * 1664525 + 1013904223;
        }
    }

  private:
    static constexpr lua_Unsigned kSmall = 100, kBadSplit = 128;

    // Whether value a of the stack comes before value b.
    bool less(int a, int b) {
        look_();
        if (!has_order_) return lua_compare(L_, a, b, LUA_OPLT) != 0;
        a = lua_absindex(L_, a);
        b = lua_absindex(L_, b);
        lua_pushvalue(L_, 2);
        lua_pushvalue(L_, a);
        lua_pushvalue(L_, b);
        lua_call(L_, 2, 1);
        const bool result = lua_toboolean(L_, -1) != 0;
        lua_pop(L_, 1);
        return result;
    }
    void get(lua_Unsigned i) { lua_geti(L_, 1, static_cast<lua_Integer>(i)); }
    void set(lua_Unsigned i) { lua_seti(L_, 1, static_cast<lua_Integer>(i)); }

    // Puts elements i < j into their order.
    void order(lua_Unsigned i, lua_Unsigned j) {
        get(i);
        get(j);
        if (!less(-1, -2)) return lua_pop(L_, 2);
        set(i);
        set(j);
    }
    // The median of the three to the middle; the outer two are in order.
    void order_middle(lua_Unsigned low, lua_Unsigned middle, lua_Unsigned high) {
        get(middle);
        get(low);
        if (less(-2, -1)) {
            set(middle);
            set(low);
            return;
        }
        lua_pop(L_, 1);
        get(high);
        if (!less(-1, -2)) return lua_pop(L_, 2);
        set(middle);
        set(high);
    }
    lua_Unsigned pivot_place(lua_Unsigned low, lua_Unsigned high, lua_Unsigned turn) const {
        if (high - low < kSmall || turn == 0) return (low + high) / 2;
        // Within the inner half.
        const lua_Unsigned quarter = (high - low) / 4;
        return turn % (quarter * 2) + low + quarter;
    }
    // Moves elements that come before the pivot to its left and elements that come after it to its right; returns its
    // place.
    lua_Unsigned partition(lua_Unsigned low, lua_Unsigned pivot, lua_Unsigned high) {
        const lua_Unsigned kept = high - 1;  // the pivot's place meanwhile
        get(pivot);
        lua_pushvalue(L_, -1);
        get(kept);
        set(pivot);
        set(kept);
        lua_Unsigned i = low, j = kept;
        for (;;) {
            while (get(++i), less(-1, -2)) {
                if (i == kept) luaL_error(L_, "invalid order function for sorting");
                lua_pop(L_, 1);
            }
            while (get(--j), less(-3, -1)) {
                if (j < i) luaL_error(L_, "invalid order function for sorting");
                lua_pop(L_, 1);
            }
            if (j < i) break;
            set(i);
            set(j);
        }
        // Exchanges the pivot, in its temporary place, with the element in its final place.
        lua_pop(L_, 1);
        set(kept);
        set(i);
        return i;
    }

    lua_State* L_;
    bool has_order_;
    Look look_;
    lua_Unsigned wheel_ = 20241;
};

int sort(lua_State* L) {
    use_as_function(L, 2);
    check_table(L, 1, {"__index", "__newindex", "__len"});
    const lua_Integer count = luaL_len(L, 1);
    if (count < 2) return 0;
    luaL_argcheck(L, count < std::numeric_limits<int>::max(), 1, "array too big");
    if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    TableSort(L).sort(1, static_cast<lua_Unsigned>(count));
    return 0;
}

void add_element(lua_State* L, luaL_Buffer& text, lua_Integer i) {
    lua_geti(L, 1, i);
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid value (%s) at index %I in table for 'concat'", luaL_typename(L, -1),
                   static_cast<LUAI_UACINT>(i));
    luaL_addvalue(&text);
}

int concat(lua_State* L) {
    check_table(L, 1, {"__index", "__len"});
    lua_Integer last = luaL_len(L, 1);
    size_t gap_size = 0;
    const char* gap = luaL_optlstring(L, 2, "", &gap_size);
    const lua_Integer first = luaL_optinteger(L, 3, 1);
    last = luaL_optinteger(L, 4, last);
    Look look;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (lua_Integer i = first; i <= last; ++i) {
        look();
        add_element(L, text, i);
        if (i == last) break;  // the largest integer has no successor
        luaL_addlstring(&text, gap, gap_size);
    }
    luaL_pushresult(&text);
    return 1;
}

int move(lua_State* L) {
    const lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3), to = luaL_checkinteger(L, 4);
    const int target = lua_isnoneornil(L, 5) ? 1 : 5;
    check_table(L, 1, {"__index"});
    check_table(L, target, {"__newindex"});
    if (last >= first) {
        constexpr lua_Integer kMost = std::numeric_limits<lua_Integer>::max();
        luaL_argcheck(L, first > 0 || last < kMost + first, 3, "too many elements to move");
        const lua_Integer count = last - first + 1;
        luaL_argcheck(L, to <= kMost - count + 1, 4, "destination wrap around");
        Look look;
        auto copy = [&](lua_Integer i) {
            look();
            lua_geti(L, 1, first + i);
            lua_seti(L, target, to + i);
        };
        // Elements must be read before they are overwritten.
        const bool apart = to > last || to <= first || (target != 1 && !lua_compare(L, 1, target, LUA_OPEQ));
        if (apart)
            for (lua_Integer i = 0; i < count; ++i) copy(i);
        else
            for (lua_Integer i = count - 1; i >= 0; --i) copy(i);
    }
    lua_pushvalue(L, target);
    return 1;
}

}  // namespace

void install_table_functions(lua_State* L) {
    lua_getglobal(L, LUA_TABLIBNAME);
    const std::pair<const char*, lua_CFunction> functions[] = {
        {"sort", protect<sort>}, {"concat", protect<concat>}, {"move", protect<move>}};
    for (auto [name, function] : functions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    lua_pop(L, 1);
}

}  // namespace lunaria
