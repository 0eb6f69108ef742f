// Steps that move elements: copies of views, concatenations, gathers.
#include <algorithm>

#include "core/lite/micro/program.h"

namespace lunaria::lite::micro {

namespace {

// The axes of a copy to dense memory, neighbours that are gone through in equal steps joined, without those of size 1.
struct Axis {
    int64_t size, from, to;
};
std::vector<Axis> axes_of(const Operand& x) {
    std::vector<Axis> axes;
    int64_t step = 1;
    for (size_t i = x.rank(); i-- > 0;) {
        const int64_t size = x.shape[i];
        if (size == 1) continue;
        if (!axes.empty() && axes.back().from * axes.back().size == x.strides[i])
            axes.back().size *= size;
        else
            axes.push_back({size, x.strides[i], step});
        step *= size;
    }
    std::ranges::reverse(axes);
    return axes;
}

void write_copy(const StepForm& form) {
    form.demand(form.in.size() == 1 && form.out.size() == 1 && form.in[0].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &y = form.out[0];
    form.demand(x.dtype == y.dtype && x.size() == y.size() && y.is_dense(), "its operands do not fit");
    if (y.size() == 0) return;
    const std::vector<Axis> axes = axes_of(x);
    Lines to;
    to.set_depth(1);
    if (axes.empty() || (axes.size() == 1 && axes[0].from == 1)) {
        to.line("memcpy(y, x, ", y.size(), " * sizeof *y);");
    } else {
        Index from, at;
        for (size_t i = 0; i < axes.size(); ++i) {
            const std::string variable = str("i", i);
            to.count(variable, axes[i].size);
            from.add(variable, axes[i].from);
            at.add(variable, axes[i].to);
        }
        to.line("y[", at.text(), "] = x[", from.text(), "];");
        to.close_to(1);
    }
    form.call("copy", {form.read("x", x), form.written("y", y)}, to.take());
}

// Sizes before and after an axis.
struct Around {
    int64_t outer = 1, size = 1, inner = 1;
};
Around around(const std::vector<int64_t>& shape, size_t axis) {
    Around a;
    a.size = shape[axis];
    for (size_t i = 0; i < shape.size(); ++i) (i < axis ? a.outer : a.inner) *= i == axis ? 1 : shape[i];
    return a;
}

void write_concat(const StepForm& form) {
    form.demand(!form.in.empty() && form.out.size() == 1 && form.out[0].rank() > 0, "it lacks operands");
    const Operand& y = form.out[0];
    const size_t axis = form.axis("axis", y.rank(), 0);
    const Around whole = around(y.shape, axis);
    std::vector<Parameter> parameters;
    Lines to;
    to.set_depth(1);
    if (whole.outer != 1) to.count("i", whole.outer);
    int64_t at = 0;
    for (size_t k = 0; k < form.in.size(); ++k) {
        const Operand& x = form.in[k];
        form.demand(x.rank() == y.rank() && x.dtype == y.dtype && x.is_dense(), "its operands do not fit");
        if (x.size() == 0) continue;
        const int64_t run = around(x.shape, axis).size * whole.inner;
        parameters.push_back(form.read(str("x", k), x));
        const std::string target =
            whole.outer != 1 ? Index().add("i", whole.size * whole.inner).add(at).text() : std::to_string(at);
        const std::string from = whole.outer != 1 ? Index().add("i", run).text() : "0";
        to.line("memcpy(y + ", target, ", x", k, " + ", from, ", ", run, " * sizeof *y);");
        at += run;
    }
    form.demand(at == whole.size * whole.inner, "its operands do not fit");
    to.close_to(1);
    parameters.push_back(form.written("y", y));
    form.call("concat", parameters, to.take());
}

void write_gather(const StepForm& form) {
    form.demand(form.in.size() == 2 && form.out.size() == 1, "it lacks operands");
    const Operand &x = form.in[0], &index = form.in[1], &y = form.out[0];
    form.demand(x.rank() > 0 && is_integer(index.dtype) && x.dtype == y.dtype && x.is_dense() && index.is_dense(),
                "its operands do not fit");
    const Around a = around(x.shape, form.axis("axis", x.rank(), 0));
    form.demand(y.size() == a.outer * index.size() * a.inner, "its operands do not fit");
    Lines to;
    to.set_depth(1);
    to.count("i", index.size());
    to.line("const ", type_name(index.dtype), " given = index[i];");
    if (has_sign(index.dtype)) {
        to.line("const int at = given < 0 && given >= -", a.size, " ? (int)given + ", a.size,
                " : given >= 0 && given < ", a.size, " ? (int)given : -1;");
        to.line("if (at < 0) return 1;");
    } else {
        to.line("if (given >= ", a.size, "U) return 1;");
        to.line("const int at = (int)given;");
    }
    Index from, target;
    if (a.outer != 1) {
        to.count("n", a.outer);
        from.add("n", a.size * a.inner);
        target.add("n", index.size() * a.inner);
    }
    if (a.inner == 1)
        to.line("y[", target.add("i", 1).text(), "] = x[", from.add("at", 1).text(), "];");
    else
        to.line("memcpy(y + ", target.add("i", a.inner).text(), ", x + ", from.add("at", a.inner).text(), ", ", a.inner,
                " * sizeof *y);");
    to.close_to(1);
    form.call("gather", {form.read("x", x), form.read("index", index), form.written("y", y)}, to.take(), true);
}

constexpr StepKind kKinds[] = {{"copy", write_copy}, {"concat", write_concat}, {"gather", write_gather}};

}  // namespace

std::span<const StepKind> arrangement_kinds() { return kKinds; }

}  // namespace lunaria::lite::micro
