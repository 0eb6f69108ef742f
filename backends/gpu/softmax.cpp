// GPU kernels: softmax along axes for which there is no loop.
#include "backends/gpu/lines.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

bool is_plain(DType t) { return t == DType::f32 || t == DType::f64; }

Number log(Number x) { return formula("log", x); }

// Over the elements of a line; the result is in every thread.
template <class F>
Number line_sum(Writer& w, const Line& line, DType t, const Near& memory, F element) {
    const Variable sum = w.variable(w.constant(t, 0, 0));
    w.for_each_here(
        line.n, [&](Number k) { sum.set(sum.get() + element(line.at(k))); }, kTogether);
    return block_sum(sum.get(), memory);
}

// NaN where there is one.
Number line_maximum(Writer& w, const Line& line, const Elements& x, const Near& memory) {
    const Variable most = w.variable(w.constant(x.dtype, -std::numeric_limits<double>::infinity(), 0));
    w.for_each_here(
        line.n, [&](Number k) { most.set(maximum(most.get(), x.get(line.at(k)))); }, kTogether);
    memory.set(w.thread(), most.get());
    fold_block(line.threads, [&](Number a, Number b) { memory.set(a, maximum(memory.get(a), memory.get(b))); });
    const Number found = memory.get(w.index(0));
    w.barrier();
    return found;
}

template <bool kLogarithm>
bool softmax(Launcher& launcher, const KernelCall& c) {
    const Tensor &x = c.tensor(0), &out = c.out[0];
    const DType t = x.dtype();
    if (!is_plain(t) || out.dtype() != t) return false;
    const Lines lines(c, 1, x.shape());
    Words words;
    words.tensor(x).tensor(out);
    return run_lines(launcher, str(kLogarithm ? "log softmax " : "softmax ", name_of(t)), lines, words, [&](Writer& w) {
        const Elements from = w.tensor(t), to = w.tensor(t);
        const Near most = w.near(t, lines.threads()), sums = w.near(t, graph::kWarp);
        return [=](Writer& now, const Line& line) {
            const Number largest = line_maximum(now, line, from, most);
            const Number sum = line_sum(now, line, t, sums, [&](Number at) { return exp(from.get(at) - largest); });
            now.for_each_here(line.n, [&](Number k) {
                const Number shifted = from.get(line.at(k)) - largest;
                to.set(line.at(k), kLogarithm ? shifted - log(sum) : exp(shifted) / sum);
            });
        };
    });
}

template <bool kLogarithm>
bool softmax_grad(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    if (!is_plain(t)) return false;
    const Lines lines(c, 2, out.shape());
    Words words;
    words.tensor(c.tensor(0)).tensor(c.tensor(1)).tensor(out);
    const std::string name = str(kLogarithm ? "log softmax gradient " : "softmax gradient ", name_of(t));
    return run_lines(launcher, name, lines, words, [&](Writer& w) {
        const Elements d = w.tensor(t), y = w.tensor(t), to = w.tensor(t);
        const Near sums = w.near(t, graph::kWarp);
        return [=](Writer& now, const Line& line) {
            const Number sum =
                line_sum(now, line, t, sums, [&](Number at) { return kLogarithm ? d.get(at) : d.get(at) * y.get(at); });
            now.for_each_here(line.n, [&](Number k) {
                const Number at = line.at(k), slope = d.get(at), value = y.get(at);
                to.set(at, kLogarithm ? slope - exp(value) * sum : value * (slope - sum));
            });
        };
    });
}

}  // namespace

void add_softmax_kernels(KernelTable& table) {
    table.add_last("softmax", softmax<false>);
    table.add_last("log_softmax", softmax<true>);
    table.add_last("softmax_grad", softmax_grad<false>);
    table.add_last("log_softmax_grad", softmax_grad<true>);
}

}  // namespace lunaria::gpu
