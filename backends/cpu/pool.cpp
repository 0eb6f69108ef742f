// CPU kernels: pooling.
#include "core/ops/pool.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/nan.h"
#include "backends/cpu/simd/pool_loops.h"
#include "core/base/interrupt.h"
#include "core/run/prepared.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

Call call_of(const KernelCall& c) { return Call(c.op, c.args, c.dtype); }

// For every type that has an order; halves are computed in f32.
template <class F>
bool visit_ordered(DType t, F f) {
    return visit_dtype(t, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>) {
            f(tag);
            return true;
        } else {
            return false;
        }
    });
}

// Calls visit(output position, input position) for each element of each window, window by window, and start(output
// position) before each window.
template <class Start, class Visit>
void for_each_window(const Window& w, Start start, Visit visit) {
    int64_t at = 0;
    for (int64_t z = 0; z < w.out[0]; ++z) {
        int64_t z0 = z * w.stride[0] - w.before[0];
        KernelRange rz(z0, w.kernel[0], w.dilation[0], w.in[0]);
        for (int64_t y = 0; y < w.out[1]; ++y) {
            int64_t y0 = y * w.stride[1] - w.before[1];
            KernelRange ry(y0, w.kernel[1], w.dilation[1], w.in[1]);
            for (int64_t x = 0; x < w.out[2]; ++x, ++at) {
                int64_t x0 = x * w.stride[2] - w.before[2];
                KernelRange rx(x0, w.kernel[2], w.dilation[2], w.in[2]);
                start(at, z0, y0, x0);
                for (int64_t kz = rz.begin; kz < rz.end; ++kz)
                    for (int64_t ky = ry.begin; ky < ry.end; ++ky) {
                        int64_t row = ((z0 + kz * w.dilation[0]) * w.in[1] + y0 + ky * w.dilation[1]) * w.in[2];
                        for (int64_t kx = rx.begin; kx < rx.end; ++kx) visit(at, row + x0 + kx * w.dilation[2]);
                    }
            }
        }
    }
}

int64_t planes_of(const Tensor& t, int axes) {
    int64_t planes = 1;
    for (int i = 0; i < t.rank() - axes; ++i) planes *= t.dim(i);
    return planes;
}

// Position of the largest element of every window; a NaN counts as larger than everything.
template <class T>
void find_maxima(const Window& w, const T* plane, int64_t* positions) {
    for_each_window(
        w, [&](int64_t at, int64_t, int64_t, int64_t) { positions[at] = -1; },
        [&](int64_t at, int64_t in) {
            int64_t& best = positions[at];
            if (best < 0 || plane[in] > plane[best] || is_nan(plane[in])) best = in;
        });
}

template <bool want_positions>
bool plain_max(const KernelCall& c) {
    Window w = max_window_of(call_of(c));
    const Tensor& x = c.tensor(0);
    int64_t planes = planes_of(x, w.axes), size = w.out_size();
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::vector<int64_t> buffer(want_positions ? 0 : static_cast<size_t>(size));
        for (int64_t p = 0; p < planes; ++p) {
            poll_interrupt();
            const T* plane = x.data<T>() + p * w.in_size();
            int64_t* positions = want_positions ? c.out[0].data<int64_t>() + p * size : buffer.data();
            find_maxima(w, plane, positions);
            if constexpr (!want_positions)
                for (int64_t i = 0; i < size; ++i) c.out[0].data<T>()[p * size + i] = plane[positions[i]];
        }
    });
}

// The gradient of every window goes to the position of its largest element.
template <class T>
void scatter_to_maxima(const Window& w, const T* dout, const T* plane, int64_t* positions, T* out) {
    find_maxima(w, plane, positions);
    std::fill_n(out, w.in_size(), T(0));
    for (int64_t i = 0; i < w.out_size(); ++i)
        if (positions[i] >= 0) out[positions[i]] = static_cast<T>(out[positions[i]] + dout[i]);
}

bool plain_max_grad(const KernelCall& c) {
    Window w = max_window_of(call_of(c), 1);
    const Tensor &dout = c.tensor(0), &x = c.tensor(1);
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::vector<int64_t> positions(static_cast<size_t>(w.out_size()));
        for (int64_t p = 0; p < planes_of(x, w.axes); ++p) {
            poll_interrupt();
            scatter_to_maxima(w, dout.data<T>() + p * w.out_size(), x.data<T>() + p * w.in_size(), positions.data(),
                              c.out[0].data<T>() + p * w.in_size());
        }
    });
}

