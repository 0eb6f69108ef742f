// GPU kernels: numbers that follow from their position, and parts of matrices.
#include <algorithm>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

bool arange(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    const Value start = c.has(1) ? c.args[0] : Value(0), step = c.args[2];
    const bool whole = start.kind() == Value::Kind::integer && step.kind() == Value::Kind::integer;
    Words words;
    words.tensor(out).size(out.size());
    if (whole)
        words.word(static_cast<uint64_t>(start.integer())).word(static_cast<uint64_t>(step.integer()));
    else
        words.real(start.number()).real(step.number());
    return launcher.run_for(str(whole ? "range " : "range of floats ", name_of(t)), out.size(), words, [&](Writer& w) {
        w.exact();
        const Elements to = w.tensor(t);
        const Number all = w.size();
        const DType wide = whole ? DType::i64 : DType::f64;
        const Number first = whole ? w.word() : w.real(wide), pace = whole ? w.word() : w.real(wide);
        w.for_each(all, [&](Number i) { to.set(i, cast(first + cast(i, wide) * pace, t)); });
    });
}

// Computed from both ends, so that both are exact.
bool linspace(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    if (!is_lane(t)) return false;
    const double start = c.args[0].number(), stop = c.args[1].number();
    const int64_t steps = c.args[2].integer();
    const double pace = steps > 1 ? (stop - start) / static_cast<double>(steps - 1) : 0;
    Words words;
    words.tensor(out).size(steps).real(start).real(steps > 1 ? stop : start).real(pace);
    return launcher.run_for(str("steps ", name_of(t)), steps, words, [&](Writer& w) {
        w.exact();
        const Elements to = w.tensor(t);
        const Number all = w.size(), first = w.real(DType::f64), last = w.real(DType::f64), step = w.real(DType::f64);
        w.for_each(all, [&](Number i) {
            const Number from = first + step * cast(i, DType::f64), back = last - step * cast(all - 1 - i, DType::f64);
            to.set(i, cast(select(i < quotient(all, 2), from, back), t));
        });
    });
}

// Elements on the other side of the diagonal become 0.
template <bool kLower>
bool triangle(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const Tensor x = c.tensor(0).contiguous();
    const DType t = moved_dtype(out.dtype());
    const int64_t rows = out.dim(out.rank() - 2), columns = out.shape().back();
    const int64_t diagonal = std::clamp(c.args[1].integer(), -rows - 1, columns + 1);
    Words words;
    words.tensor(x).tensor(out).size(out.size()).size(rows).size(columns).size(diagonal);
    return launcher.run_for(str(kLower ? "lower " : "upper ", name_of(t)), out.size(), words, [&](Writer& w) {
        const Elements from = w.tensor(t), to = w.tensor(t);
        const Number all = w.size(), height = w.size(), width = w.size(), edge = w.size();
        w.for_each(all, [&](Number i) {
            const Number column = remainder(i, width), row = remainder(quotient(i, width), height);
            const Number v = from.get(i), last = row + edge;
            to.set(i, select(kLower ? column <= last : column >= last, v, like(v, 0)));
        });
    });
}

bool eye(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    if (!is_lane(t)) return false;
    Words words;
    words.tensor(out).size(out.size()).size(out.dim(1));
    return launcher.run_for(str("eye ", name_of(t)), out.size(), words, [&](Writer& w) {
        const Elements to = w.tensor(t);
        const Number all = w.size(), width = w.size();
        w.for_each(all, [&](Number i) { to.set(i, cast(quotient(i, width) == remainder(i, width), t)); });
    });
}

bool one_hot(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const Tensor index = c.tensor(0).cast(DType::i64).contiguous();
    const Tensor on = c.tensor(2).cast(out.dtype()).contiguous(), off = c.tensor(3).cast(out.dtype()).contiguous();
    const DType t = moved_dtype(out.dtype());
    int64_t axis = c.args[4].integer(), inner = 1;
    if (axis < 0) axis += out.rank();
    for (int i = static_cast<int>(axis) + 1; i < out.rank(); ++i) inner *= out.dim(i);
    Words words;
    words.tensor(index).tensor(on).tensor(off).tensor(out).size(out.size()).size(c.args[1].integer()).size(inner);
    return launcher.run_for(str("one hot ", name_of(t)), out.size(), words, [&](Writer& w) {
        const Elements where = w.tensor(DType::i64), hot = w.tensor(t), cold = w.tensor(t), to = w.tensor(t);
        const Number all = w.size(), depth = w.size(), columns = w.size();
        const Number yes = hot.get(w.index(0)), no = cold.get(w.index(0));
        w.for_each(all, [&](Number i) {
            const Number column = remainder(i, columns), rest = quotient(i, columns);
            const Number at = where.get(quotient(rest, depth) * columns + column);
            to.set(i, select(at == cast(remainder(rest, depth), DType::i64), yes, no));
        });
    });
}

// With a single bound, as the larger or the smaller of two numbers.
bool clamp(Launcher& launcher, const KernelCall& c) {
    if (c.has(1) == c.has(2)) return false;
    const Value args[] = {c.args[0], c.args[c.has(1) ? 1 : 2]};
    return run_loop_of({registry().get(c.has(1) ? "maximum" : "minimum"), args, c.out, c.dtype}, launcher);
}

}  // namespace

void add_array_kernels(KernelTable& table) {
    table.add("arange", arange);
    table.add("linspace", linspace);
    table.add("tril", triangle<true>);
    table.add("triu", triangle<false>);
    table.add_last("clamp", clamp);
    table.add("eye", eye);
    table.add("one_hot", one_hot);
}

}  // namespace lunaria::gpu
