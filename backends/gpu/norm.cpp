// GPU kernels: normalisation over rows and over channels, forward where it is not a loop, and gradients. Statistics are
// computed in two passes: the mean first, then the squares of the differences from it.
#include <algorithm>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/loops/thread_loop.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

constexpr int kThreads = 256, kMostThreads = 1024;
constexpr int64_t kMostBlocks = 4096;

// The elements of a block of threads that share a mean, by their number among `count`.
struct Moments {
    Number mean, rstd, var;
};
template <class F>
Number block_sum_of(Writer& w, Number count, DType t, const Near& memory, F element) {
    const Variable sum = w.variable(w.constant(t, 0, 0));
    w.for_each_here(
        count, [&](Number i) { sum.set(sum.get() + element(i)); }, kTogether);
    return block_sum(sum.get(), memory);
}
template <class F>
Moments moments(Writer& w, Number count, Number eps, const Near& memory, F element) {
    const DType t = eps.dtype;
    const Number number = cast(count, t);
    const Number mean = block_sum_of(w, count, t, memory, element) / number;
    const Number var = block_sum_of(w, count, t, memory,
                                    [&](Number i) {
                                        const Number d = element(i) - mean;
                                        return d * d;
                                    }) /
                       number;
    return {mean, 1 / sqrt(var + eps), var};
}

// x as outer × channels × inner, normalised over outer and inner; a block of threads has a channel.
struct Channels {
    int64_t outer = 1, channels = 1, inner = 1;
    explicit Channels(const Shape& x) : outer(x[0]), channels(x[1]) {
        for (int i = 2; i < x.rank(); ++i) inner *= x[i];
    }
};
// There are fewer channels than a processor has room for blocks.
int threads_of(const Channels& s) {
    constexpr int64_t kMuch = 4 * kMostThreads;
    return s.outer * s.inner >= kMuch ? kMostThreads : kThreads;
}
struct ChannelPlaces {
    Number outer, channels, inner;
    explicit ChannelPlaces(Writer& w) : outer(w.size()), channels(w.size()), inner(w.size()) {}
    Number count() const { return outer * inner; }
    Number at(Number channel, Number i) const {
        return (quotient(i, inner) * channels + channel) * inner + remainder(i, inner);
    }
};

bool is_plain(const KernelCall& c) { return (c.dtype == DType::f32 || c.dtype == DType::f64) && c.out[0].size() > 0; }

bool batch_norm_train(Launcher& launcher, const KernelCall& c) {
    if (!is_plain(c)) return false;
    const Channels s(c.tensor(0).shape());
    const DType t = c.dtype;
    const bool weighs = c.has(1), shifts = c.has(2);
    Words words;
    words.tensor(c.tensor(0));
    for (const Tensor& out : c.out) words.tensor(out);
    if (weighs) words.tensor(c.tensor(1));
    if (shifts) words.tensor(c.tensor(2));
    words.size(s.outer).size(s.channels).size(s.inner).real(c.args[3].number());
    const std::string name = str("batch norm ", name_of(t), weighs, shifts);
    return launcher.run(name, std::min(s.channels, kMostBlocks), threads_of(s), words, [&](Writer& w) {
        const Elements x = w.tensor(t), y = w.tensor(t), means = w.tensor(t), vars = w.tensor(t);
        const Elements weight = weighs ? w.tensor(t) : Elements{}, bias = shifts ? w.tensor(t) : Elements{};
        const ChannelPlaces p(w);
        const Number eps = w.real(t);
        const Near memory = w.near(t, graph::kWarp);
        w.loop(w.block(), p.channels, w.blocks(), [&](Number k) {
            const Moments m = moments(w, p.count(), eps, memory, [&](Number i) { return x.get(p.at(k, i)); });
            const Number scale = weighs ? m.rstd * weight.get(k) : m.rstd;
            w.for_each_here(p.count(), [&](Number i) {
                Number v = (x.get(p.at(k, i)) - m.mean) * scale;
                if (shifts) v += bias.get(k);
                y.set(p.at(k, i), v);
            });
            w.when(w.thread() == 0, [&] {
                means.set(k, m.mean);
                vars.set(k, m.var);
            });
        });
    });
}

