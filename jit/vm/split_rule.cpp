#include "jit/vm/split_rule.h"

#include <algorithm>
#include <utility>

#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

// Whether some context of this thread leaves anything: programs without them look no further.
bool& any_leaves() {
    thread_local bool any = false;
    return any;
}

class Mark final : public Object {};
// The object whose shadow has what is left.
const Value& mark_of_leavings() {
    thread_local const Value mark = make_object<Mark>();
    return mark;
}

// The rule of the operands in `active`, of which the marks of the others are taken away.
Value part(const Op& op, std::span<const Value> args, const Value& result, uint64_t active, uint16_t mark) {
    Values marked(args);
    for (size_t i = 0; i < marked.size(); ++i)
        if (!(active >> std::min<size_t>(i, 63) & 1) && marked[i].is_tensor())
            marked[i].set_marks(marked[i].marks() & static_cast<uint16_t>(~mark));
    return make_pullback(op, marked, result, mark);
}

}  // namespace

uint64_t versions_of(const Values& captures) {
    uint64_t versions = 0;
    for (const Value& v : captures)
        if (v.is_tensor()) versions += v.tensor().version();
    return versions;
}

bool is_unchanged(const Closure& rule) { return versions_of(rule.captures) == rule.versions; }

Error changed_in_place(const Closure& rule) {
    return state_error(rule.function->graph.name,
                       "a tensor that its gradient needs was changed in place after it was used")
        .hint("make a new tensor instead (y = x + 1, not x:add_(1)), or call the gradient before the change");
}

void leave_parameters(Context& context) {
    any_leaves() = true;
    context.shadow(mark_of_leavings());
}

std::vector<Leavings::Rule> take_leavings(Context& context) {
    Shadow* place = context.find(mark_of_leavings());
    const Value held = place ? place->take(Value(0)) : Value();
    auto* all = object_as<Leavings>(held);
    return all ? std::move(all->rules) : std::vector<Leavings::Rule>();
}

SplitRule::SplitRule(Value now, Value later, Shadow& place, std::vector<Value> shadows)
    : now(std::move(now)), later(std::move(later)), place_(share(place)), shadows_(std::move(shadows)) {}

void SplitRule::leave(const Values& cotangents) const {
    auto& place = *static_cast<Shadow*>(place_.object());
    Value held = place.get(Value(0));
    if (held.is_nil()) {
        held = make_object<Leavings>();
        place.put(Value(0), held);
    }
    static_cast<Leavings*>(held.object())->rules.push_back({later, cotangents, shadows_});
}

Value without_leavings(Value rule, std::span<const Value> contexts, const Values& cotangents) {
    const auto* split = object_as<SplitRule>(rule);
    if (!split) return rule;
    if (!contexts.empty()) throw state_error("autodiff", "what is left for later has no derivative of its own");
    if (std::ranges::any_of(cotangents, [](const Value& d) { return !d.is_nil(); })) split->leave(cotangents);
    return split->now;
}

Value make_pullback_in(Context& context, const Op& op, std::span<const Value> args, const Value& result) {
    Shadow* const place = any_leaves() && !watcher() ? context.find(mark_of_leavings()) : nullptr;
    if (!place) return make_pullback(op, args, result, context.mark);
    std::vector<Value> shadows(args.size());
    uint64_t now = 0, later = 0;
    for (size_t i = 0; i < std::min<size_t>(args.size(), 63); ++i) {
        if (!(marks_of(args[i]) & context.mark)) continue;
        Shadow* const shadow = args[i].is_tensor() ? context.find(args[i]) : nullptr;
        const bool waits = shadow && !shadow->is_box();
        if (waits) shadows[i] = share(*shadow);
        (waits ? later : now) |= uint64_t{1} << i;
    }
    if (!later || args.size() > 63) return make_pullback(op, args, result, context.mark);
    Value first = now ? part(op, args, result, now, context.mark) : Value();
    return make_object<SplitRule>(std::move(first), part(op, args, result, later, context.mark), *place,
                                  std::move(shadows));
}

}  // namespace lunaria::vm
