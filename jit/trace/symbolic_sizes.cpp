#include "jit/trace/symbolic_sizes.h"

#include <algorithm>

#include "jit/trace/recording.h"
#include "jit/trace/size_pattern.h"

namespace lunaria::trace {

bool Sizes::of(const Value& tensor) const {
    if (!any()) return false;
    const int32_t slot = r_.slot_of(tensor);
    return slot >= 0 && at(slot);
}

bool Sizes::varies(const Value& tensor) const {
    if (known_.count == 0) return false;
    const int32_t slot = r_.slot_of(tensor);
    return slot >= 0 && known_.open[static_cast<size_t>(slot)];
}

void Sizes::look(const Value& tensor) { looked_ |= known_.closed && varies(tensor); }

bool Sizes::follow(const Step& step) const {
    bool follows = false;
    if (known_.closed && known_.count > 0)
        for_each_slot(step, [&](int32_t slot) { follows |= known_.open[static_cast<size_t>(slot)]; });
    return follows;
}

bool Sizes::in(const Value& operand) const {
    bool open = false;
    for_each_slot(operand, [&](int32_t slot) {
        open |= at(slot) || (operand.is_list() && r_.values()[static_cast<size_t>(slot)].is_number());
    });
    return open;
}

void Sizes::note(int32_t slot, bool open, const Value* source) {
    const auto at = static_cast<size_t>(slot);
    if (known_.open.size() <= at) known_.open.resize(at + 1);
    known_.count += static_cast<int>(open) - static_cast<int>(known_.open[at]);
    known_.open[at] = open;
    if (open && source && !known_.closed) sources_.push_back(*source);
}

void Sizes::decide(const Value& tensor) {
    if (!r_.records() || !tensor.is_tensor()) return;
    look(tensor);
    if (!of(tensor)) return;
    looked_ = true;
    rely_on(tensor);
}

void Sizes::decide_attributes(const Value& tensor) {
    if (r_.records() && of(tensor)) rely_on(tensor);
}

void Sizes::rely_on(const Value& tensor) {
    r_.event(Step(Step::Kind::is, {r_.operand(tensor)}), [&](vm::Values& results) { results.push_back(tensor); });
}

void Sizes::decide_all() {
    const Known before = known_;
    for (const Value& tensor : sources_) decide_attributes(tensor);
    // The sizes of the others follow from these.
    const size_t slots = known_.open.size();
    known_ = before;
    known_.open.resize(slots);
    known_.closed = true;
}

bool Sizes::by_content(const Op& op, std::span<const Value> args, std::span<const Value> real) const {
    if (std::ranges::any_of(args, SymbolicNumbers::holds)) return true;
    if (!any()) return false;
    if (!op.infer_fn) return true;
    const Types types = op.infer_fn(lunaria::Call(op, real, promoted_dtype(op, real)));
    return std::any_of(types.begin(), types.end(), [](const TensorType& t) { return !t.shape.known(); });
}

void Sizes::enter(const Step& step, vm::Values& results) {
    if (!step.sizes) return;
    step.sizes->append_numbers(r_.values(), results);
    way_ = step.sizes;
}

void Sizes::lift(const Step& known, Step& s) const {
    if (!way_) return;
    const auto lifted = [&](const auto& self, const Value& there, Value& here) -> void {
        if (there.is_node() && here.is_number()) {
            if (identical(r_.values()[static_cast<size_t>(there.node()->slot)], here)) here = there;
        } else if (there.is_list() && here.is_list() && there.items().size() == here.items().size()) {
            std::vector<Value> items = here.items();
            for (size_t k = 0; k < items.size(); ++k) self(self, there.items()[k], items[k]);
            here = Value::list(std::move(items));
        }
    };
    for (size_t k = 0; k < std::min(known.args().size(), s.args().size()); ++k)
        lifted(lifted, known.args()[k], s.node->args[k]);
}

void Sizes::leave_behind(const Step& step) {
    if (!way_ || step.kind == Step::Kind::finish) return;
    const std::shared_ptr<const SizePattern> way = std::exchange(way_, nullptr);
    for (const SizePattern::Source& source : way->sources) rely_on(r_.values()[static_cast<size_t>(source.slot)]);
}

Sizes::Known Sizes::known() const {
    Known known = known_;
    known.sources = sources_.size();
    return known;
}

void Sizes::restore(const Known& known) {
    const size_t slots = known_.open.size();
    known_ = known;
    known_.open.resize(slots);
    sources_.resize(known.sources);
}

Value size_of(Recording& r, const Value& tensor, int axis) {
    const Value size(tensor.tensor().shape()[axis]);
    if (r.records() && r.machine.region()) r.sizes.look(tensor);
    if (!r.records() || r.machine.region() || !r.sizes.varies(tensor)) return size;
    Step s(Step::Kind::size, {r.operand(tensor), Value(axis)});
    return r.event(std::move(s), [&](vm::Values& values) { values.push_back(size); })[0];
}

Value open_shape(Recording& r, const Value& tensor) {
    if (!r.records() || !r.sizes.varies(tensor)) return {};
    const Value table = r.tables.adopt(r.host.index(tensor, Value("shape")));
    for (int axis = 0; axis < tensor.tensor().rank(); ++axis)
        r.tables.set(*r.tables.find(table), Value(axis + 1), size_of(r, tensor, axis));
    return table;
}

SymbolicSizes::SymbolicSizes(Recording& recording, std::span<const Value> args) : r_(recording) {
    Recording& r = r_;
    // Rules of derivatives and of batches look at the numbers themselves.
    if (!r.records() || !r.has_numbers() || r.machine.depth > 0 || r.machine.region()) return;
    for (size_t i = 0; i < args.size(); ++i) {
        if (!r.host.is_table(args[i]) || !r.tables.find(args[i])) continue;
        for (int64_t k = 1;; ++k) {
            const Value key(k), v = r.host.raw_get(args[i], key);
            if (v.is_nil()) break;
            const SymbolicNumber* number = symbolic_number(v);
            if (number && !v.marks() && number->value.kind() == Value::Kind::integer)
                lent_.push_back({i, args[i], key, v});
        }
    }
    for (const Lent& one : lent_) r.host.raw_set(one.table, one.key, r.plain(one.number));
}

SymbolicSizes::~SymbolicSizes() {
    for (const Lent& one : lent_) r_.host.raw_set(one.table, one.key, one.number);
}

vm::Host::Bound SymbolicSizes::bind(const Op& op, std::span<const Value> real) {
    vm::Host::Bound bound;
    try {
        bound = r_.host.bind(op, real);
    } catch (const Error&) {
        // The operator refuses these numbers: the record is for them.
        decide();
        throw;
    }
    if (!lent_.empty()) put_into(bound);
    return bound;
}

void SymbolicSizes::decide() {
    for (const Lent& one : lent_)
        if (!one.stays) r_.decided(one.number);
}

void SymbolicSizes::put_into(vm::Host::Bound& bound) {
    for (size_t i = 0; i < bound.args.size(); ++i) {
        if (!bound.args[i].is_list() || bound.paths[i].size() != 1) continue;
        const vm::Host::Bound::Path& path = bound.paths[i][0];
        if (!path.name.is_nil() || path.item != 0) continue;
        std::vector<Value> items = bound.args[i].items();
        bool any = false;
        for (Lent& one : lent_) {
            const auto at = static_cast<size_t>(one.key.integer()) - 1;
            if (one.argument != path.argument || at >= items.size()) continue;
            if (!identical(items[at], r_.plain(one.number))) continue;
            items[at] = one.number;
            any = one.stays = true;
        }
        if (any) bound.args[i] = Value::list(std::move(items));
    }
    decide();
}

}  // namespace lunaria::trace
