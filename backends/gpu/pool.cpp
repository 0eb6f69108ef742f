// GPU kernels: pooling. A thread computes an element of the result from all its inputs, so that no sum involves several
// threads.
#include "core/ops/pool.h"

#include <array>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"

namespace lunaria::gpu {

namespace {

using Axes = std::array<Number, Window::kAxes>;

// Windows over planes, whose shape is part of the kernel and whose sizes are arguments of a launch.
struct Windows {
    Window w;
    Axes in{}, out{};
    Number in_size, out_size;

    static void pass(Words& words, const Window& w) {
        for (const Window::Sizes* sizes : {&w.in, &w.out})
            for (int64_t size : *sizes) words.size(size);
        words.size(w.in_size()).size(w.out_size());
    }
    Windows(Writer& writer, const Window& window) : w(window) {
        for (Axes* axes : {&in, &out})
            for (Number& size : *axes) size = writer.size();
        in_size = writer.size();
        out_size = writer.size();
    }
    static std::string name(const Window& w) {
        std::string text;
        for (size_t i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i)
            text += str(' ', w.kernel[i], ' ', w.stride[i], ' ', w.dilation[i], ' ', w.before[i], ' ', w.after[i]);
        return text;
    }

    Axes places(Number i, const Axes& sizes) const {
        Axes at{};
        for (size_t axis = Window::kAxes; axis-- > 0;) {
            at[axis] = axis ? remainder(i, sizes[axis]) : i;
            if (axis) i = quotient(i, sizes[axis]);
        }
        return at;
    }
    static Number position(const Axes& at, const Axes& sizes) { return (at[0] * sizes[1] + at[1]) * sizes[2] + at[2]; }
    Axes starts(const Axes& place) const {
        Axes at{};
        for (size_t i = 0; i < Window::kAxes; ++i) at[i] = place[i] * w.stride[i] - w.before[i];
        return at;
    }
    // `body(position in the plane)` for each element of a window.
    template <class F>
    void for_each(Writer& writer, const Axes& start, F body) const {
        over(writer, 0, start, {}, writer.constant(DType::boolean, 1, 1),
             [&](const Axes& at, Number inside) { writer.when(inside, [&] { body(position(at, in)); }); });
    }
    // Runs `body(position among the windows)` for each window that contains the place of the plane.
    template <class F>
    void for_each_window(Writer& writer, const Axes& place, F body) const {
        Axes start{};
        for (size_t i = 0; i < Window::kAxes; ++i) start[i] = place[i] + w.before[i];
        over_windows(writer, 0, start, {}, writer.constant(DType::boolean, 1, 1),
                     [&](const Axes& at, Number inside) { writer.when(inside, [&] { body(at); }); });
    }

