#include "core/operator/open.h"

#include <map>
#include <mutex>

namespace lunaria {

namespace {

// Never destroyed: graphs refer to them.
struct Known {
    std::mutex mutex;
    std::map<std::pair<const Op*, uint64_t>, std::unique_ptr<Op>> ops;
};
Known& known() {
    static auto* instance = new Known;
    return *instance;
}

}  // namespace

int next_extra_id() {
    static std::atomic<int> next = static_cast<int>(registry().all().size());
    return next++;
}

bool is_open_operator(const Op& op) {
    return op.belongs_to(registry()) && op.id >= static_cast<int>(registry().all().size());
}

const Op* open_operator(const Op& op, uint64_t operands) {
    if (!op.open_fn || operands == 0) return nullptr;
    Known& k = known();
    std::lock_guard lock(k.mutex);
    std::unique_ptr<Op>& made = k.ops[{&op, operands}];
    if (made) return made.get();
    made = std::make_unique<Op>(SignatureText("open()"), registry());
    made->signature = op.signature;
    for (size_t i = 0; i < made->signature.params.size() && i < 64; ++i)
        if (operands >> i & 1) made->signature.params[i].type = ArgType::real;
    made->id = next_extra_id();
    made->promotes = true;
    made->expand_fn = op.open_fn;
    made->has_wide_rules = true;
    made->effect(op.declared_effect());
    return made.get();
}

}  // namespace lunaria
