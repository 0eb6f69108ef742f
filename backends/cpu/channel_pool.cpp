// CPU kernels: pooling of tensors whose last axis holds the channels. A window is a handful of rows of channels.
#include <algorithm>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/nan.h"
#include "backends/cpu/simd/pool_loops.h"
#include "core/ops/pool.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

struct Images {
    Window window;
    int64_t count, channels;
};

Images images_of(const KernelCall& c) {
    const Window w = max_window_of(Call(c.op, c.args, c.dtype), 0, 1);
    const Tensor& x = c.tensor(0);
    const int64_t channels = x.dim(x.rank() - 1), image = w.in_size() * channels;
    return {w, image ? x.size() / image : 0, channels};
}

// Calls f(position of the window, rows of its elements) for the windows of one row of results.
template <class T, class F>
void for_each_window(const Images& images, const T* image, int64_t z, int64_t y, std::vector<const T*>& rows, F f) {
    const Window& w = images.window;
    const int64_t z0 = z * w.stride[0] - w.before[0], y0 = y * w.stride[1] - w.before[1];
    const KernelRange rz(z0, w.kernel[0], w.dilation[0], w.in[0]), ry(y0, w.kernel[1], w.dilation[1], w.in[1]);
    for (int64_t x = 0; x < w.out[2]; ++x) {
        const int64_t x0 = x * w.stride[2] - w.before[2];
        const KernelRange rx(x0, w.kernel[2], w.dilation[2], w.in[2]);
        rows.clear();
        for (int64_t kz = rz.begin; kz < rz.end; ++kz)
            for (int64_t ky = ry.begin; ky < ry.end; ++ky) {
                const int64_t line = (z0 + kz * w.dilation[0]) * w.in[1] + y0 + ky * w.dilation[1];
                for (int64_t kx = rx.begin; kx < rx.end; ++kx)
                    rows.push_back(image + (line * w.in[2] + x0 + kx * w.dilation[2]) * images.channels);
            }
        f((z * w.out[1] + y) * w.out[2] + x, rows);
    }
}

template <class T>
void plain_largest(const std::vector<const T*>& rows, int64_t channels, T* out) {
    for (int64_t i = 0; i < channels; ++i) {
        T most = rows[0][i];
        for (const T* row : rows)
            if (row[i] > most || is_nan(row[i])) most = row[i];
        out[i] = most;
    }
}

template <class T>
const PoolLoopsOf<T>& loops_of() {
    if constexpr (sizeof(T) == 4)
        return current_pool_loops().f32;
    else
        return current_pool_loops().f64;
}

template <class T>
void pool_row(const Images& images, const KernelCall& c, int64_t row, bool plain, std::vector<const T*>& rows) {
    const Window& w = images.window;
    const int64_t lines = w.out[0] * w.out[1], image = row / lines, z = row % lines / w.out[1], y = row % w.out[1];
    T* const out = c.out[0].data<T>() + image * w.out_size() * images.channels;
    const T* const in = c.tensor(0).data<T>() + image * w.in_size() * images.channels;
    for_each_window<T>(images, in, z, y, rows, [&](int64_t at, const std::vector<const T*>& elements) {
        T* const result = out + at * images.channels;
        if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
            if (!plain)
                return loops_of<T>().largest_of_rows(elements.data(), std::ssize(elements), images.channels, result);
        }
        plain_largest(elements, images.channels, result);
    });
}

template <bool plain>
bool max_last(const KernelCall& c) {
    const Images images = images_of(c);
    const Window& w = images.window;
    const int64_t rows = images.count * w.out[0] * w.out[1];
    constexpr int64_t kWorthwhile = 1 << 15;
    const int64_t work = std::max<int64_t>(1, w.out[2] * w.kernel_size() * images.channels);
    return visit_dtype(c.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>) {
            parallel_for(rows, plain ? rows : kWorthwhile / work + 1, [&](int64_t begin, int64_t end) {
                std::vector<const T*> elements;
                for (int64_t row = begin; row < end; ++row) pool_row<T>(images, c, row, plain, elements);
            });
            return true;
        } else {
            return false;
        }
    });
}

}  // namespace

void add_channel_pool_kernels(KernelTable& table) {
    table.fast("max_window_last", max_last<false>);
    table.plain("max_window_last", max_last<true>);
}

}  // namespace lunaria::cpu