bool batch_norm_grad(Launcher& launcher, const KernelCall& c) {
    if (!is_plain(c)) return false;
    const Channels s(c.tensor(1).shape());
    const DType t = c.dtype;
    const bool weighs = c.has(2);
    Words words;
    words.tensor(c.tensor(0)).tensor(c.tensor(1));
    for (const Tensor& out : c.out) words.tensor(out);
    if (weighs) words.tensor(c.tensor(2));
    words.size(s.outer).size(s.channels).size(s.inner).real(c.args[3].number());
    const std::string name = str("batch norm gradient ", name_of(t), weighs);
    return launcher.run(name, std::min(s.channels, kMostBlocks), threads_of(s), words, [&](Writer& w) {
        const Elements dy = w.tensor(t), x = w.tensor(t), dx = w.tensor(t), dweight = w.tensor(t), dbias = w.tensor(t);
        const Elements weight = weighs ? w.tensor(t) : Elements{};
        const ChannelPlaces p(w);
        const Number eps = w.real(t);
        const Near memory = w.near(t, graph::kWarp);
        w.loop(w.block(), p.channels, w.blocks(), [&](Number k) {
            const Moments m = moments(w, p.count(), eps, memory, [&](Number i) { return x.get(p.at(k, i)); });
            auto normal = [&](Number i) { return (x.get(p.at(k, i)) - m.mean) * m.rstd; };
            auto slope_at = [&](Number i) { return dy.get(p.at(k, i)); };
            const Number sum = block_sum_of(w, p.count(), t, memory, slope_at);
            const Number slope =
                block_sum_of(w, p.count(), t, memory, [&](Number i) { return slope_at(i) * normal(i); });
            const Number scale = weighs ? m.rstd * weight.get(k) : m.rstd;
            const Number count = cast(p.count(), t);
            w.for_each_here(p.count(), [&](Number i) {
                dx.set(p.at(k, i), scale * (slope_at(i) - sum / count - normal(i) * slope / count));
            });
            w.when(w.thread() == 0, [&] {
                dweight.set(k, slope);
                dbias.set(k, sum);
            });
        });
    });
}