bool plain_adaptive_argmax(const KernelCall& c) {
    Call call = call_of(c);
    int axes = static_cast<int>(call.ints(1).size());
    Window::Sizes in = spatial_sizes(c.tensor(0).shape(), axes), out = spatial_sizes(c.out[0].shape(), axes);
    int64_t planes = planes_of(c.tensor(0), axes), size = in[0] * in[1] * in[2];
    int64_t* at = c.out[0].data<int64_t>();
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t p = 0; p < planes; ++p) {
            poll_interrupt();
            const T* plane = c.tensor(0).data<T>() + p * size;
            for (int64_t z = 0; z < out[0]; ++z)
                for (int64_t y = 0; y < out[1]; ++y)
                    for (int64_t x = 0; x < out[2]; ++x) {
                        int64_t best = -1;
                        for (int64_t iz = adaptive_begin(z, in[0], out[0]); iz < adaptive_end(z, in[0], out[0]); ++iz)
                            for (int64_t iy = adaptive_begin(y, in[1], out[1]); iy < adaptive_end(y, in[1], out[1]);
                                 ++iy)
                                for (int64_t ix = adaptive_begin(x, in[2], out[2]); ix < adaptive_end(x, in[2], out[2]);
                                     ++ix) {
                                    int64_t i = (iz * in[1] + iy) * in[2] + ix;
                                    if (best < 0 || plane[i] > plane[best] || is_nan(plane[i])) best = i;
                                }
                        *at++ = best;
                    }
        }
    });
}

void check_position(const KernelCall& c, int64_t at, int64_t size) {
    if (at < 0 || at >= size)
        throw index_error(c.op.name(), str("index ", at, " is out of range: a plane has ", size,
                                           " elements, and indices go from 0 to ", size - 1));
}

bool plain_gather(const KernelCall& c) {
    int axes = static_cast<int>(c.args[2].integer());
    const Tensor &x = c.tensor(0), &index = c.tensor(1);
    int64_t planes = planes_of(x, axes), from = planes ? x.size() / planes : 0, to = planes ? index.size() / planes : 0;
    visit_stored(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < index.size(); ++i) {
            int64_t at = index.data<int64_t>()[i];
            check_position(c, at, from);
            c.out[0].data<T>()[i] = x.data<T>()[i / to * from + at];
        }
    });
    return true;
}

bool plain_scatter(const KernelCall& c) {
    const Tensor &x = c.tensor(0), &index = c.tensor(1), &out = c.out[0];
    int axes = static_cast<int>(call_of(c).ints(2).size());
    bool accumulate = c.args[3].boolean();
    int64_t planes = planes_of(x, axes), from = planes ? x.size() / planes : 0, to = planes ? out.size() / planes : 0;
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::fill_n(out.data<T>(), out.size(), T(0));
        for (int64_t i = 0; i < x.size(); ++i) {
            int64_t at = index.data<int64_t>()[i];
            check_position(c, at, to);
            T& place = out.data<T>()[i / from * to + at];
            place = accumulate ? static_cast<T>(place + x.data<T>()[i]) : x.data<T>()[i];
        }
    });
}

// The divisor of a window's sum: the number of its elements, which near the edge may or may not include the padding,
// but never elements beyond it.
struct Divisor {
    bool count_padding;
    int64_t fixed;

    double operator()(const Window& w, int64_t z0, int64_t y0, int64_t x0) const {
        if (fixed) return static_cast<double>(fixed);
        int64_t starts[] = {z0, y0, x0};
        double count = 1;
        for (size_t i = 0; i < Window::kAxes; ++i) {
            int64_t begin = starts[i], end = std::min(begin + w.kernel[i], w.in[i] + w.after[i]);
            if (!count_padding) {
                begin = std::max<int64_t>(begin, 0);
                end = std::min(end, w.in[i]);
            }
            count *= static_cast<double>(end - begin);
        }
        return count;
    }
};

Divisor divisor_of(const KernelCall& c, size_t count_include_pad) {
    const Value& fixed = c.args[count_include_pad + 1];
    return {c.args[count_include_pad].boolean(), fixed.is_nil() ? 0 : fixed.integer()};
}

