#include "jit/trace/placeholders.h"

#include <algorithm>

#include "core/random/random.h"
#include "jit/vm/watcher.h"

namespace lunaria::trace {

namespace {

Value placeholder(const TensorType& type) {
    Tensor one = Tensor::zeros(type.dtype, {});
    Strides strides;
    for (int i = 0; i < type.shape.rank(); ++i) strides.push_back(0);
    return Value(one.view(type.shape, strides));
}

Value known_result(const Progress& progress, const Expected& e, std::span<const Value> values) {
    if (e.what == Expected::What::constant) return e.constant;
    Value v = progress.slots[static_cast<size_t>(e.slot)];
    if (!v.is_nil()) return v;
    if (e.what == Expected::What::tensor) {
        TensorType type = e.type;
        for (const auto& [slot, shape] : progress.sizes)
            if (slot == e.slot) type.shape = shape;
        return placeholder(type);
    }
    if (e.what == Expected::What::same && static_cast<size_t>(e.slot) < values.size())
        return values[static_cast<size_t>(e.slot)];
    return e.constant;
}

}  // namespace

vm::Values known_results(const Progress& progress, const Step& known, std::span<const Value> values) {
    vm::Values results;
    for (const Expected& e : known.expected) {
        results.push_back(known_result(progress, e, values));
        if (known.sizes) break;
    }
    return results;
}

void size_placeholders(const Progress& progress, const Step& known, vm::Values& results,
                       const std::function<void(vm::Values&)>& body) {
    auto is_placeholder = [&](const Expected& e) {
        return e.what == Expected::What::tensor && e.open && progress.slots[static_cast<size_t>(e.slot)].is_nil();
    };
    if (std::none_of(known.expected.begin(), known.expected.end(), is_placeholder)) return;
    const RandomStream random = default_generator().state();
    vm::Values sized;
    try {
        const vm::Watch unwatched(nullptr);
        body(sized);
    } catch (const Error&) {
        sized.clear();  // values may be wrong without those of the call: the sizes stay the recorded ones
    }
    default_generator().set_state(random);
    if (sized.size() != results.size()) return;
    for (size_t k = 0; k < results.size(); ++k)
        if (is_placeholder(known.expected[k]) && sized[k].is_tensor())
            results[k] = placeholder({sized[k].tensor().dtype(), sized[k].tensor().shape()});
}

}  // namespace lunaria::trace
