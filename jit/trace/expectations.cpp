// The results that the events of a trace are expected to have the next time: the same values, other numbers, tensors of
// other sizes.
#include <algorithm>

#include "jit/trace/recording.h"

namespace lunaria::trace {

namespace {

// Events that may have another number the next time.
bool generalises(Step::Kind kind) {
    return kind == Step::Kind::argument || kind == Step::Kind::read || kind == Step::Kind::upvalue ||
           kind == Step::Kind::length || kind == Step::Kind::call || kind == Step::Kind::index;
}

// Events that have another number each time.
bool always_differs(Step::Kind kind) {
    return kind == Step::Kind::item || kind == Step::Kind::size || kind == Step::Kind::loop;
}

// Whether the step itself tells that another value will come the next time.
bool comes_anew(const Step& s, const Value& v) {
    if (s.counts && v.kind() == Value::Kind::integer) return true;
    if (s.varies && v.is_number()) return true;
    return (v.is_number() || v.kind() == Value::Kind::string) && (s.kind == Step::Kind::number || s.opens);
}

// Whether a tensor of the same kind but of other sizes was found there before.
bool has_other_sizes(const std::vector<const Step*>& others, size_t k, const Expected& e) {
    return std::any_of(others.begin(), others.end(), [&](const Step* other) {
        if (other->expected.size() <= k || other->fails) return false;
        const Expected& o = other->expected[k];
        return o.what == Expected::What::tensor && o.type.dtype == e.type.dtype && o.parameter == e.parameter &&
               o.type.shape.rank() == e.type.shape.rank() && !(o.type.shape == e.type.shape);
    });
}

// Whether a value of that kind was found there before.
bool came_before(const std::vector<const Step*>& others, size_t k, Value::Kind kind) {
    return std::any_of(others.begin(), others.end(), [&](const Step* other) {
        return other->expected.size() > k && other->expected[k].what != Expected::What::same &&
               other->expected[k].constant.kind() == kind;
    });
}

// Whether the number or text becomes a symbolic one: another may come there the next time.
bool is_left_open(const Step& s, const Value& v, size_t k, const std::vector<const Step*>& others) {
    if (s.fails) return false;  // an error is always a decided value
    const bool differs = always_differs(s.kind) || (generalises(s.kind) && came_before(others, k, v.kind()));
    return (v.is_number() && differs) || comes_anew(s, v);
}

}  // namespace

Expected Recording::expect_known(const Step& s, const Value& v, int32_t slot) const {
    Expected e;
    e.what = Expected::What::same;
    e.slot = slot;
    e.node = nodes_[static_cast<size_t>(slot)];
    if (s.kind == Step::Kind::is) {
        e.typed = true;
        e.type = {v.tensor().dtype(), v.tensor().shape()};
    }
    return e;
}

Expected Recording::expect_tensor(const Step& s, const Value& v, size_t k,
                                  const std::vector<const Step*>& others) const {
    Expected e;
    e.what = Expected::What::tensor;
    e.type = {v.tensor().dtype(), v.tensor().shape()};
    e.parameter = v.tensor().parameter() != nullptr;
    // The labels of a batch of another size mostly have another size too.
    const bool another =
        generalises(s.kind) && (has_other_sizes(others, k, e) || (sizes.any() && s.kind == Step::Kind::argument));
    e.open = !e.parameter && e.type.shape.rank() > 0 && !sizes.closed() &&
             (another || std::ranges::any_of(s.args(), [&](const Value& arg) { return sizes.in(arg); }));
    return e;
}

std::vector<Expected> Recording::expect(const Step& s, const vm::Values& results,
                                        const std::vector<const Step*>& others) {
    std::vector<Expected> list;
    int32_t next = slots_;
    const bool from_outside = s.kind == Step::Kind::argument || s.kind > Step::Kind::is;
    for (size_t k = 0; k < results.size(); ++k) {
        const Value& v = results[k];
        Expected e;
        const void* const identity = vm::identity_of(v);
        const bool table = outside.type_of(v) == Outside::Type::table;
        const auto found = v.is_tensor() || table ? slot_of_.find(identity) : slot_of_.end();
        const bool anew = from_outside || (s.kind == Step::Kind::read && s.opens) ||
                          (generalises(s.kind) && came_before(others, k, Value::Kind::object));
        if (found != slot_of_.end()) {
            e = expect_known(s, v, found->second);
        } else if (v.is_tensor()) {
            e = expect_tensor(s, v, k, others);
            e.slot = next++;
        } else if (table && !tree.tables.contains(identity) && anew) {
            e.what = Expected::What::table;
            e.slot = next++;
            e.constant = v;
        } else if (is_left_open(s, v, k, others)) {
            e.what = Expected::What::number;
            e.slot = next++;
            e.constant = v;
        } else {
            e.constant = v;
            e.constant.set_marks(0);
            e.pointer = identity;
            if (k < identities_.size()) {
                e.pointer = identities_[k].pointer;
                e.holder = identities_[k].holder;
            }
        }
        list.push_back(std::move(e));
    }
    return list;
}

uint32_t Recording::version_at(int32_t slot) const {
    const Value& v = values_[static_cast<size_t>(slot)];
    return v.is_tensor() ? v.tensor().version() : 0;
}

// Pullbacks tell by a tensor's version whether it was written into since, also by writes before this recording.
void Recording::count_writes(const Step& step) {
    for (int32_t slot : step.written)
        if (const Value& v = values_[static_cast<size_t>(slot)]; v.is_tensor()) ++v.tensor().body()->version;
}

}  // namespace lunaria::trace
