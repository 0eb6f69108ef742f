#include "interpreter/jit/captured_numbers.h"

#include <new>
#include <type_traits>

namespace lunaria::jit {

bool CapturedNumbers::differ(const void* text, int position, const Value& number) {
    const size_t hash = reinterpret_cast<size_t>(text) / 16 * 31 + static_cast<size_t>(position);
    Entry& entry = entries_[hash % entries_.size()];
    const bool is_integer = number.kind() == Value::Kind::integer;
    const Entry now{
        text, position, false, is_integer, is_integer ? 0 : number.number(), is_integer ? number.integer() : 0};
    if (entry.text != text || entry.position != position) {
        entry = now;
        return false;
    }
    // Of another kind it is another case, and one of the same number is no news.
    if (entry.is_integer != is_integer) return false;
    entry.differs = entry.differs || entry.integer != now.integer || entry.number != now.number;
    return entry.differs;
}

CapturedNumbers& captured_numbers_of(lua_State* L) {
    static const char key = 0;
    static_assert(std::is_trivially_destructible_v<CapturedNumbers>);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TNIL) {
        lua_pop(L, 1);
        new (lua_newuserdatauv(L, sizeof(CapturedNumbers), 0)) CapturedNumbers;
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    }
    auto* numbers = static_cast<CapturedNumbers*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return *numbers;
}

}  // namespace lunaria::jit
