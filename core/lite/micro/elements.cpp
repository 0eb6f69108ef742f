// Steps that go through elements one by one: reversed axes, triangles, conversions, parts that are replaced, running
// sums.
#include <algorithm>

#include "core/lite/micro/formulas.h"
#include "core/lite/micro/program.h"

namespace lunaria::lite::micro {

namespace {

// Opens a loop for each axis that is longer than 1; variables are i0, i1 ...
void open_axes(Lines& to, const std::vector<int64_t>& shape) {
    for (size_t axis = 0; axis < shape.size(); ++axis)
        if (shape[axis] != 1) to.count(str("i", axis), shape[axis]);
}
Index place_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
    Index index;
    for (size_t axis = 0; axis < shape.size(); ++axis)
        if (shape[axis] != 1) index.add(str("i", axis), strides[axis]);
    return index;
}
void demand_same(const StepForm& form, size_t operands) {
    form.demand(form.in.size() == operands && form.out.size() == 1 && form.in[0].is_there() &&
                    form.in[0].shape == form.out[0].shape && form.out[0].is_dense(),
                "its operands do not fit");
}

void write_flip(const StepForm& form) {
    demand_same(form, 1);
    const Operand &x = form.in[0], &y = form.out[0];
    form.demand(x.dtype == y.dtype, "its operands do not fit");
    std::vector<int64_t> strides = x.strides;
    int64_t start = 0;
    for (int64_t axis : form.integers(form.has("dims") ? "dims" : "axis")) {
        if (axis < 0) axis += static_cast<int64_t>(x.rank());
        form.demand(axis >= 0 && axis < static_cast<int64_t>(x.rank()), "its axis is out of range");
        const auto i = static_cast<size_t>(axis);
        start += (x.shape[i] - 1) * strides[i];
        strides[i] = -strides[i];
    }
    Lines to;
    to.set_depth(1);
    open_axes(to, y.shape);
    to.line("y[", place_of(y.shape, y.strides).text(), "] = x[", place_of(y.shape, strides).add(start).text(), "];");
    to.close_to(1);
    form.call("flip", {form.read("x", x), form.written("y", y)}, to.take());
}

template <bool Lower>
void write_triangle(const StepForm& form) {
    demand_same(form, 1);
    const Operand &x = form.in[0], &y = form.out[0];
    form.demand(x.dtype == y.dtype && x.rank() >= 2, "its operands do not fit");
    const size_t row = x.rank() - 2, column = x.rank() - 1;
    auto variable = [&](size_t axis) { return x.shape[axis] == 1 ? std::string("0") : str("i", axis); };
    Lines to;
    to.set_depth(1);
    open_axes(to, y.shape);
    to.line("y[", place_of(y.shape, y.strides).text(), "] = ", variable(column), " - ", variable(row),
            Lower ? " <= " : " >= ", form.integer("diagonal"), " ? x[", place_of(x.shape, x.strides).text(), "] : 0;");
    to.close_to(1);
    form.call(form.step.kind, {form.read("x", x), form.written("y", y)}, to.take());
}

void write_gather_elements(const StepForm& form) {
    form.demand(form.in.size() == 2 && form.out.size() == 1, "it lacks operands");
    const Operand &x = form.in[0], &index = form.in[1], &y = form.out[0];
    form.demand(x.rank() > 0 && x.rank() == index.rank() && is_integer(index.dtype) && has_sign(index.dtype) &&
                    x.dtype == y.dtype && y.is_dense() && y.size() == index.size(),
                "its operands do not fit");
    const size_t axis = form.axis(form.has("dim") ? "dim" : "axis", x.rank(), 0);
    Index from;
    for (size_t i = 0; i < x.rank(); ++i) {
        form.demand(i == axis || index.shape[i] <= x.shape[i], "its operands do not fit");
        if (i == axis)
            from.add("at", x.strides[i]);
        else if (index.shape[i] != 1)
            from.add(str("i", i), x.strides[i]);
    }
    const int64_t size = x.shape[axis];
    Operand whole = y;
    whole.shape = index.shape;
    whole.strides.assign(index.rank(), 1);
    for (size_t i = index.rank(); i-- > 1;) whole.strides[i - 1] = whole.strides[i] * whole.shape[i];
    Lines to;
    to.set_depth(1);
    open_axes(to, index.shape);
    to.line("const ", type_name(index.dtype), " given = index[", place_of(index.shape, index.strides).text(), "];");
    to.line("if (given < -", size, " || given >= ", size, ") return 1;");
    to.line("const int at = given < 0 ? (int)given + ", size, " : (int)given;");
    to.line("y[", place_of(whole.shape, whole.strides).text(), "] = x[", from.text(), "];");
    to.close_to(1);
    form.call("gather_elements", {form.read("x", x), form.read("index", index), form.written("y", y)}, to.take(), true);
}

// A part of x, one number in each axis from `begin` on in steps, is replaced; padding is of this kind.
void write_slice_assign(const StepForm& form) {
    demand_same(form, 2);
    const Operand &x = form.in[0], &value = form.in[1], &y = form.out[0];
    for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
        form.demand(form.integer(mask) == 0, "parts of this kind are not supported in C");
    const std::vector<int64_t> begin = form.integers("begin"), given = form.integers("strides");
    form.demand(x.dtype == y.dtype && value.dtype == y.dtype && value.rank() == y.rank() && begin.size() <= y.rank(),
                "its operands do not fit");
    Index at;
    std::vector<int64_t> steps(y.rank(), 0);
    for (size_t axis = 0; axis < y.rank(); ++axis) {
        const int64_t size = y.shape[axis], step = axis < given.size() ? given[axis] : 1;
        int64_t first = axis < begin.size() ? begin[axis] : 0;
        if (first < 0) first += size;
        const int64_t last = first + (value.shape[axis] - 1) * step;
        form.demand(step != 0 && first >= 0 && first < size && last >= 0 && last < size, "its part lies outside");
        at.add(first * y.strides[axis]);
        steps[axis] = step * y.strides[axis];
        if (value.shape[axis] != 1) at.add(str("i", axis), steps[axis]);
    }
    Lines to;
    to.set_depth(1);
    open_axes(to, y.shape);
    to.line("y[", place_of(y.shape, y.strides).text(), "] = x[", place_of(x.shape, x.strides).text(), "];");
    to.close_to(1);
    open_axes(to, value.shape);
    to.line("y[", at.text(), "] = value[", place_of(value.shape, value.strides).text(), "];");
    to.close_to(1);
    form.call("slice_assign", {form.read("x", x), form.read("value", value), form.written("y", y)}, to.take());
}

void write_running_sum(const StepForm& form) {
    demand_same(form, 1);
    const Operand &x = form.in[0], &y = form.out[0];
    form.demand(x.rank() > 0 && x.dtype == DType::f32 && y.dtype == DType::f32,
                "on other elements than float32 it is not supported in C");
    form.demand(form.integer("exclusive") == 0 && form.integer("reverse") == 0,
                "exclusive or from the end it is not supported in C");
    const size_t axis = form.axis("axis", x.rank(), 0);
    std::vector<int64_t> outer = x.shape;
    outer[axis] = 1;
    Lines to;
    to.set_depth(1);
    open_axes(to, outer);
    to.line("double sum = 0.0;");
    to.count("k", x.shape[axis]);
    to.line("sum += (double)x[", place_of(outer, x.strides).add("k", x.strides[axis]).text(), "];");
    to.line("y[", place_of(outer, y.strides).add("k", y.strides[axis]).text(), "] = (float)sum;");
    to.close_to(1);
    form.call("cumsum", {form.read("x", x), form.written("y", y)}, to.take());
}

void write_conversion(const StepForm& form) {
    demand_same(form, 1);
    const Operand &x = form.in[0], &y = form.out[0];
    Lines to;
    to.set_depth(1);
    open_axes(to, y.shape);
    const Parameter from = form.read("x", x), target = form.written("y", y);
    to.line("const ", type_name(x.dtype), " v = x[", place_of(x.shape, x.strides).text(), "];");
    write_cast(form, to, x.dtype, "v", y.dtype, "converted");
    to.line("y[", place_of(y.shape, y.strides).text(), "] = converted;");
    to.close_to(1);
    form.call("cast", {from, target}, to.take());
}

constexpr StepKind kElementsKinds[] = {{"flip", write_flip},
                                       {"tril", write_triangle<true>},
                                       {"triu", write_triangle<false>},
                                       {"gather_elements", write_gather_elements},
                                       {"slice_assign", write_slice_assign},
                                       {"cumsum", write_running_sum},
                                       {"cast", write_conversion}};

}  // namespace

std::span<const StepKind> element_kinds() { return kElementsKinds; }

void write_cast(const StepForm& form, Lines& to, DType from, const std::string& x, DType dtype,
                const std::string& variable) {
    const std::string_view type = type_name(dtype);
    const std::string declared = str("const ", type, " ", variable, " = ");
    if (dtype == DType::boolean) {
        to.line(declared, x, " != 0;");
    } else if (is_float(from) && is_integer(dtype)) {
        form.program.helper("to_int64",
                            "/* Numbers beyond the range become its ends, NaN becomes 0. */\n"
                            "static int64_t to_int64(double x) {\n"
                            "    if (x >= 9223372036854775808.0) return INT64_MAX;\n"
                            "    if (x <= -9223372036854775808.0) return INT64_MIN;\n"
                            "    return x == x ? (int64_t)x : 0;\n"
                            "}\n");
        form.demand(dtype != DType::u64, "the conversion of floats to uint64 is not supported in C");
        to.line(declared, "(", type, ")to_int64((double)", x, ");");
    } else {
        to.line(declared, "(", type, ")", x, ";");
    }
}

}  // namespace lunaria::lite::micro
