#include "jit/vm/write_log.h"

#include "jit/vm/code.h"
#include "jit/vm/handlers.h"
#include "jit/vm/split_rule.h"

namespace lunaria::vm {

void WriteLog::before_write(const Tensor& tensor, Context& context) {
    auto entry = std::make_shared<const Overwritten>(
        Overwritten{tensor.body(), write_clock()++, tensor.version(), own_handle(Value(tensor)).tensor()});
    context.overwritten.push_back(entry);
    if (overwritten_.size() == overwritten_.capacity())
        std::erase_if(overwritten_, [](const auto& e) { return e.expired(); });
    overwritten_.push_back(entry);
    // A context may be gone when its backward pass begins.
    recent_.push_back(std::move(entry));
}

// Gives captured tensors the content that they had at the time of capture; false if it is unknown.
bool WriteLog::restore(uint64_t clock, uint64_t expected, Values& captures) const {
    uint64_t versions = 0;
    for (Value& v : captures) {
        if (!v.is_tensor()) continue;
        uint32_t version = v.tensor().version();
        for (const auto& weak : overwritten_) {
            const auto entry = weak.lock();
            if (!entry || entry->body != v.tensor().body() || entry->clock < clock) continue;
            const uint16_t marks = v.marks();
            version = entry->version;
            v = Value(entry->content);
            v.set_marks(marks);
            break;
        }
        versions += version;
    }
    return versions == expected;
}

void WriteLog::check(Closure& pullback) const {
    if (is_unchanged(pullback)) return;
    Values captures = pullback.captures;
    if (!restore(pullback.clock, pullback.versions, captures)) throw changed_in_place(pullback);
    pullback.captures = std::move(captures);
    pullback.versions = versions_of(pullback.captures);
    pullback.clock = write_clock();
}

}  // namespace lunaria::vm
