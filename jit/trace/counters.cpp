#include "jit/trace/counters.h"

#include <functional>
#include <span>

namespace lunaria::trace {

bool Counters::has(const vm::Machine& m, const vm::Instr* instr, const Value& key) {
    if (!m.is_running()) return false;
    const vm::Code& code = m.code();
    // The next function may be about to run, in another frame.
    const std::less<> before;
    if (before(instr, code.instrs.data()) || !before(instr, code.instrs.data() + code.instrs.size())) return false;
    auto [found, fresh] = writes_.try_emplace(&code);
    Writes& writes = found->second;
    if (fresh) writes.owner = m.owner();
    for (const vm::Instr& i : fresh ? std::span<const vm::Instr>(code.instrs) : std::span<const vm::Instr>()) {
        static const Op& raw = lua::primitive("raw_set");
        const lua::Access access = lua::facts(i.op).access;
        if (access == lua::Access::writes_cell) writes.cells.insert(code.slots[i.slots].at);
        if (access != lua::Access::writes_field || i.op == &raw) continue;
        const vm::Slot& slot = code.slots[i.slots + (lua::facts(i.op).ordered ? 2 : 1)];
        if (slot.at >= 0 || slot.items >= 0) continue;
        const Value& constant = code.constants[static_cast<size_t>(~slot.at)];
        if (constant.kind() == Value::Kind::string) writes.keys.insert(constant.string());
    }
    if (key.kind() == Value::Kind::string) return writes.keys.contains(key.string());
    return key.is_nil() && lua::facts(instr->op).access == lua::Access::reads_cell &&
           writes.cells.contains(code.slots[instr->slots].at);
}

}  // namespace lunaria::trace
