#include "core/lite/micro/pooled.h"

#include <algorithm>

namespace lunaria::lite::micro {

namespace {

int uses_of(const Model& model, uint32_t value) {
    int uses = 0;
    for (const Step& s : model.steps)
        for (const View& v : s.operands) uses += v.value == value;
    return uses;
}

int64_t number_of(const Step& step, std::string_view name, int64_t otherwise) {
    const Attribute* const a = find(step.attributes, name);
    return a && !a->integers.empty() ? a->integers[0].value : otherwise;
}

// Whether the window of a pool is the whole picture, and it divides by the number of its pixels.
bool is_global(const Step& pool, const Value& x) {
    const Attribute *const kernel = find(pool.attributes, "kernel"), *const pad = find(pool.attributes, "pad"),
                           *const dilation = find(pool.attributes, "dilation");
    if (!kernel || number_of(pool, "divisor", 0) != 0 || x.shape.size() < 3) return false;
    const size_t axes = x.shape.size() - 2;
    if (kernel->integers.size() < axes) return false;
    for (size_t i = 0; i < axes; ++i)
        if (kernel->integers[kernel->integers.size() - axes + i].value != x.shape[i + 1].value) return false;
    auto all = [](const Attribute* a, int64_t number) {
        return !a || std::ranges::all_of(a->integers, [&](const Number& n) { return n.value == number; });
    };
    return all(pad, 0) && all(dilation, 1);
}

bool joins(const Model& model, const Step& convolution, const Step& pool) {
    if (convolution.kind != "convolution" && convolution.kind != "integer_convolution") return false;
    if (pool.kind != "average_pool" || pool.operands.size() != 1 || !pool.operands[0].whole) return false;
    const uint32_t between = convolution.results[0].value;
    if (pool.operands[0].value != between || uses_of(model, between) != 1) return false;
    const Value& value = model.values[between];
    const bool has_residual = convolution.operands.size() > 4 && convolution.operands[4].value != kNone;
    return value.home == Value::Home::arena && value.dtype == DType::f32 && !has_residual && is_global(pool, value);
}

}  // namespace

Model join_pools(const Model& model) {
    Model joined = model;
    for (size_t i = 0; i + 1 < joined.steps.size(); ++i) {
        Step& step = joined.steps[i];
        const Step& pool = joined.steps[i + 1];
        if (!joins(joined, step, pool)) continue;
        Attribute from;
        from.name = kPooled;
        from.integers = joined.values[step.results[0].value].shape;
        step.attributes.push_back(std::move(from));
        step.results = pool.results;
        step.label += " " + pool.label;
        joined.steps.erase(joined.steps.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    return joined;
}

}  // namespace lunaria::lite::micro
