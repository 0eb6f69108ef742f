// GPU kernels: scans along an axis. Each thread of a block has adjacent elements of the line: it combines those, the
// threads then exchange the state before their elements, and each goes over its own once more.
#include "backends/gpu/lines.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

// The effect of some elements on the state, s -> weight s + term. Sums have weight 1, products term 0.
struct Step {
    Number weight, term;
};
Step behind(const Step& first, const Step& second) {
    return {second.weight * first.weight, second.weight * first.term + second.term};
}

// `step(writer, line, k)` is the step of element k, `finish(writer, line, k, before, after)` gets the states around it,
// which begin with `start`; k counts from the end at which the scan begins.
template <class StepAt, class Finish>
void scan_line(Writer& w, const Line& line, DType t, double start, const Near& weights, const Near& terms, StepAt step,
               Finish finish) {
    const Number share = quotient(line.n + (line.threads - 1), line.threads);
    const Number from = w.thread() * share, next = from + share;
    const Number to = select(next < line.n, next, line.n);
    const Variable weight = w.variable(w.constant(t, 1, 1)), term = w.variable(w.constant(t, 0, 0));
    w.loop(from, to, w.index(1), [&](Number k) {
        const Step all = behind({weight.get(), term.get()}, step(w, line, k));
        weight.set(all.weight);
        term.set(all.term);
    });
    weights.set(w.thread(), weight.get());
    terms.set(w.thread(), term.get());
    w.barrier();
    const Variable state = w.variable(w.constant(t, start, static_cast<int64_t>(start)));
    w.loop(w.index(0), w.thread(), w.index(1),
           [&](Number i) { state.set(weights.get(i) * state.get() + terms.get(i)); });
    w.loop(from, to, w.index(1), [&](Number k) {
        const Step one = step(w, line, k);
        const Number before = state.get();
        state.set(one.weight * before + one.term);
        finish(w, line, k, before, state.get());
    });
    w.barrier();
}

template <bool kProduct>
bool running(Launcher& launcher, const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    const DType to = c.out[0].dtype();
    // Narrow integers are those of 64 bits, truncated; halves are computed in f32.
    const DType t = is_half(to) ? DType::f32 : is_float(to) ? to : DType::i64;
    if (is_complex(to) || is_complex(x.dtype()) || x.rank() == 0) return false;
    const bool exclusive = !kProduct && c.args[3].boolean(), reverse = !kProduct && c.args[4].boolean();
    const Lines lines(c, 1, x.shape());
    const Tensor dense = x.contiguous();
    Words words;
    words.tensor(dense).tensor(c.out[0]);
    const std::string name = str(kProduct ? "running product " : "running sum ", name_of(x.dtype()), ' ', name_of(to),
                                 exclusive ? " exclusive" : "", reverse ? " reverse" : "");
    return run_lines(launcher, name, lines, words, [&](Writer& w) {
        const Elements from = w.tensor(x.dtype()), out = w.tensor(to);
        const Near weights = w.near(t, lines.threads()), terms = w.near(t, lines.threads());
        return [=](Writer& now, const Line& line) {
            auto place = [&](Number k) { return line.at(reverse ? line.n - 1 - k : k); };
            scan_line(
                now, line, t, kProduct ? 1 : 0, weights, terms,
                [&](Writer& here, const Line&, Number k) {
                    const Number v = cast(from.get(place(k)), t);
                    return kProduct ? Step{v, here.constant(t, 0, 0)} : Step{here.constant(t, 1, 1), v};
                },
                [&](Writer&, const Line&, Number k, Number before, Number after) {
                    out.set(place(k), cast(exclusive ? before : after, to));
                });
        };
    });
}

bool linear_recurrence(Launcher& launcher, const KernelCall& c) {
    const Tensor& out = c.out[0];
    const DType t = out.dtype();
    if ((t != DType::f32 && t != DType::f64) || out.rank() == 0) return false;
    const bool reverse = c.args[3].boolean();
    const Lines lines(c, 2, out.shape());
    Words words;
    words.tensor(c.tensor(0)).tensor(c.tensor(1)).tensor(out);
    return run_lines(launcher, str("recurrence ", name_of(t), reverse), lines, words, [&](Writer& w) {
        const Elements a = w.tensor(t), b = w.tensor(t), to = w.tensor(t);
        const Near weights = w.near(t, lines.threads()), terms = w.near(t, lines.threads());
        return [=](Writer& now, const Line& line) {
            auto place = [&](Number k) { return reverse ? line.n - 1 - k : k; };
            scan_line(
                now, line, t, 0, weights, terms,
                [&](Writer& here, const Line&, Number k) {
                    // The weight of the first element is not read, since it may have any value.
                    const Variable weight = here.variable(here.constant(t, 0, 0));
                    here.when(k > 0, [&] { weight.set(a.get(line.at(reverse ? place(k) + 1 : place(k)))); });
                    return Step{weight.get(), b.get(line.at(place(k)))};
                },
                [&](Writer&, const Line&, Number k, Number, Number after) { to.set(line.at(place(k)), after); });
        };
    });
}

}  // namespace

void add_scan_kernels(KernelTable& table) {
    table.add("cumsum", running<false>);
    table.add("cumprod", running<true>);
    table.add("linear_recurrence", linear_recurrence);
}

}  // namespace lunaria::gpu
