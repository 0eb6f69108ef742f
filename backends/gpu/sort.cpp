// GPU kernels: sorts, partial sorts, and extrema with their places. Equal elements keep their order, and NaN is larger
// than everything. A line that fits the memory of a block is sorted there by Batcher's bitonic network.
#include <bit>

#include "backends/gpu/lines.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

bool has_order(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64; }

// Whether a comes strictly before b: by value, then by place.
Number is_before(Number a, Number at, Number b, Number other, bool descending) {
    Number first = descending ? b < a : a < b, last = descending ? a < b : b < a;
    if (is_float(a.dtype)) {
        const Number nan = a != a, other_nan = b != b;
        first = first | (descending ? nan & !other_nan : other_nan & !nan);
        last = last | (descending ? other_nan & !nan : nan & !other_nan);
    }
    return first | ((!last) & (at < other));
}

// The most elements of a line that are sorted in a block's memory, 12 bytes each at the most.
constexpr int64_t kMostSorted = 2048;

// `values` or `places` may be empty; they get the first `count` elements of each line.
bool sort_lines(Launcher& launcher, const KernelCall& c, const Lines& lines, int64_t count, bool descending,
                const Tensor& values, const Tensor& places) {
    const Tensor& x = c.tensor(0);
    const DType t = x.dtype();
    if (!has_order(t) || lines.n > kMostSorted || lines.n == 0) return false;
    const Tensor dense = x.contiguous();
    const auto room = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(lines.n)));
    const bool gives_values = static_cast<bool>(values), gives_places = static_cast<bool>(places);
    Words words;
    words.tensor(dense);
    if (gives_values) words.tensor(values);
    if (gives_places) words.tensor(places);
    words.size(count);
    const std::string name =
        str("sort ", room, ' ', name_of(t), descending ? " descending" : "", gives_values, gives_places);
    return run_lines(launcher, name, lines, words, [&](Writer& w) {
        const Elements from = w.tensor(t), to = gives_values ? w.tensor(t) : Elements{};
        const Elements index = gives_places ? w.tensor(DType::i64) : Elements{};
        const Number wanted = w.size();
        const Near keys = w.near(t, room), numbers = w.near(DType::i32, room);
        return [=](Writer& now, const Line& line) {
            // Padding comes after the elements, in any order: its numbers identify it.
            now.for_each_here(now.index(room), [&](Number k) {
                const Variable key = now.variable(now.constant(t, 0, 0));
                now.when(k < line.n, [&] { key.set(from.get(line.at(k))); });
                keys.set(k, key.get());
                numbers.set(k, cast(k, DType::i32));
            });
            now.barrier();
            const Number end = cast(line.n, DType::i32);
            for (int64_t size = 2; size <= room; size *= 2)
                for (int64_t step = size / 2; step > 0; step /= 2) {
                    now.for_each_here(now.index(room / 2), [&](Number i) {
                        const Number low = quotient(i, step) * (2 * step) + remainder(i, step), high = low + step;
                        const Number a = keys.get(low), b = keys.get(high);
                        const Number first = numbers.get(low), second = numbers.get(high);
                        const Number ordered =
                            (first < end) & ((second >= end) | is_before(a, first, b, second, descending));
                        // Half of the parts are sorted in the opposite order.
                        const Number upwards = remainder(quotient(low, size), 2) == 0;
                        now.when(ordered != upwards, [&] {
                            keys.set(low, b);
                            keys.set(high, a);
                            numbers.set(low, second);
                            numbers.set(high, first);
                        });
                    });
                    now.barrier();
                }
            const Number block = quotient(line.start, line.n * line.inner), column = remainder(line.start, line.inner);
            const Number start = block * wanted * line.inner + column;
            now.for_each_here(wanted, [&](Number k) {
                if (gives_values) to.set(start + k * line.inner, keys.get(k));
                if (gives_places) index.set(start + k * line.inner, cast(numbers.get(k), DType::i64));
            });
            now.barrier();
        };
    });
}