template <class T>
void mean_of_windows(const Window& w, Divisor divisor, const T* plane, T* out) {
    double sum = 0, count = 1;
    int64_t at = 0;
    auto finish = [&] { out[at] = static_cast<T>(sum / count); };
    bool first = true;
    for_each_window(
        w,
        [&](int64_t next, int64_t z0, int64_t y0, int64_t x0) {
            if (!first) finish();
            first = false;
            at = next;
            sum = 0;
            count = divisor(w, z0, y0, x0);
        },
        [&](int64_t, int64_t in) { sum += static_cast<double>(plane[in]); });
    if (!first) finish();
}

template <class T>
void spread_over_windows(const Window& w, Divisor divisor, const T* dout, T* plane) {
    std::fill_n(plane, w.in_size(), T(0));
    T share = 0;
    for_each_window(
        w,
        [&](int64_t at, int64_t z0, int64_t y0, int64_t x0) {
            share = dout[at] / static_cast<T>(divisor(w, z0, y0, x0));
        },
        [&](int64_t, int64_t in) { plane[in] += share; });
}

template <class F>
bool visit_float(DType t, F f) {
    if (t == DType::f32) f(TypeTag<float>{});
    if (t == DType::f64) f(TypeTag<double>{});
    return t == DType::f32 || t == DType::f64;
}

bool plain_avg(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    Window w = avg_window_of(call_of(c), x.shape(), 1);
    Divisor divisor = divisor_of(c, 5);
    return visit_float(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t p = 0; p < planes_of(x, w.axes); ++p) {
            poll_interrupt();
            mean_of_windows(w, divisor, x.data<T>() + p * w.in_size(), c.out[0].data<T>() + p * w.out_size());
        }
    });
}

bool plain_avg_grad(const KernelCall& c) {
    Call call = call_of(c);
    Window w = avg_window_of(call, Shape(call.ints(1)), 2);
    Divisor divisor = divisor_of(c, 6);
    const Tensor& dout = c.tensor(0);
    return visit_float(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t p = 0; p < planes_of(dout, w.axes); ++p) {
            poll_interrupt();
            spread_over_windows(w, divisor, dout.data<T>() + p * w.out_size(), c.out[0].data<T>() + p * w.in_size());
        }
    });
}

// Calls f(plane) for every plane, on several threads when there is enough work.
template <class F>
void for_each_plane(int64_t planes, int64_t work_per_plane, F f) {
    constexpr int64_t kWorthwhile = 1 << 15;
    parallel_for(planes, kWorthwhile / std::max<int64_t>(1, work_per_plane) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) f(p);
    });
}

int64_t work_of(const Window& w) { return capped_product(w.out_size(), w.kernel_size()) + w.in_size(); }

// Output positions x of a row for which window element kx lies inside the input.
struct RowRange {
    int64_t begin, end;
    RowRange(const Window& w, int64_t offset) {
        int64_t s = w.stride[2];
        begin = offset < 0 ? (-offset + s - 1) / s : 0;
        end = offset >= w.in[2] ? 0 : std::min(w.out[2], (w.in[2] - offset - 1) / s + 1);
    }
};

// Combines, for every output row, the input rows under it: step(output row, input row, x range, stride). The long loops
// run along rows, where neighbours are neighbours in memory.
template <class T, class Step>
void combine_rows(const Window& w, const T* plane, T* out, T start, Step step) {
    // The window elements that lie inside the input for some output: the kernel may be far larger than the input.
    const KernelRange of_first(-w.before[2], w.kernel[2], w.dilation[2], w.in[2]);
    const KernelRange of_last((w.out[2] - 1) * w.stride[2] - w.before[2], w.kernel[2], w.dilation[2], w.in[2]);
    for (int64_t z = 0; z < w.out[0]; ++z) {
        int64_t z0 = z * w.stride[0] - w.before[0];
        KernelRange rz(z0, w.kernel[0], w.dilation[0], w.in[0]);
        for (int64_t y = 0; y < w.out[1]; ++y, out += w.out[2]) {
            int64_t y0 = y * w.stride[1] - w.before[1];
            KernelRange ry(y0, w.kernel[1], w.dilation[1], w.in[1]);
            std::fill_n(out, w.out[2], start);
            for (int64_t kz = rz.begin; kz < rz.end; ++kz)
                for (int64_t ky = ry.begin; ky < ry.end; ++ky) {
                    const T* row = plane + ((z0 + kz * w.dilation[0]) * w.in[1] + y0 + ky * w.dilation[1]) * w.in[2];
                    for (int64_t kx = of_last.begin; kx < of_first.end; ++kx) {
                        int64_t offset = kx * w.dilation[2] - w.before[2];
                        RowRange r(w, offset);
                        step(out + r.begin, row + (r.begin * w.stride[2] + offset), r.end - r.begin, w.stride[2]);
                    }
                }
        }
    }
}