  private:
    template <class F>
    void over(Writer& writer, size_t axis, const Axes& start, Axes at, Number inside, F body) const {
        if (axis == Window::kAxes) return body(at, inside);
        if (w.kernel[axis] == 1) {
            at[axis] = start[axis];
            return over(writer, axis + 1, start, at, inside & (at[axis] >= 0) & (at[axis] < in[axis]), body);
        }
        writer.loop(writer.index(0), writer.index(w.kernel[axis]), writer.index(1), [&](Number k) {
            at[axis] = start[axis] + k * w.dilation[axis];
            over(writer, axis + 1, start, at, inside & (at[axis] >= 0) & (at[axis] < in[axis]), body);
        });
    }
    template <class F>
    void over_windows(Writer& writer, size_t axis, const Axes& start, Axes at, Number inside, F body) const {
        if (axis == Window::kAxes) return body(at, inside);
        auto one = [&](Number from) {
            const Number whole = select(from < 0, like(from, 0), from);
            at[axis] = quotient(whole, w.stride[axis]);
            Number fits = inside & (from >= 0) & (at[axis] < out[axis]);
            if (w.stride[axis] > 1) fits = fits & (remainder(whole, w.stride[axis]) == 0);
            over_windows(writer, axis + 1, start, at, fits, body);
        };
        if (w.kernel[axis] == 1) return one(start[axis]);
        // From the last element of the kernel to the first, so that windows come in their order.
        writer.loop(writer.index(0), writer.index(w.kernel[axis]), writer.index(1),
                    [&](Number k) { one(start[axis] - (w.kernel[axis] - 1 - k) * w.dilation[axis]); });
    }
};

bool is_number(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64; }

struct Largest {
    Number value, position;
};

// The first of the largest elements; NaN counts as larger than everything.
Largest largest(Writer& w, const Windows& windows, const Elements& x, Number plane, const Axes& place) {
    const Variable best = w.variable(w.constant(x.dtype, 0, 0)), where = w.variable(w.index(-1));
    windows.for_each(w, windows.starts(place), [&](Number at) {
        const Number v = x.get(plane + at);
        Number wins = (where.get() < 0) | (v > best.get());
        if (is_float(x.dtype)) wins = wins | (v != v);
        best.set(select(wins, v, best.get()));
        where.set(select(wins, at, where.get()));
    });
    return {best.get(), where.get()};
}

template <bool kPositions>
bool max_window(Launcher& launcher, const KernelCall& c) {
    const Window window = max_window_of(Call(c.op, c.args, c.dtype));
    const Tensor &x = c.tensor(0), &out = c.out[0];
    if (!is_number(c.dtype)) return false;
    Words words;
    words.tensor(x).tensor(out).size(out.size());
    Windows::pass(words, window);
    const std::string name =
        str(kPositions ? "largest positions " : "largest ", name_of(c.dtype), Windows::name(window));
    return launcher.run_for(name, out.size(), words, [&](Writer& w) {
        const Elements from = w.tensor(c.dtype), to = w.tensor(out.dtype());
        const Number all = w.size();
        const Windows windows(w, window);
        w.for_each(all, [&](Number i) {
            const Number plane = quotient(i, windows.out_size), at = remainder(i, windows.out_size);
            const Largest found = largest(w, windows, from, plane * windows.in_size, windows.places(at, windows.out));
            to.set(i, kPositions ? cast(found.position, to.dtype) : found.value);
        });
    });
}

bool max_window_grad(Launcher& launcher, const KernelCall& c) {
    const Window window = max_window_of(Call(c.op, c.args, c.dtype), 1);
    const Tensor &dout = c.tensor(0), &x = c.tensor(1), &out = c.out[0];
    if (!is_number(c.dtype)) return false;
    Words words;
    words.tensor(dout).tensor(x).tensor(out).size(out.size());
    Windows::pass(words, window);
    const std::string name = str("largest gradient ", name_of(c.dtype), Windows::name(window));
    return launcher.run_for(name, out.size(), words, [&](Writer& w) {
        const Elements from = w.tensor(c.dtype), elements = w.tensor(c.dtype), to = w.tensor(c.dtype);
        const Number all = w.size();
        const Windows windows(w, window);
        w.for_each(all, [&](Number i) {
            const Number plane = quotient(i, windows.in_size), at = remainder(i, windows.in_size);
            const Variable sum = w.variable(w.constant(c.dtype, 0, 0));
            windows.for_each_window(w, windows.places(at, windows.in), [&](const Axes& place) {
                const Largest found = largest(w, windows, elements, plane * windows.in_size, place);
                w.when(found.position == at, [&] {
                    const Number number = Windows::position(place, windows.out);
                    sum.set(sum.get() + from.get(plane * windows.out_size + number));
                });
            });
            to.set(i, sum.get());
        });
    });
}

// The divisor of a window's sum: a number, or the number of its elements, with or without the padding.
struct Divisor {
    int64_t fixed = 0;
    bool counts_padding = false;

    Divisor(const KernelCall& c, size_t first)
        : fixed(c.has(first + 1) ? c.args[first + 1].integer() : 0), counts_padding(c.args[first].boolean()) {}
    std::string name() const { return fixed ? " fixed" : counts_padding ? " padded" : ""; }

