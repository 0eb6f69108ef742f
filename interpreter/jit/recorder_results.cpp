// What the events of a trace are expected to give the next time: the same values, other numbers, tensors of other
// sizes. And what stands for results that the runner had and nobody needs any more.
#include <algorithm>

#include "core/random.h"
#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/recorder.h"

namespace lunaria::jit {

namespace {

// A tensor of a type of which nobody looks at the elements.
Value ghost(const TensorType& type) {
    Tensor one = Tensor::zeros(type.dtype, {});
    Strides strides;
    for (int i = 0; i < type.shape.rank(); ++i) strides.push_back(0);
    return Value(one.view(type.shape, strides));
}

// Events of which another number may come the next time.
bool generalises(Step::Kind kind) {
    return kind == Step::Kind::argument || kind == Step::Kind::read || kind == Step::Kind::upvalue ||
           kind == Step::Kind::length || kind == Step::Kind::call || kind == Step::Kind::index;
}

// Events whose numbers are other ones each time.
bool always_differs(Step::Kind kind) {
    return kind == Step::Kind::item || kind == Step::Kind::size || kind == Step::Kind::loop;
}

// Whether the step says of itself that another value will come the next time.
bool comes_anew(const Step& s, const Value& v) {
    if (s.counts && v.kind() == Value::Kind::integer) return true;
    if (s.varies && v.is_number()) return true;
    return (v.is_number() || v.kind() == Value::Kind::string) && (s.kind == Step::Kind::number || s.opens);
}

// Whether a tensor of the same kind but of other sizes came there before.
bool has_other_sizes(const std::vector<const Step*>& others, size_t k, const Expected& e) {
    return std::any_of(others.begin(), others.end(), [&](const Step* other) {
        if (other->expected.size() <= k || other->fails) return false;
        const Expected& o = other->expected[k];
        return o.what == Expected::What::tensor && o.type.dtype == e.type.dtype && o.parameter == e.parameter &&
               o.type.shape.rank() == e.type.shape.rank() && !(o.type.shape == e.type.shape);
    });
}

}  // namespace

std::vector<Expected> Recorder::expect(const Step& s, const vm::Values& results,
                                       const std::vector<const Step*>& others) {
    std::vector<Expected> list;
    int32_t next = slots_;
    const bool outside = s.kind == Step::Kind::argument || s.kind > Step::Kind::is;
    const bool opens = !s.fails;  // an error is decided upon as it is
    for (size_t k = 0; k < results.size(); ++k) {
        const Value& v = results[k];
        Expected e;
        auto found = slot_of_.find(vm::identity_of(v));
        auto differs = [&](Value::Kind kind) {
            for (const Step* other : others)
                if (other->expected.size() > k && other->expected[k].what != Expected::What::same &&
                    other->expected[k].constant.kind() == kind)
                    return true;
            return false;
        };
        const auto* r = vm::object_as<LuaReference>(v);
        const bool table = r && r->type == LUA_TTABLE;
        if ((v.is_tensor() || table) && found != slot_of_.end()) {
            e.what = Expected::What::same;
            e.slot = found->second;
            e.node = nodes_[static_cast<size_t>(e.slot)];
            if (s.kind == Step::Kind::is) {
                e.typed = true;
                e.type = {v.tensor().dtype(), v.tensor().shape()};
            }
        } else if (v.is_tensor()) {
            e.what = Expected::What::tensor;
            e.slot = next++;
            e.type = {v.tensor().dtype(), v.tensor().shape()};
            e.parameter = v.tensor().parameter() != nullptr;
            // A batch of another size mostly has labels of another size.
            const bool another = generalises(s.kind) && (has_other_sizes(others, k, e) ||
                                                         (open_tensors_ > 0 && s.kind == Step::Kind::argument));
            e.open = !e.parameter && e.type.shape.rank() > 0 && !closed_ &&
                     (another || std::ranges::any_of(s.args(), [&](const Value& v) { return is_open(v); }));
        } else if (table && !tree_.tables.contains(vm::identity_of(v)) &&
                   (outside || (s.kind == Step::Kind::read && s.opens) ||
                    (generalises(s.kind) && differs(Value::Kind::object)))) {
            e.what = Expected::What::table;
            e.slot = next++;
            e.constant = v;
        } else if (opens &&
                   ((v.is_number() && (always_differs(s.kind) || (generalises(s.kind) && differs(v.kind())))) ||
                    comes_anew(s, v))) {
            e.what = Expected::What::number;
            e.slot = next++;
            e.constant = v;
        } else {
            e.constant = v;
            e.constant.set_marks(0);
            e.pointer = k < pointers_.size() ? pointers_[k] : vm::identity_of(v);
        }
        list.push_back(std::move(e));
    }
    return list;
}

bool Recorder::is_open(const Value& operand) const {
    bool open = false;
    for_each_slot(operand, [&](int32_t slot) {
        const auto at = static_cast<size_t>(slot);
        open |= sizes_[at] || (operand.is_list() && values_[at].is_number());
    });
    return open;
}

void Recorder::decide_shape(const Value& tensor) {
    if (open_tensors_ == 0 || !stopped_.empty() || !tensor.is_tensor()) return;
    auto found = slot_of_.find(vm::identity_of(tensor));
    if (found == slot_of_.end() || !sizes_[static_cast<size_t>(found->second)]) return;
    event(Step(Step::Kind::is, {node_at(found->second)}), [&](vm::Values& results) { results.push_back(tensor); });
}

void Recorder::decide_shapes() {
    closed_ = true;
    for (const Value& tensor : sources_) decide_shape(tensor);
    // The sizes of the others follow from theirs.
    sizes_.assign(sizes_.size(), false);
    open_tensors_ = 0;
}

// Whether the sizes of the results depend on more than on the sizes of the operands.
bool Recorder::sizes_by_content(const Op& op, std::span<const Value> args, std::span<const Value> real) const {
    if (std::ranges::any_of(args, OpenNumbers::holds)) return true;
    if (open_tensors_ == 0) return false;
    if (!op.infer_fn) return true;
    const Types types = op.infer_fn(lunaria::Call(op, real, promoted_dtype(op, real)));
    return std::any_of(types.begin(), types.end(), [](const TensorType& t) { return !t.shape.known(); });
}

Value Recorder::known_result(const Expected& e) {
    if (e.what == Expected::What::constant) return e.constant;
    Value v = progress_.slots[static_cast<size_t>(e.slot)];
    if (!v.is_nil()) return v;
    if (e.what == Expected::What::tensor) {
        TensorType type = e.type;
        for (const auto& [slot, shape] : progress_.sizes)
            if (slot == e.slot) type.shape = shape;
        return ghost(type);
    }
    if (e.what == Expected::What::same && static_cast<size_t>(e.slot) < values_.size())
        return values_[static_cast<size_t>(e.slot)];
    return e.constant;
}

// What stands for results of any sizes must have the sizes of this call, which those of the operands tell.
void Recorder::size_ghosts(const Step& known, vm::Values& results, const std::function<void(vm::Values&)>& body) {
    auto is_ghost = [&](const Expected& e) {
        return e.what == Expected::What::tensor && e.open && progress_.slots[static_cast<size_t>(e.slot)].is_nil();
    };
    if (std::none_of(known.expected.begin(), known.expected.end(), is_ghost)) return;
    const RandomStream random = default_generator().state();
    vm::Values sized;
    try {
        Unwatched unwatched;
        body(sized);
    } catch (const Error&) {
        sized.clear();  // values that are not those of the call may be wrong ones: the sizes stay the recorded ones
    }
    default_generator().set_state(random);
    if (sized.size() != results.size()) return;
    for (size_t k = 0; k < results.size(); ++k)
        if (is_ghost(known.expected[k]) && sized[k].is_tensor())
            results[k] = ghost({sized[k].tensor().dtype(), sized[k].tensor().shape()});
}

uint32_t Recorder::version_at(int32_t slot) const {
    const Value& v = values_[static_cast<size_t>(slot)];
    return v.is_tensor() ? v.tensor().version() : 0;
}

// What is kept for derivatives tells by its version whether it was written into since, also where that was done before
// this recording.
void Recorder::count_writes(const Step& step) {
    for (int32_t slot : step.written)
        if (const Value& v = values_[static_cast<size_t>(slot)]; v.is_tensor()) ++v.tensor().body()->version;
}

}  // namespace lunaria::jit
