#include "jit/trace/captured_numbers.h"

namespace lunaria::trace {

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
    // A number of another kind is another case; the same number is nothing new.
    if (entry.is_integer != is_integer) return false;
    entry.differs = entry.differs || entry.integer != now.integer || entry.number != now.number;
    return entry.differs;
}

}  // namespace lunaria::trace