    Number at(Writer& w, const Windows& windows, const Axes& place, Number number, DType t) const {
        if (fixed) return number;
        Number count = w.index(1);
        const Axes start = windows.starts(place);
        for (size_t i = 0; i < Window::kAxes; ++i) {
            const int64_t before = counts_padding ? windows.w.before[i] : 0;
            const int64_t after = counts_padding ? windows.w.after[i] : 0;
            const Number low = w.index(-before), high = windows.in[i] + after;
            const Number from = select(start[i] < low, low, start[i]), end = start[i] + windows.w.kernel[i];
            count = count * (select(end < high, end, high) - from);
        }
        return cast(count, t);
    }
};

bool avg_pool(Launcher& launcher, const KernelCall& c) {
    const Tensor &x = c.tensor(0), &out = c.out[0];
    const Window window = avg_window_of(Call(c.op, c.args, c.dtype), x.shape(), 1);
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    const Divisor divisor(c, 5);
    Words words;
    words.tensor(x).tensor(out).size(out.size()).real(static_cast<double>(divisor.fixed));
    Windows::pass(words, window);
    const std::string name = str("means ", name_of(c.dtype), divisor.name(), Windows::name(window));
    return launcher.run_for(name, out.size(), words, [&](Writer& w) {
        const Elements from = w.tensor(c.dtype), to = w.tensor(c.dtype);
        const Number all = w.size(), fixed = w.real(c.dtype);
        const Windows windows(w, window);
        w.for_each(all, [&](Number i) {
            const Number plane = quotient(i, windows.out_size), at = remainder(i, windows.out_size);
            const Axes place = windows.places(at, windows.out);
            const Variable sum = w.variable(w.constant(c.dtype, 0, 0));
            windows.for_each(w, windows.starts(place),
                             [&](Number element) { sum.set(sum.get() + from.get(plane * windows.in_size + element)); });
            to.set(i, sum.get() / divisor.at(w, windows, place, fixed, c.dtype));
        });
    });
}

bool avg_pool_grad(Launcher& launcher, const KernelCall& c) {
    const Call call(c.op, c.args, c.dtype);
    const Window window = avg_window_of(call, Shape(call.ints(1)), 2);
    const Tensor &dout = c.tensor(0), &out = c.out[0];
    if (c.dtype != DType::f32 && c.dtype != DType::f64) return false;
    const Divisor divisor(c, 6);
    Words words;
    words.tensor(dout).tensor(out).size(out.size()).real(static_cast<double>(divisor.fixed));
    Windows::pass(words, window);
    const std::string name = str("means gradient ", name_of(c.dtype), divisor.name(), Windows::name(window));
    return launcher.run_for(name, out.size(), words, [&](Writer& w) {
        const Elements from = w.tensor(c.dtype), to = w.tensor(c.dtype);
        const Number all = w.size(), fixed = w.real(c.dtype);
        const Windows windows(w, window);
        w.for_each(all, [&](Number i) {
            const Number plane = quotient(i, windows.in_size), at = remainder(i, windows.in_size);
            const Variable sum = w.variable(w.constant(c.dtype, 0, 0));
            windows.for_each_window(w, windows.places(at, windows.in), [&](const Axes& place) {
                const Number number = Windows::position(place, windows.out);
                const Number share = from.get(plane * windows.out_size + number);
                sum.set(sum.get() + share / divisor.at(w, windows, place, fixed, c.dtype));
            });
            to.set(i, sum.get());
        });
    });
}

}  // namespace

void add_pool_kernels(KernelTable& table) {
    table.add("max_window", max_window<false>);
    table.add("argmax_window", max_window<true>);
    table.add("max_window_grad", max_window_grad);
    for (const char* op : {"avg_pool1d", "avg_pool2d", "avg_pool3d"}) table.add(op, avg_pool);
    table.add("avg_pool_grad", avg_pool_grad);
}

}  // namespace lunaria::gpu