template <class T>
const PoolLoopsOf<T>& pool_loops() {
    if constexpr (sizeof(T) == 4)
        return current_pool_loops().f32;
    else
        return current_pool_loops().f64;
}

// The larger of two numbers, NaN if one of them is.
template <class T>
void raise_to(T* out, const T* in, int64_t n, int64_t stride) {
    if constexpr (std::is_floating_point_v<T>)
        return pool_loops<T>().raise(out, in, n, stride);
    else
        for (int64_t i = 0; i < n; ++i) out[i] = std::max(out[i], in[i * stride]);
}

template <class T>
void add_to(T* out, const T* in, int64_t n, int64_t stride) {
    if (stride == 1)
        for (int64_t i = 0; i < n; ++i) out[i] += in[i];
    else
        for (int64_t i = 0; i < n; ++i) out[i] += in[i * stride];
}

// Whole windows of two by two elements: side by side (stride 2), the case of most networks, or one at each element.
bool is_two_by_two(const Window& w, int64_t stride = 2) {
    bool fits = w.kernel[0] == 1 && w.in[0] == 1 && w.out[0] == 1;
    for (size_t i = 1; i < Window::kAxes; ++i)
        fits &= w.kernel[i] == 2 && w.stride[i] == stride && w.dilation[i] == 1 && w.before[i] == 0 &&
                (w.out[i] - 1) * stride + 2 <= w.in[i];
    return fits;
}

// The position of the largest of four, the first of equals. Comparing them in turn would mispredict every other time;
// only NaN, which is rare, is worth a branch.
template <class T>
struct FirstOfFour {
    T value;
    int index;
    FirstOfFour(T a, T b, T c, T d) {
        const T left = b > a ? b : a, right = d > c ? d : c;
        value = right > left ? right : left;
        constexpr unsigned char first[8] = {3, 0, 1, 0, 2, 0, 1, 0};
        index =
            first[static_cast<int>(a == value) + 2 * static_cast<int>(b == value) + 4 * static_cast<int>(c == value)];
        const T four[] = {a, b, c, d};
        if (int{is_nan(a)} | int{is_nan(b)} | int{is_nan(c)} | int{is_nan(d)}) [[unlikely]] {
            // The last NaN, as in find_maxima.
            for (int i = 0; i < 4; ++i)
                if (is_nan(four[i])) index = i;
            value = four[index];
        }
    }
};

// Calls done(output position, input position of the window, the largest).
template <class T, class Done>
void for_each_four(const Window& w, const T* plane, Done done) {
    for (int64_t y = 0; y < w.out[1]; ++y) {
        const int64_t row = 2 * y * w.in[2];
        const T *top = plane + row, *bottom = top + w.in[2];
        for (int64_t x = 0; x < w.out[2]; ++x)
            done(y * w.out[2] + x, row + 2 * x,
                 FirstOfFour<T>(top[2 * x], top[2 * x + 1], bottom[2 * x], bottom[2 * x + 1]));
    }
}

template <class T>
void largest_of_four(const Window& w, const T* plane, T* out) {
    if constexpr (std::is_floating_point_v<T>) {
        pool_loops<T>().largest_of_four(plane, w.in[2], w.out[1], w.out[2], out);
    } else {
        for_each_four(w, plane, [&](int64_t at, int64_t, const FirstOfFour<T>& most) { out[at] = most.value; });
    }
}

// The gradients of windows of two by two; elements outside of all windows get zeros.
template <class T>
void place_gradients(const Window& w, const T* dout, const T* plane, T* out) {
    const int64_t width = w.in[2], covered = 2 * w.out[2];
    pool_loops<T>().place_of_four(plane, dout, width, w.out[1], w.out[2], out);
    for (int64_t y = 0; covered < width && y < 2 * w.out[1]; ++y)
        std::fill(out + y * width + covered, out + (y + 1) * width, T(0));
    std::fill(out + 2 * w.out[1] * width, out + w.in_size(), T(0));
}

