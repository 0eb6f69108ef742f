#include "core/custom/defined_ops.h"

#include "core/operator/open.h"

namespace lunaria {

std::string DefinedOps::free_name(const std::string& name) const {
    std::string free = name;
    for (int n = 2; by_name_.contains(free); ++n) free = str(name, "#", n);
    return free;
}

void DefinedOps::enter(Op& op) {
    op.id = next_extra_id();
    by_name_[std::string(op.name())] = &op;
}

const Op* DefinedOps::find(std::string_view name) const {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? nullptr : found->second;
}

DefinedOps& defined_ops() {
    static auto* instance = new DefinedOps;
    return *instance;
}

}  // namespace lunaria
