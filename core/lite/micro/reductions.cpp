// Reductions along axes that loop programs do not cover, and softmax along any axis.
#include <algorithm>

#include "core/lite/micro/program.h"

namespace lunaria::lite::micro {

namespace {

// The axes that stay and those that are reduced; without names of axes all are.
struct Reduced {
    std::vector<size_t> kept, gone;
    int64_t count = 1;
};
Reduced axes_of(const StepForm& form, const Operand& x) {
    const std::vector<int64_t> axes = form.integers(form.has("axis") ? "axis" : "dim");
    std::vector<bool> is_gone(x.rank(), axes.empty());
    for (int64_t axis : axes) {
        if (axis < 0) axis += static_cast<int64_t>(x.rank());
        form.demand(axis >= 0 && axis < static_cast<int64_t>(x.rank()), "its axis is out of range");
        is_gone[static_cast<size_t>(axis)] = true;
    }
    Reduced r;
    for (size_t axis = 0; axis < x.rank(); ++axis) {
        (is_gone[axis] ? r.gone : r.kept).push_back(axis);
        if (is_gone[axis]) r.count *= x.shape[axis];
    }
    return r;
}

// Opens the loops over these axes and adds them to the index of x; `number`: their elements counted.
void open_axes(Lines& to, const Operand& x, const std::vector<size_t>& axes, const char* letter, Index& from,
               Index& number) {
    int64_t step = 1;
    for (const size_t axis : axes) step *= x.shape[axis];
    for (const size_t axis : axes) {
        step /= std::max<int64_t>(1, x.shape[axis]);
        if (x.shape[axis] == 1) continue;
        const std::string variable = str(letter, axis);
        to.count(variable, x.shape[axis]);
        from.add(variable, x.strides[axis]);
        number.add(variable, step);
    }
}

void demand_floats(const StepForm& form) {
    form.demand(form.in.size() == 1 && form.out.size() == 1 && form.in[0].dtype == DType::f32,
                "on other elements than float32 it is not supported in C");
}

template <char Kind>  // s: sum, m: mean, a: largest, i: smallest
void write_reduction(const StepForm& form) {
    demand_floats(form);
    const Operand &x = form.in[0], &y = form.out[0];
    const Reduced r = axes_of(form, x);
    form.demand(y.dtype == DType::f32 && y.size() * r.count == x.size() && r.count > 0, "its operands do not fit");
    Lines to;
    to.set_depth(1);
    Index from, at, number;
    open_axes(to, x, r.kept, "i", from, at);
    const bool sums = Kind == 's' || Kind == 'm';
    to.line(sums ? "double" : "float", " r = ", sums ? "0.0" : Kind == 'a' ? "-INFINITY" : "INFINITY", ";");
    const int before = to.depth();
    open_axes(to, x, r.gone, "k", from, number);
    to.line("const float v = x[", from.text(), "];");
    if (sums)
        to.line("r += (double)v;");
    else
        to.line("if (v ", Kind == 'a' ? ">" : "<", " r || v != v) r = v;");
    to.close_to(before);
    to.line("y[", at.text(), "] = ", sums ? "(float)" : "",
            Kind == 'm' ? str("(r / ", literal(static_cast<double>(r.count)), ")") : "r", ";");
    to.close_to(1);
    form.call(form.step.kind, {form.read("x", x), form.written("y", y)}, to.take());
}

template <bool Largest>
void write_place(const StepForm& form) {
    demand_floats(form);
    const Operand &x = form.in[0], &y = form.out[0];
    const bool has_axis = form.has("dim") || form.has("axis");
    std::vector<size_t> kept, gone;
    const size_t axis = has_axis ? form.axis(form.has("dim") ? "dim" : "axis", x.rank(), 0) : 0;
    for (size_t i = 0; i < x.rank(); ++i) (!has_axis || i == axis ? gone : kept).push_back(i);
    form.demand(is_integer(y.dtype) && x.size() > 0, "its operands do not fit");
    Lines to;
    to.set_depth(1);
    Index from, at, number;
    open_axes(to, x, kept, "i", from, at);
    to.line("int place = 0;");
    Index first = from;
    to.line("float best = x[", first.text(), "];");
    const int before = to.depth();
    open_axes(to, x, gone, "k", from, number);
    to.line("const float v = x[", from.text(), "];");
    // The first NaN is the place.
    to.open("if (v ", Largest ? ">" : "<", " best || (v != v && best == best))");
    to.line("best = v;");
    to.line("place = ", number.text(), ";");
    to.close_to(before);
    to.line("y[", at.text(), "] = (", type_name(y.dtype), ")place;");
    to.close_to(1);
    form.call(form.step.kind, {form.read("x", x), form.written("y", y)}, to.take());
}

template <bool Log>
void write_softmax(const StepForm& form) {
    demand_floats(form);
    const Operand &x = form.in[0], &y = form.out[0];
    form.demand(y.dtype == DType::f32 && x.rank() > 0 && x.is_dense() && y.is_dense() && x.shape == y.shape,
                "its operands do not fit");
    const size_t axis = form.axis("axis", x.rank(), -1);
    Lines to;
    to.set_depth(1);
    Index at, number;
    std::vector<size_t> kept;
    for (size_t i = 0; i < x.rank(); ++i)
        if (i != axis) kept.push_back(i);
    open_axes(to, x, kept, "i", at, number);
    const std::string place = at.add("k", x.strides[axis]).text(),
                      loop = str("for (int k = 0; k < ", x.shape[axis], "; ++k)");
    to.line("float most = -INFINITY, sum = 0.0f;");
    to.line(loop, " if (x[", place, "] > most) most = x[", place, "];");
    to.line(loop, " sum += expf(x[", place, "] - most);");
    if (Log) to.line("const float shift = most + logf(sum);");
    to.line(loop, " y[", place, "] = ", Log ? str("x[", place, "] - shift") : str("expf(x[", place, "] - most) / sum"),
            ";");
    to.close_to(1);
    form.call(form.step.kind, {form.read("x", x), form.written("y", y)}, to.take());
}

constexpr StepKind kReductionsKinds[] = {{"sum", write_reduction<'s'>},     {"mean", write_reduction<'m'>},
                                         {"amax", write_reduction<'a'>},    {"amin", write_reduction<'i'>},
                                         {"argmax", write_place<true>},     {"argmin", write_place<false>},
                                         {"softmax", write_softmax<false>}, {"log_softmax", write_softmax<true>}};

}  // namespace

std::span<const StepKind> reduction_kinds() { return kReductionsKinds; }

}  // namespace lunaria::lite::micro
