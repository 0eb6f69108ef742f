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
    for (const vm::Instr& i : fresh ? std::span<const vm::Instr>(code.instrs) : std::span<const vm::Instr>()) {
        const std::string_view name = i.op ? i.op->name() : std::string_view();
        if (name == "cell_set") writes.cells.insert(code.slots[i.slots].at);
        if (name != "set_index" && name != "j_set_index") continue;
        const vm::Slot& slot = code.slots[i.slots + (name == "set_index" ? 1 : 2)];
        if (slot.at >= 0 || slot.items >= 0) continue;
        const Value& constant = code.constants[static_cast<size_t>(~slot.at)];
        if (constant.kind() == Value::Kind::string) writes.keys.insert(constant.string());
    }
    if (key.kind() == Value::Kind::string) return writes.keys.contains(key.string());
    return key.is_nil() && instr->op && instr->op->name() == "cell_get" &&
           writes.cells.contains(code.slots[instr->slots].at);
}

}  // namespace lunaria::trace
