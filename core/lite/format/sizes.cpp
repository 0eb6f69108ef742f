#include "core/lite/format/sizes.h"

#include <algorithm>

#include "core/base/error.h"

namespace lunaria::lite {

namespace {

constexpr size_t kDeepest = 64;  // of the stack of a formula

std::optional<int64_t> applied(Formula::Kind kind, int64_t a, int64_t b) {
    int64_t result = 0;
    switch (kind) {
        case Formula::Kind::add:
            return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
        case Formula::Kind::subtract:
            return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
        case Formula::Kind::multiply:
            return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
        case Formula::Kind::divide:
            if (b <= 0) return {};
            return a / b - (a % b < 0);
        case Formula::Kind::least:
            return std::min(a, b);
        case Formula::Kind::most:
            return std::max(a, b);
        default:
            return {};
    }
}

}  // namespace

std::optional<uint64_t> bytes_of(DType dtype, Form form, std::span<const int64_t> shape) {
    uint64_t count = 1;
    for (const int64_t size : shape)
        if (size < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count)) return {};
    if (count > static_cast<uint64_t>(kMostElements)) return {};
    if (form == Form::plain) return count * size_of(dtype);
    if (shape.empty() || shape.back() % kBlock != 0) return {};
    return count / kBlock * (form == Form::q8_0 ? 34 : 18);
}

std::vector<int64_t> sizes_of(const Model& model) {
    std::vector<int64_t> sizes;
    for (const Dimension& d : model.dimensions) sizes.push_back(d.size);
    return sizes;
}

std::optional<int64_t> evaluate(const Model& model, const Number& number, std::span<const int64_t> dimensions) {
    if (number.formula == kNone) return number.value;
    if (number.formula >= model.formulas.size()) return {};
    int64_t stack[kDeepest];
    size_t depth = 0;
    for (const Formula::Term& term : model.formulas[number.formula].terms) {
        if (term.kind == Formula::Kind::constant || term.kind == Formula::Kind::dimension) {
            if (depth == kDeepest) return {};
            if (term.kind == Formula::Kind::constant) {
                stack[depth++] = term.value;
            } else {
                if (term.value < 0 || static_cast<size_t>(term.value) >= dimensions.size()) return {};
                stack[depth++] = dimensions[static_cast<size_t>(term.value)];
            }
            continue;
        }
        if (depth < 2) return {};
        const auto result = applied(term.kind, stack[depth - 2], stack[depth - 1]);
        if (!result) return {};
        stack[--depth - 1] = *result;
    }
    return depth == 1 ? std::optional(stack[0]) : std::nullopt;
}

bool evaluate(const Model& model, std::span<const Number> numbers, std::span<const int64_t> dimensions,
              std::vector<int64_t>& results) {
    results.clear();
    for (const Number& number : numbers) {
        const auto value = evaluate(model, number, dimensions);
        if (!value) return false;
        results.push_back(*value);
    }
    return true;
}

namespace {

// The dimension that the number is; kNone for other numbers.
uint32_t dimension_of(const Model& model, const Number& number) {
    if (number.formula == kNone) return kNone;
    const auto& terms = model.formulas[number.formula].terms;
    return terms.size() == 1 && terms[0].kind == Formula::Kind::dimension ? static_cast<uint32_t>(terms[0].value)
                                                                          : kNone;
}

}  // namespace

std::string find_sizes(const Model& model, std::span<const std::vector<int64_t>> shapes,
                       std::vector<int64_t>& dimensions) {
    if (shapes.size() != model.inputs.size())
        return str("there are ", shapes.size(), " shapes for ", model.inputs.size(), " inputs");
    auto where = [&](size_t i, size_t axis) {
        return str("input ", i, " (", model.values[model.inputs[i]].name, "), axis ", axis, ": ");
    };
    dimensions.assign(model.dimensions.size(), -1);
    for (size_t i = 0; i < shapes.size(); ++i) {
        const std::vector<Number>& shape = model.values[model.inputs[i]].shape;
        if (shapes[i].size() != shape.size())
            return str("input ", i, " (", model.values[model.inputs[i]].name, ") has ", shape.size(), " axes, not ",
                       shapes[i].size());
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            const uint32_t d = dimension_of(model, shape[axis]);
            if (d == kNone) continue;
            if (dimensions[d] >= 0 && dimensions[d] != shapes[i][axis])
                return str(where(i, axis), shapes[i][axis], ", but the size of ", model.dimensions[d].name, " is ",
                           dimensions[d], " elsewhere");
            dimensions[d] = shapes[i][axis];
            const Dimension& open = model.dimensions[d];
            if (dimensions[d] < open.least || (open.most > 0 && dimensions[d] > open.most))
                return str(where(i, axis), dimensions[d], " is out of the range of ", open.name, ", ", open.least,
                           " to ", open.most > 0 ? str(open.most) : "any");
            if ((dimensions[d] - open.size) % open.step != 0)
                return str(where(i, axis), dimensions[d], " is not ", open.size, " plus or minus a multiple of ",
                           open.step);
        }
    }
    for (size_t d = 0; d < dimensions.size(); ++d)
        if (dimensions[d] < 0) return str("no input has the size ", model.dimensions[d].name);
    for (size_t i = 0; i < shapes.size(); ++i) {
        const std::vector<Number>& shape = model.values[model.inputs[i]].shape;
        for (size_t axis = 0; axis < shape.size(); ++axis)
            if (const auto size = evaluate(model, shape[axis], dimensions); !size || *size != shapes[i][axis])
                return str(where(i, axis), shapes[i][axis], " instead of ", size ? str(*size) : "a size",
                           shape[axis].formula == kNone ? ", which the model was converted for" : "");
    }
    return {};
}

}  // namespace lunaria::lite