// Sums over the rows of dy and of dy times the normalised x, for tiles of adjacent columns and parts of the rows.
bool add_columns(Launcher& launcher, const KernelCall& c, int64_t rows, int64_t columns, Address statistics) {
    constexpr int kColumns = graph::kWarp, kLanes = kThreads / kColumns;
    constexpr int64_t kRowsOfPart = 256, kMostParts = 64;
    const DType t = c.dtype;
    const int64_t parts = std::clamp<int64_t>(rows / kRowsOfPart, 1, kMostParts), part = (rows + parts - 1) / parts;
    const int64_t tiles = (columns + kColumns - 1) / kColumns;
    const Address sums = launcher.take(2 * parts * columns * static_cast<int64_t>(size_of(t)));
    Words words;
    words.tensor(c.tensor(0)).tensor(c.tensor(1)).address(statistics, 2 * rows).address(sums, 2 * parts * columns);
    words.size(rows).size(columns).size(parts).size(part);
    const bool summed =
        launcher.run(str("columns of layer norm ", name_of(t)), tiles * parts, kThreads, words, [&](Writer& w) {
            const Elements dy = w.tensor(t), x = w.tensor(t), at_row = w.tensor(t), to = w.tensor(t);
            const Number all_rows = w.size(), width = w.size(), count = w.size(), height = w.size();
            const Near lanes = w.near(t, 2 * kThreads);
            const Number piece = remainder(w.block(), count);
            const Number column = quotient(w.block(), count) * kColumns + remainder(w.thread(), kColumns);
            const Number lane = quotient(w.thread(), kColumns), from = piece * height;
            const Number end = select(from + height < all_rows, from + height, all_rows);
            const Variable slope = w.variable(w.constant(t, 0, 0)), sum = w.variable(w.constant(t, 0, 0));
            w.when(column < width, [&] {
                w.loop(from + lane, end, w.index(kLanes), [&](Number r) {
                    const Number d = dy.get(r * width + column);
                    const Number normal = (x.get(r * width + column) - at_row.get(r * 2)) * at_row.get(r * 2 + 1);
                    slope.set(slope.get() + d * normal);
                    sum.set(sum.get() + d);
                });
            });
            lanes.set(w.thread(), slope.get());
            lanes.set(w.thread() + kThreads, sum.get());
            w.barrier();
            w.when((lane == 0) & (column < width), [&] {
                for (int which = 0; which < 2; ++which) {
                    Number total = lanes.get(w.thread() + which * kThreads);
                    for (int i = 1; i < kLanes; ++i) total += lanes.get(w.thread() + (which * kThreads + i * kColumns));
                    to.set((piece * 2 + which) * width + column, total);
                }
            });
        });
    Words last;
    last.address(sums, 2 * parts * columns).tensor(c.out[1]).tensor(c.out[2]).size(columns).size(parts);
    return summed && launcher.run_for(str("sums of columns ", name_of(t)), columns, last, [&](Writer& w) {
        const Elements from = w.tensor(t), dweight = w.tensor(t), dbias = w.tensor(t);
        const Number width = w.size(), count = w.size();
        w.for_each(width, [&](Number column) {
            const Variable slope = w.variable(w.constant(t, 0, 0)), sum = w.variable(w.constant(t, 0, 0));
            w.loop(w.index(0), count, w.index(1), [&](Number piece) {
                slope.set(slope.get() + from.get(piece * 2 * width + column));
                sum.set(sum.get() + from.get((piece * 2 + 1) * width + column));
            });
            dweight.set(column, slope.get());
            dbias.set(column, sum.get());
        });
    });
}

bool layer_norm_grad(Launcher& launcher, const KernelCall& c) {
    if (!is_plain(c)) return false;
    const Shape& shape = c.tensor(1).shape();
    const DType t = c.dtype;
    const bool weighs = c.has(2);
    int64_t rows = 1, columns = 1;
    for (int i = 0; i < shape.rank(); ++i) (i < shape.rank() - c.args[3].integer() ? rows : columns) *= shape[i];
    const Address statistics = launcher.take(2 * rows * static_cast<int64_t>(size_of(t)));
    Words words;
    words.tensor(c.tensor(0)).tensor(c.tensor(1)).tensor(c.out[0]).address(statistics, 2 * rows);
    if (weighs) words.tensor(c.tensor(2));
    words.size(rows).size(columns).real(c.args[4].number());
    const std::string name = str("layer norm gradient ", name_of(t), weighs);
    const bool done = launcher.run(name, std::min(rows, kMostBlocks), kThreads, words, [&](Writer& w) {
        const Elements dy = w.tensor(t), x = w.tensor(t), dx = w.tensor(t), at_row = w.tensor(t);
        const Elements weight = weighs ? w.tensor(t) : Elements{};
        const Number all_rows = w.size(), width = w.size(), eps = w.real(t);
        const Near memory = w.near(t, graph::kWarp);
        w.loop(w.block(), all_rows, w.blocks(), [&](Number r) {
            const Number row = r * width;
            const Moments m = moments(w, width, eps, memory, [&](Number i) { return x.get(row + i); });
            auto normal = [&](Number i) { return (x.get(row + i) - m.mean) * m.rstd; };
            auto pulled = [&](Number i) { return weighs ? dy.get(row + i) * weight.get(i) : dy.get(row + i); };
            const Number sum = block_sum_of(w, width, t, memory, pulled);
            const Number slope = block_sum_of(w, width, t, memory, [&](Number i) { return pulled(i) * normal(i); });
            const Number count = cast(width, t);
            w.for_each_here(width, [&](Number i) {
                dx.set(row + i, m.rstd * (pulled(i) - sum / count - normal(i) * slope / count));
            });
            w.when(w.thread() == 0, [&] {
                at_row.set(r * 2, m.mean);
                at_row.set(r * 2 + 1, m.rstd);
            });
        });
    });
    return done && add_columns(launcher, c, rows, columns, statistics);
}