bool sort(Launcher& launcher, const KernelCall& c) {
    const Lines lines(c, 1, c.tensor(0).shape());
    return sort_lines(launcher, c, lines, lines.n, c.args[2].boolean(), c.out[0], c.out[1]);
}
bool argsort(Launcher& launcher, const KernelCall& c) {
    const Lines lines(c, 1, c.tensor(0).shape());
    return sort_lines(launcher, c, lines, lines.n, c.args[2].boolean(), {}, c.out[0]);
}
bool topk(Launcher& launcher, const KernelCall& c) {
    const Lines lines(c, 2, c.tensor(0).shape());
    return sort_lines(launcher, c, lines, c.args[1].integer(), c.args[3].boolean(), c.out[0], c.out[1]);
}

// The extreme element of a line and the first place that has it; of the whole tensor without an axis.
bool extremum(Launcher& launcher, const KernelCall& c, bool largest, const Tensor& values, const Tensor& places) {
    const Tensor& x = c.tensor(0);
    const DType t = x.dtype();
    if (!has_order(t) || x.size() == 0) return false;
    const Tensor dense = x.contiguous();
    const Lines lines(c, 1, c.has(1) ? x.shape() : Shape{x.size()});
    const bool gives_values = static_cast<bool>(values), gives_places = static_cast<bool>(places);
    Words words;
    words.tensor(dense);
    if (gives_values) words.tensor(values);
    if (gives_places) words.tensor(places);
    const std::string name =
        str(largest ? "largest of line " : "smallest of line ", name_of(t), gives_values, gives_places);
    return run_lines(launcher, name, lines, words, [&](Writer& w) {
        const Elements from = w.tensor(t), to = gives_values ? w.tensor(t) : Elements{};
        const Elements index = gives_places ? w.tensor(DType::i64) : Elements{};
        const Near keys = w.near(t, lines.threads()), numbers = w.near(w.index_type(), lines.threads());
        // NaN wins in both cases.
        auto wins = [=](Number a, Number at, Number b, Number other) {
            Number first = largest ? b < a : a < b, last = largest ? a < b : b < a;
            if (is_float(a.dtype)) {
                first = first | ((a != a) & (b == b));
                last = last | ((b != b) & (a == a));
            }
            return first | ((!last) & (at < other));
        };
        return [=](Writer& now, const Line& line) {
            // A thread without an element takes the first one, which changes nothing.
            const Variable best = now.variable(from.get(line.start)), where = now.variable(now.index(0));
            now.for_each_here(line.n, [&](Number k) {
                const Number v = from.get(line.at(k)), better = wins(v, k, best.get(), where.get());
                best.set(select(better, v, best.get()));
                where.set(select(better, k, where.get()));
            });
            keys.set(now.thread(), best.get());
            numbers.set(now.thread(), where.get());
            fold_block(line.threads, [&](Number a, Number b) {
                const Number better = wins(keys.get(b), numbers.get(b), keys.get(a), numbers.get(a));
                now.when(better, [&] {
                    keys.set(a, keys.get(b));
                    numbers.set(a, numbers.get(b));
                });
            });
            const Number result =
                quotient(line.start, line.n * line.inner) * line.inner + remainder(line.start, line.inner);
            now.when(now.thread() == 0, [&] {
                if (gives_values) to.set(result, keys.get(now.index(0)));
                if (gives_places) index.set(result, cast(numbers.get(now.index(0)), DType::i64));
            });
            now.barrier();
        };
    });
}

template <bool kLargest>
bool with_place(Launcher& launcher, const KernelCall& c) {
    return extremum(launcher, c, kLargest, c.out[0], c.out.size() > 1 ? c.out[1] : Tensor());
}
template <bool kLargest>
bool place_alone(Launcher& launcher, const KernelCall& c) {
    return extremum(launcher, c, kLargest, {}, c.out[0]);
}

}  // namespace

void add_sort_kernels(KernelTable& table) {
    table.add("sort", sort);
    table.add("argsort", argsort);
    table.add("topk", topk);
    table.add("max", with_place<true>);
    table.add("min", with_place<false>);
    table.add("argmax", place_alone<true>);
    table.add("argmin", place_alone<false>);
}

}  // namespace lunaria::gpu
