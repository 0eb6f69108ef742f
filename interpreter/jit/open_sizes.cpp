#include "interpreter/jit/open_sizes.h"

#include "interpreter/jit/recorder.h"

namespace lunaria::jit {

Value size_of(Recorder& r, const Value& tensor, int axis) {
    const Value size(tensor.tensor().shape()[axis]);
    const auto found = r.slot_of_.find(vm::identity_of(tensor));
    if (found == r.slot_of_.end() || !r.sizes_[static_cast<size_t>(found->second)]) return size;
    Step s(Step::Kind::size, {r.node_at(found->second), Value(axis)});
    return r.event(std::move(s), [&](vm::Values& values) { values.push_back(size); })[0];
}

Value open_shape(Recorder& r, const Value& tensor) {
    const auto found = r.slot_of_.find(vm::identity_of(tensor));
    if (found == r.slot_of_.end() || !r.sizes_[static_cast<size_t>(found->second)]) return {};
    const Value table = r.tables_.adopt(r.host_.index(tensor, Value("shape")));
    for (int axis = 0; axis < tensor.tensor().rank(); ++axis)
        r.raw_set(table, Value(axis + 1), size_of(r, tensor, axis));
    return table;
}

OpenSizes::OpenSizes(Recorder& recorder, std::span<const Value> args) : recorder_(recorder) {
    Recorder& r = recorder_;
    // Rules of derivatives and of batches look at the numbers themselves.
    if (!r.stopped_.empty() || !r.open_ || r.machine_.depth > 0 || r.machine_.region()) return;
    for (size_t i = 0; i < args.size(); ++i) {
        if (!r.is_table(args[i]) || !r.tables_.find(args[i])) continue;
        for (int64_t k = 1;; ++k) {
            const Value key(k), v = r.host_.raw_get(args[i], key);
            if (v.is_nil()) break;
            const OpenNumber* number = open_number(v);
            if (number && !v.marks() && number->value.kind() == Value::Kind::integer)
                lent_.push_back({i, args[i], key, v});
        }
    }
    for (const Lent& one : lent_) r.host_.raw_set(one.table, one.key, r.plain(one.number));
}

OpenSizes::~OpenSizes() {
    for (const Lent& one : lent_) recorder_.host_.raw_set(one.table, one.key, one.number);
}

vm::Host::Bound OpenSizes::bind(const Op& op, std::span<const Value> real) {
    vm::Host::Bound bound;
    try {
        bound = recorder_.host_.bind(op, real);
    } catch (const Error&) {
        // It is one for these numbers.
        decide();
        throw;
    }
    if (!lent_.empty()) put_into(bound);
    return bound;
}

void OpenSizes::decide() {
    for (const Lent& one : lent_)
        if (!one.stays) recorder_.decided(one.number);
}

void OpenSizes::put_into(vm::Host::Bound& bound) {
    for (size_t i = 0; i < bound.args.size(); ++i) {
        if (!bound.args[i].is_list() || bound.paths[i].size() != 1) continue;
        const vm::Host::Bound::Path& path = bound.paths[i][0];
        if (!path.name.is_nil() || path.item != 0) continue;
        std::vector<Value> items = bound.args[i].items();
        bool any = false;
        for (Lent& one : lent_) {
            const auto at = static_cast<size_t>(one.key.integer()) - 1;
            if (one.argument != path.argument || at >= items.size()) continue;
            if (!identical(items[at], recorder_.plain(one.number))) continue;
            items[at] = one.number;
            any = one.stays = true;
        }
        if (any) bound.args[i] = Value::list(std::move(items));
    }
    decide();
}

}  // namespace lunaria::jit