// The largest of windows along a row.
template <class T>
void largest_along(const Window& w, const T* row, T* out, T lowest) {
    const int64_t kernel = w.kernel[2], dilation = w.dilation[2], stride = w.stride[2], before = w.before[2];
    auto one_by_one = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t from = i * stride - before;
            const KernelRange r(from, kernel, dilation, w.in[2]);
            T most = lowest;
            for (int64_t k = r.begin; k < r.end; ++k) {
                const T x = row[from + k * dilation];
                most = x > most || is_nan(x) ? x : most;
            }
            out[i] = most;
        }
    };
    // Windows that lie inside as a whole.
    const int64_t reach = capped_product(kernel - 1, dilation), room = w.in[2] - 1 + before - reach;
    const int64_t first = std::min(w.out[2], (before + stride - 1) / stride);
    const int64_t end = room < 0 ? first : std::clamp(room / stride + 1, first, w.out[2]);
    one_by_one(0, first);
    if constexpr (std::is_floating_point_v<T>) {
        if (first < end)
            pool_loops<T>().largest_along(row + first * stride - before, kernel, dilation, stride, end - first,
                                          out + first);
    } else {
        std::fill(out + first, out + end, lowest);
        for (int64_t k = 0; k < kernel && first < end; ++k)
            raise_to(out + first, row + first * stride - before + k * dilation, end - first, stride);
    }
    one_by_one(end, w.out[2]);
}

// Reduces the rows under a window first, element by element, then along the row: each element is visited once per axis.
template <class T>
void largest_of_windows(const Window& w, const T* plane, T* out, T lowest) {
    std::unique_ptr<T[]> memory;
    for (int64_t z = 0; z < w.out[0]; ++z) {
        const int64_t z0 = z * w.stride[0] - w.before[0];
        const KernelRange rz(z0, w.kernel[0], w.dilation[0], w.in[0]);
        for (int64_t y = 0; y < w.out[1]; ++y, out += w.out[2]) {
            const int64_t y0 = y * w.stride[1] - w.before[1];
            const KernelRange ry(y0, w.kernel[1], w.dilation[1], w.in[1]);
            auto row_at = [&](int64_t kz, int64_t ky) {
                return plane + ((z0 + kz * w.dilation[0]) * w.in[1] + y0 + ky * w.dilation[1]) * w.in[2];
            };
            if (rz.end - rz.begin == 1 && ry.end - ry.begin == 1) {
                largest_along(w, row_at(rz.begin, ry.begin), out, lowest);
                continue;
            }
            if (!memory) memory = std::make_unique<T[]>(static_cast<size_t>(w.in[2]));
            T* const row = memory.get();
            std::fill_n(row, w.in[2], lowest);
            for (int64_t kz = rz.begin; kz < rz.end; ++kz)
                for (int64_t ky = ry.begin; ky < ry.end; ++ky) raise_to(row, row_at(kz, ky), w.in[2], 1);
            largest_along(w, row, out, lowest);
        }
    }
}

template <class T>
void place_of_four(const Window& w, const T* plane, int64_t* positions) {
    const int64_t step[] = {0, 1, w.in[2], w.in[2] + 1};
    for_each_four(w, plane, [&](int64_t at, int64_t from, const FirstOfFour<T>& most) {
        positions[at] = from + step[most.index];
    });
}

bool fast_max(const KernelCall& c) {
    static constexpr char kOwner = 0;
    Window own;
    const Window& w = recall(c, &kOwner, own, [&] { return max_window_of(call_of(c)); });
    const Tensor& x = c.tensor(0);
    const bool four = is_two_by_two(w);
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        T lowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::lowest();
        for_each_plane(planes_of(x, w.axes), work_of(w), [&](int64_t p) {
            const T* plane = x.data<T>() + p * w.in_size();
            T* out = c.out[0].data<T>() + p * w.out_size();
            four ? largest_of_four(w, plane, out) : largest_of_windows(w, plane, out, lowest);
        });
    });
}

bool fast_argmax(const KernelCall& c) {
    Window w = max_window_of(call_of(c));
    const Tensor& x = c.tensor(0);
    const bool four = is_two_by_two(w);
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for_each_plane(planes_of(x, w.axes), work_of(w), [&](int64_t p) {
            const T* plane = x.data<T>() + p * w.in_size();
            int64_t* out = c.out[0].data<int64_t>() + p * w.out_size();
            four ? place_of_four(w, plane, out) : find_maxima(w, plane, out);
        });
    });
}

