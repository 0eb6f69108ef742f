// The arithmetic of instructions. float16 is computed in float and rounded once. Products of the cube are exact in
// float and added in float, the terms of a row of 16 in order, one row of 16 after the other: this order is the model's
// own, since the chip's is not published.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/ascend/core.h"
#include "backends/ascend/half.h"

namespace lunaria::ascend {

namespace {

constexpr int64_t kMostLanes = 256;  // of one repeat
constexpr int64_t kMostAtOnce = 8 * kMostLanes;

void load(DType type, const uint8_t* from, float* to, int64_t count) {
    if (type == DType::f16)
        halves_to_floats(reinterpret_cast<const uint16_t*>(from), to, count);
    else if (type == DType::f32)
        std::memcpy(to, from, static_cast<size_t>(count) * 4);
    else
        visit_dtype(type, [&](auto tag) {
            using T = typename decltype(tag)::type;
            if constexpr (!kIsComplex<T>)
                for (int64_t i = 0; i < count; ++i) {
                    T x;
                    std::memcpy(&x, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
                    to[i] = static_cast<float>(x);
                }
        });
}

template <class F>
void each_pair(const float* a, const float* b, float* out, int64_t n, F f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}
template <class F>
void each(const float* a, float* out, int64_t n, F f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

void of_two(Arithmetic kind, const float* a, const float* b, float* out, int64_t n) {
    switch (kind) {
        case Arithmetic::add:
            return each_pair(a, b, out, n, [](float x, float y) { return x + y; });
        case Arithmetic::sub:
            return each_pair(a, b, out, n, [](float x, float y) { return x - y; });
        case Arithmetic::mul:
            return each_pair(a, b, out, n, [](float x, float y) { return x * y; });
        case Arithmetic::max:
            return each_pair(a, b, out, n, [](float x, float y) { return x > y ? x : y; });
        case Arithmetic::min:
            return each_pair(a, b, out, n, [](float x, float y) { return x < y ? x : y; });
        case Arithmetic::div:
            return each_pair(a, b, out, n, [](float x, float y) { return x / y; });
        default:  // mla: `out` holds the sum so far
            for (int64_t i = 0; i < n; ++i) out[i] += a[i] * b[i];
    }
}

void of_one(Arithmetic kind, const float* a, float* out, int64_t n) {
    switch (kind) {
        case Arithmetic::abs:
            return each(a, out, n, [](float x) { return std::fabs(x); });
        case Arithmetic::relu:
            return each(a, out, n, [](float x) { return x < 0 ? 0.0f : x; });
        case Arithmetic::exp:
            return each(a, out, n, [](float x) { return std::exp(x); });
        case Arithmetic::ln:
            return each(a, out, n, [](float x) { return std::log(x); });
        case Arithmetic::rec:
            return each(a, out, n, [](float x) { return 1.0f / x; });
        case Arithmetic::rsqrt:
            return each(a, out, n, [](float x) { return 1.0f / std::sqrt(x); });
        case Arithmetic::sqrt:
            return each(a, out, n, [](float x) { return std::sqrt(x); });
        default:
            std::copy_n(a, n, out);
    }
}

void with_number(Arithmetic kind, const float* a, float s, float* out, int64_t n) {
    switch (kind) {
        case Arithmetic::adds:
            return each(a, out, n, [s](float x) { return x + s; });
        case Arithmetic::muls:
            return each(a, out, n, [s](float x) { return x * s; });
        case Arithmetic::maxs:
            return each(a, out, n, [s](float x) { return x > s ? x : s; });
        case Arithmetic::mins:
            return each(a, out, n, [s](float x) { return x < s ? x : s; });
        default:  // axpy
            for (int64_t i = 0; i < n; ++i) out[i] += a[i] * s;
    }
}

bool compares(Arithmetic kind, float x, float y) {
    switch (kind) {
        case Arithmetic::lt:
            return x < y;
        case Arithmetic::le:
            return x <= y;
        case Arithmetic::gt:
            return x > y;
        case Arithmetic::ge:
            return x >= y;
        case Arithmetic::eq:
            return x == y;
        default:
            return x != y;
    }
}

float fold(Arithmetic kind, const float* x, int64_t n) {
    const bool sum = kind == Arithmetic::sum || kind == Arithmetic::group_sum;
    const bool highest = kind == Arithmetic::highest || kind == Arithmetic::group_max;
    if (!sum) return highest ? *std::max_element(x, x + n) : *std::min_element(x, x + n);
    // Pairwise, as a tree of adders does.
    float level[kMostLanes];
    std::copy_n(x, n, level);
    while (n > 1) {
        for (int64_t i = 0; i < n / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
        if (n % 2) level[n / 2] = level[n - 1];
        n = (n + 1) / 2;
    }
    return level[0];
}

// One block of 16 x 16 results: c += a (16 x step, by rows) * b (16 columns, each `step` long).
void multiply_block(const float* a, const float* b, float* c, int64_t step) {
    float turned[16 * 16];
    for (int64_t j = 0; j < 16; ++j)
        for (int64_t k = 0; k < step; ++k) turned[k * 16 + j] = b[j * step + k];
    for (int64_t i = 0; i < 16; ++i) {
        float row[16];
        std::copy_n(c + i * 16, 16, row);
        for (int64_t k = 0; k < step; ++k) {
            const float x = a[i * step + k];
            for (int64_t j = 0; j < 16; ++j) row[j] += x * turned[k * 16 + j];
        }
        std::copy_n(row, 16, c + i * 16);
    }
}

}  // namespace

void Core::store(DType type, uint8_t* to, const float* from, int64_t count) {
    if (type == DType::f16) {
        result_.overflowed |= floats_to_halves(from, reinterpret_cast<uint16_t*>(to), count, settings_.saturate);
        return;
    }
    if (type == DType::f32) {
        std::memcpy(to, from, static_cast<size_t>(count) * 4);
        return;
    }
    visit_dtype(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>)
            for (int64_t i = 0; i < count; ++i) {
                // Round to nearest even, saturating; the value after the largest float below 2^31 would not fit.
                const double x = std::nearbyint(from[i]);
                const double low = static_cast<double>(std::numeric_limits<T>::lowest());
                const double high = static_cast<double>(std::numeric_limits<T>::max());
                const T rounded = std::isnan(x) ? T(0)
                                  : x >= high   ? std::numeric_limits<T>::max()
                                  : x <= low    ? std::numeric_limits<T>::lowest()
                                                : static_cast<T>(x);
                std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &rounded, sizeof(T));
            }
    });
}

void Core::compute(const Instruction& i, float number) {
    switch (i.op) {
        case Opcode::move:
            return do_move(i);
        case Opcode::load2d:
            return do_load2d(i);
        case Opcode::load3d:
            return do_load3d(i);
        case Opcode::mmad:
            return do_mmad(i);
        case Opcode::drain:
            return do_drain(i);
        case Opcode::compare:
            return do_compare(i);
        case Opcode::select:
            return do_select(i);
        case Opcode::reduce:
            return do_reduce(i);
        case Opcode::transpose:
            return do_transpose(i);
        case Opcode::scalar_load:
        case Opcode::scalar_op:
            return do_scalar(i);
        default:
            return do_elements(i, number);
    }
}

void Core::do_move(const Instruction& i) {
    for (int64_t b = 0; b < i.n[0]; ++b)
        std::memmove(at(i.dst, b * i.n[3]), at(i.a, b * i.n[2]), static_cast<size_t>(i.n[1]));
}

void Core::do_load2d(const Instruction& i) {
    for (int64_t f = 0; f < i.n[0]; ++f) {
        const uint8_t* from = at(i.a, f * i.n[1] * 512);
        uint8_t* to = at(i.dst, f * i.n[2] * 512);
        if (!i.n[3]) {
            std::memcpy(to, from, 512);
            continue;
        }
        const auto* in = reinterpret_cast<const uint16_t*>(from);
        auto* out = reinterpret_cast<uint16_t*>(to);
        for (int r = 0; r < 16; ++r)
            for (int c = 0; c < 16; ++c) out[c * 16 + r] = in[r * 16 + c];
    }
}

// A row of the result is a pixel of the output picture, a step of 16 columns is one channel block at one place of the
// window. Squares of the cube's right operand are stored by columns.
void Core::do_load3d(const Instruction& i) {
    const Window& n = window(i);
    const auto [out_h, out_w] = windows_of(n);
    constexpr uint16_t kNothing[16] = {};
    const auto* picture = reinterpret_cast<const uint16_t*>(at(i.a));
    auto* out = reinterpret_cast<uint16_t*>(at(i.dst));
    for (int64_t mf = 0; mf < n[kRowFractals]; ++mf)
        for (int64_t kf = 0; kf < n[kStepFractals]; ++kf)
            for (int64_t r = 0; r < 16; ++r) {
                uint16_t* square = out + (mf * n[kStepFractals] + kf) * 256;
                const int64_t pixel = n[kFirstRow] + mf * 16 + r, step = n[kFirstStep] + kf;
                const int64_t kx = step % n[kKernelW], ky = step / n[kKernelW] % n[kKernelH],
                              channel = step / n[kKernelW] / n[kKernelH];
                const int64_t y = pixel / out_w * n[kStrideH] - n[kPadTop] + ky * n[kDilationH];
                const int64_t x = pixel % out_w * n[kStrideW] - n[kPadLeft] + kx * n[kDilationW];
                const bool inside = pixel < out_h * out_w && channel < n[kChannels] && y >= 0 && y < n[kHeight] &&
                                    x >= 0 && x < n[kWidth];
                const uint16_t* found = inside ? picture + ((channel * n[kHeight] + y) * n[kWidth] + x) * 16 : kNothing;
                if (i.dst.space == Space::l0a)
                    std::copy_n(found, 16, square + r * 16);
                else
                    for (int64_t c = 0; c < 16; ++c) square[c * 16 + r] = found[c];
            }
}

// Squares of 16 x 32 elements of 8 bits, whose sums are int32 and exact.
void Core::do_integer_mmad(const Instruction& i) {
    constexpr int64_t step = 32;
    const int64_t m = (i.n[0] + 15) / 16, k = (i.n[1] + step - 1) / step, n = (i.n[2] + 15) / 16;
    for (int64_t x = 0; x < n; ++x)
        for (int64_t y = 0; y < m; ++y) {
            int32_t block[256] = {};
            uint8_t* c = at(i.dst, (x * m + y) * 1024);
            if (!i.n[3]) std::memcpy(block, c, sizeof block);
            for (int64_t z = 0; z < k; ++z) {
                const auto* a = reinterpret_cast<const int8_t*>(at(i.a, (y * k + z) * 512));
                const auto* b = reinterpret_cast<const int8_t*>(at(i.b, (z * n + x) * 512));
                for (int64_t row = 0; row < 16; ++row)
                    for (int64_t column = 0; column < 16; ++column) {
                        int32_t sum = 0;
                        for (int64_t e = 0; e < step; ++e) sum += a[row * step + e] * b[column * step + e];
                        block[row * 16 + column] += sum;
                    }
            }
            std::memcpy(c, block, sizeof block);
        }
}

void Core::do_mmad(const Instruction& i) {
    if (i.type == DType::i8) return do_integer_mmad(i);
    constexpr int64_t step = 16;
    const int64_t m = (i.n[0] + 15) / 16, k = (i.n[1] + step - 1) / step, n = (i.n[2] + 15) / 16;
    std::vector<float> a(static_cast<size_t>(m * k * 16 * step)), b(static_cast<size_t>(n * k * 16 * step));
    load(i.type, at(i.a), a.data(), m * k * 16 * step);
    load(i.type, at(i.b), b.data(), n * k * 16 * step);
    for (int64_t x = 0; x < n; ++x)
        for (int64_t y = 0; y < m; ++y) {
            float block[256] = {};
            uint8_t* c = at(i.dst, (x * m + y) * 1024);
            if (!i.n[3]) load(i.to, c, block, 256);
            for (int64_t z = 0; z < k; ++z)
                multiply_block(a.data() + (y * k + z) * 16 * step, b.data() + (z * n + x) * 16 * step, block, step);
            store(i.to, c, block, 256);
        }
}

void Core::do_drain(const Instruction& i) {
    const auto size = static_cast<int64_t>(size_of(i.to));
    for (int64_t f = 0; f < i.n[0]; ++f) {
        if (i.type == i.to && !i.n[2]) {
            std::memcpy(at(i.dst, f * 1024), at(i.a, f * i.n[1] * 1024), 1024);
            continue;
        }
        float block[256];
        load(i.type, at(i.a, f * i.n[1] * 1024), block, 256);
        if (i.n[2]) of_one(Arithmetic::relu, block, block, 256);
        store(i.to, at(i.dst, f * 256 * size), block, 256);
    }
}

// The number of repeats that can be computed as one: all operands are dense, and no repeat reads what another one
// writes.
int64_t Core::repeats_at_once(const Instruction& i, DType to) {
    const int64_t from_size = static_cast<int64_t>(size_of(i.type)), to_size = static_cast<int64_t>(size_of(to));
    const int64_t lanes = i.n[1], repeats = i.n[0];
    if (repeats == 1 || i.n[2] * Memory::kBlock != lanes * to_size) return 1;
    const uint8_t* to_first = at(i.dst);
    const uint8_t* to_last = to_first + repeats * lanes * to_size;
    auto apart = [&](const Operand& o, int64_t stride) {
        if (stride * Memory::kBlock != lanes * from_size) return false;
        const uint8_t* first = at(o);
        if (first == to_first) return from_size == to_size;
        return first >= to_last || first + repeats * lanes * from_size <= to_first;
    };
    if (i.op != Opcode::duplicate && !apart(i.a, i.n[3])) return 1;
    if (i.op == Opcode::binary && !apart(i.b, i.n[4])) return 1;
    return std::max<int64_t>(1, kMostAtOnce / lanes);
}

void Core::do_elements(const Instruction& i, float number) {
    float a[kMostAtOnce], b[kMostAtOnce], out[kMostAtOnce];
    const DType to = i.op == Opcode::convert ? i.to : i.type;
    const int64_t step = repeats_at_once(i, to);
    for (int64_t r = 0; r < i.n[0]; r += step) {
        const int64_t lanes = i.n[1] * std::min(step, i.n[0] - r);
        uint8_t* dst = at(i.dst, r * i.n[2] * Memory::kBlock);
        if (i.op == Opcode::duplicate) {
            std::fill_n(out, lanes, number);
            store(to, dst, out, lanes);
            continue;
        }
        load(i.type, at(i.a, r * i.n[3] * Memory::kBlock), a, lanes);
        if (i.kind == Arithmetic::mla || i.kind == Arithmetic::axpy) load(i.type, dst, out, lanes);
        if (i.op == Opcode::binary) {
            load(i.type, at(i.b, r * i.n[4] * Memory::kBlock), b, lanes);
            of_two(i.kind, a, b, out, lanes);
        } else if (i.op == Opcode::with_scalar) {
            with_number(i.kind, a, number, out, lanes);
        } else {
            of_one(i.kind, a, out, lanes);
        }
        store(to, dst, out, lanes);
    }
}

void Core::do_compare(const Instruction& i) {
    float a[kMostLanes], b[kMostLanes];
    const int64_t lanes = i.n[1], bytes = (lanes + 7) / 8;
    for (int64_t r = 0; r < i.n[0]; ++r) {
        load(i.type, at(i.a, r * i.n[3] * Memory::kBlock), a, lanes);
        load(i.type, at(i.b, r * i.n[4] * Memory::kBlock), b, lanes);
        uint8_t* bits = at(i.dst, r * bytes);
        std::fill_n(bits, bytes, uint8_t{0});
        for (int64_t j = 0; j < lanes; ++j)
            if (compares(i.kind, a[j], b[j])) bits[j / 8] = static_cast<uint8_t>(bits[j / 8] | 1 << j % 8);
    }
}

void Core::do_select(const Instruction& i) {
    const int64_t lanes = i.n[1], bytes = (lanes + 7) / 8;
    const size_t size = size_of(i.type);
    for (int64_t r = 0; r < i.n[0]; ++r) {
        const uint8_t* bits = at(i.b, r * bytes);
        const uint8_t *yes = at(i.a, r * i.n[3] * Memory::kBlock), *no = at(i.c, r * i.n[4] * Memory::kBlock);
        uint8_t* out = at(i.dst, r * i.n[2] * Memory::kBlock);
        for (int64_t j = 0; j < lanes; ++j) {
            const size_t offset = static_cast<size_t>(j) * size;
            std::memmove(out + offset, (bits[j / 8] >> j % 8 & 1 ? yes : no) + offset, size);
        }
    }
}

void Core::do_reduce(const Instruction& i) {
    float a[kMostLanes], out[kMostLanes];
    const auto size = static_cast<int64_t>(size_of(i.type));
    const int64_t lanes = i.n[1];
    const int64_t part = i.kind <= Arithmetic::lowest ? lanes : i.kind == Arithmetic::pair ? 2 : 32 / size;
    int64_t written = 0;
    for (int64_t r = 0; r < i.n[0]; ++r) {
        load(i.type, at(i.a, r * i.n[3] * Memory::kBlock), a, lanes);
        int64_t count = 0;
        for (int64_t j = 0; j < lanes && (i.kind != Arithmetic::pair || j + 1 < lanes); j += part) {
            const int64_t n = std::min(part, lanes - j);
            out[count++] = i.kind == Arithmetic::pair ? a[j] + a[j + 1] : fold(i.kind, a + j, n);
        }
        store(i.type, at(i.dst, written * size), out, count);
        written += count;
    }
}

void Core::do_transpose(const Instruction& i) {
    for (int64_t r = 0; r < i.n[0]; ++r) {
        uint16_t in[256], out[256];
        std::memcpy(in, at(i.a, r * 512), 512);
        for (int y = 0; y < 16; ++y)
            for (int x = 0; x < 16; ++x) out[x * 16 + y] = in[y * 16 + x];
        std::memcpy(at(i.dst, r * 512), out, 512);
    }
}

// The scalar unit computes in float: registers n[0] and n[1] (or the number, where n[1] is negative) to register `reg`.
void Core::do_scalar(const Instruction& i) {
    float& out = registers_[static_cast<size_t>(i.reg)];
    if (i.op == Opcode::scalar_load) {
        load(i.type, at(i.a), &out, 1);
        return;
    }
    const float a = registers_[static_cast<size_t>(i.n[0])];
    const float b = i.n[1] < 0 ? i.number : registers_[static_cast<size_t>(i.n[1])];
    if (i.kind == Arithmetic::rsqrt || i.kind == Arithmetic::sqrt || i.kind == Arithmetic::rec) {
        of_one(i.kind, &a, &out, 1);
        return;
    }
    float result = 0;
    of_two(i.kind, &a, &b, &result, 1);
    out = result;
}

}  // namespace lunaria::ascend