// For rows that are too long for a loop.
bool layer_norm(Launcher& launcher, const KernelCall& c) {
    if (!is_plain(c)) return false;
    const Tensor& x = c.tensor(0);
    const DType t = c.dtype;
    const bool weighs = c.has(2), shifts = c.has(3);
    int64_t columns = 1;
    for (int64_t n : Call(c.op, c.args, c.dtype).ints(1)) columns *= n;
    const int64_t rows = x.size() / columns;
    Words words;
    words.tensor(x).tensor(c.out[0]);
    if (weighs) words.tensor(c.tensor(2));
    if (shifts) words.tensor(c.tensor(3));
    words.size(rows).size(columns).real(c.args[4].number());
    const std::string name = str("layer norm ", name_of(t), weighs, shifts);
    return launcher.run(name, std::min(rows, kMostBlocks), kMostThreads, words, [&](Writer& w) {
        const Elements from = w.tensor(t), y = w.tensor(t);
        const Elements weight = weighs ? w.tensor(t) : Elements{}, bias = shifts ? w.tensor(t) : Elements{};
        const Number all_rows = w.size(), width = w.size(), eps = w.real(t);
        const Near memory = w.near(t, graph::kWarp);
        w.loop(w.block(), all_rows, w.blocks(), [&](Number r) {
            const Number row = r * width;
            const Moments m = moments(w, width, eps, memory, [&](Number i) { return from.get(row + i); });
            w.for_each_here(width, [&](Number i) {
                Number v = (from.get(row + i) - m.mean) * m.rstd;
                if (weighs) v = v * weight.get(i);
                if (shifts) v += bias.get(i);
                y.set(row + i, v);
            });
        });
    });
}

bool rms_norm(Launcher& launcher, const KernelCall& c) {
    if (!is_plain(c)) return false;
    const Tensor &x = c.tensor(0), &weight = c.tensor(1);
    const DType t = c.dtype;
    const int64_t columns = weight.size(), rows = x.size() / columns;
    Words words;
    words.tensor(x).tensor(weight).tensor(c.out[0]).tensor(c.out[1]).size(rows).size(columns).real(c.args[2].number());
    return launcher.run(str("rms norm ", name_of(t)), std::min(rows, kMostBlocks), kThreads, words, [&](Writer& w) {
        const Elements from = w.tensor(t), scale = w.tensor(t), y = w.tensor(t), roots = w.tensor(t);
        const Number all_rows = w.size(), width = w.size(), eps = w.real(t);
        const Near memory = w.near(t, graph::kWarp);
        w.loop(w.block(), all_rows, w.blocks(), [&](Number r) {
            auto at = [&](Number i) { return from.get(r * width + i); };
            const Number squares = block_sum_of(w, width, t, memory, [&](Number i) { return at(i) * at(i); });
            const Number rstd = 1 / sqrt(squares / cast(width, t) + eps);
            w.for_each_here(width, [&](Number i) { y.set(r * width + i, at(i) * rstd * scale.get(i)); });
            w.when(w.thread() == 0, [&] { roots.set(r, rstd); });
        });
    });
}

}  // namespace

void add_norm_kernels(KernelTable& table) {
    table.add_last("layer_norm", layer_norm);
    table.add("layer_norm_grad", layer_norm_grad);
    table.add("rms_norm", rms_norm);
    table.add("batch_norm_train", batch_norm_train);
    table.add("batch_norm_grad", batch_norm_grad);
}

}  // namespace lunaria::gpu