bool fast_max_grad(const KernelCall& c) {
    Window w = max_window_of(call_of(c), 1);
    const Tensor &dout = c.tensor(0), &x = c.tensor(1);
    const bool four = is_two_by_two(w), overlapping = is_two_by_two(w, 1);
    return visit_float(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for_each_plane(planes_of(x, w.axes), work_of(w) * 2, [&](int64_t p) {
            const T *from = dout.data<T>() + p * w.out_size(), *plane = x.data<T>() + p * w.in_size();
            T* out = c.out[0].data<T>() + p * w.in_size();
            if (four) return place_gradients(w, from, plane, out);
            if (overlapping) {
                std::fill_n(out, w.in_size(), T(0));
                return pool_loops<T>().add_at_four(plane, from, w.in[2], w.out[1], w.out[2], out);
            }
            std::vector<int64_t> positions(static_cast<size_t>(w.out_size()));
            scatter_to_maxima(w, from, plane, positions.data(), out);
        });
    });
}

// Plane by plane, so that no division is needed to find the elements' planes.
bool fast_scatter(const KernelCall& c) {
    const Tensor &x = c.tensor(0), &index = c.tensor(1), &out = c.out[0];
    const int axes = static_cast<int>(call_of(c).ints(2).size());
    const bool accumulate = c.args[3].boolean();
    const int64_t planes = planes_of(x, axes);
    if (planes == 0) return false;
    const int64_t from = x.size() / planes, to = out.size() / planes;
    return visit_ordered(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for_each_plane(planes, from * 2 + to, [&](int64_t p) {
            const T* values = x.data<T>() + p * from;
            const int64_t* positions = index.data<int64_t>() + p * from;
            T* plane = out.data<T>() + p * to;
            std::fill_n(plane, to, T(0));
            for (int64_t i = 0; i < from; ++i) {
                check_position(c, positions[i], to);
                T& place = plane[positions[i]];
                place = accumulate ? static_cast<T>(place + values[i]) : values[i];
            }
        });
    });
}

bool fast_avg(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    Window w = avg_window_of(call_of(c), x.shape(), 1);
    Divisor divisor = divisor_of(c, 5);
    // The divisors of the outputs are the same in every plane.
    std::vector<double> factors;
    for (int64_t z = 0; z < w.out[0]; ++z)
        for (int64_t y = 0; y < w.out[1]; ++y)
            for (int64_t i = 0; i < w.out[2]; ++i)
                factors.push_back(1.0 / divisor(w, z * w.stride[0] - w.before[0], y * w.stride[1] - w.before[1],
                                                i * w.stride[2] - w.before[2]));
    return visit_float(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for_each_plane(planes_of(x, w.axes), work_of(w), [&](int64_t p) {
            T* out = c.out[0].data<T>() + p * w.out_size();
            combine_rows(w, x.data<T>() + p * w.in_size(), out, T(0), add_to<T>);
            for (size_t i = 0; i < factors.size(); ++i) out[i] *= static_cast<T>(factors[i]);
        });
    });
}

bool fast_avg_grad(const KernelCall& c) {
    Call call = call_of(c);
    Window w = avg_window_of(call, Shape(call.ints(1)), 2);
    Divisor divisor = divisor_of(c, 6);
    const Tensor& dout = c.tensor(0);
    return visit_float(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for_each_plane(planes_of(dout, w.axes), work_of(w), [&](int64_t p) {
            spread_over_windows(w, divisor, dout.data<T>() + p * w.out_size(), c.out[0].data<T>() + p * w.in_size());
        });
    });
}

}  // namespace

const PoolLoops& current_pool_loops() {
    const Isa isa = current_isa();
    return isa == Isa::avx512 ? avx512::pool_loops : isa == Isa::avx2 ? avx2::pool_loops : v2::pool_loops;
}

void add_pool_kernels(KernelTable& table) {
    table.fast("max_window", fast_max);
    table.fast("argmax_window", fast_argmax);
    table.fast("max_window_grad", fast_max_grad);
    table.fast("plane_scatter", fast_scatter);
    for (const char* op : {"avg_pool1d", "avg_pool2d", "avg_pool3d"}) table.fast(op, fast_avg);
    table.fast("avg_pool_grad", fast_avg_grad);
    table.plain("max_window", plain_max<false>);
    table.plain("argmax_window", plain_max<true>);
    table.plain("max_window_grad", plain_max_grad);
    table.plain("adaptive_argmax", plain_adaptive_argmax);
    table.plain("plane_gather", plain_gather);
    table.plain("plane_scatter", plain_scatter);
    for (const char* op : {"avg_pool1d", "avg_pool2d", "avg_pool3d"}) table.plain(op, plain_avg);
    table.plain("avg_pool_grad", plain_avg_grad);
}

}  // namespace lunaria::cpu
