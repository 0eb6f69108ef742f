#include "backends/cpu/simd/sparse_loops.h"

#include <type_traits>

#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

template <class I>
bool is_ascending(const I* starts, int64_t count) {
    I falls = 0;
    for (int64_t i = 1; i < count; ++i) falls |= starts[i] < starts[i - 1] ? 1 : 0;
    return falls == 0;
}

// As unsigned numbers, negative columns are large ones.
template <class I>
bool are_within(const I* columns, int64_t count, int64_t size) {
    using U = std::make_unsigned_t<I>;
    // A matrix may have more columns than the type can count.
    if (static_cast<uint64_t>(size) > static_cast<U>(-1)) return true;
    U outside = 0;
    for (int64_t k = 0; k < count; ++k) outside |= static_cast<U>(columns[k]) >= static_cast<U>(size) ? 1 : 0;
    return outside == 0;
}

// A product with a vector. Short rows have one sum, since the processor begins the next row while it waits; long rows
// have four.
template <class T, class I>
void by_vector(const SparseRows<T, I>& r) {
    constexpr int64_t kShort = 16;
    const I *const starts = r.starts, *columns = r.columns + r.starts[r.begin];
    const T *const dense = r.dense, *values = r.values + r.starts[r.begin];
    T* const out = r.out;
    int64_t begin = starts[r.begin];
    for (int64_t i = r.begin; i < r.end; ++i) {
        const int64_t end = starts[i + 1];
        int64_t left = end - begin;
        begin = end;
        T total = 0;
        if (left > kShort) {
            T sum[4] = {};
            for (; left >= 4; left -= 4, columns += 4, values += 4)
                for (int j = 0; j < 4; ++j) sum[j] += values[j] * dense[columns[j]];
            total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
        for (; left >= 2; left -= 2, columns += 2, values += 2) {
            total += values[0] * dense[columns[0]];
            total += values[1] * dense[columns[1]];
        }
        if (left > 0) total += *values++ * dense[*columns++];
        out[i] = total;
    }
}

// kPacks registers of a row of the result, which stay in registers while the row's values pass by.
template <int kPacks, class T, class I>
[[gnu::always_inline]] inline void stretch(const SparseRows<T, I>& r, int64_t i, int64_t j) {
    using P = Pack<T>;
    P sum[kPacks];
    for (P& s : sum) s = P(0);
    const T* dense = r.dense + j;
    for (int64_t k = r.starts[i]; k < r.starts[i + 1]; ++k) {
        const P v = r.values[k] - typename P::V{};
        const T* row = dense + static_cast<int64_t>(r.columns[k]) * r.width;
        for (int p = 0; p < kPacks; ++p) sum[p] = sum[p] + v * P::load(row + p * P::lanes);
    }
    for (int p = 0; p < kPacks; ++p) sum[p].store(r.out + i * r.width + j + p * P::lanes);
}

template <class T, class I>
void rows(const SparseRows<T, I>& r) {
    if (r.width == 1) return by_vector(r);
    constexpr int64_t kLanes = Pack<T>::lanes;
    for (int64_t i = r.begin; i < r.end; ++i) {
        int64_t j = 0;
        for (; j + 8 * kLanes <= r.width; j += 8 * kLanes) stretch<8>(r, i, j);
        if (j + 4 * kLanes <= r.width) stretch<4>(r, i, j), j += 4 * kLanes;
        if (j + 2 * kLanes <= r.width) stretch<2>(r, i, j), j += 2 * kLanes;
        if (j + kLanes <= r.width) stretch<1>(r, i, j), j += kLanes;
        if (j == r.width) continue;
        const auto rest = static_cast<int>(r.width - j);
        Pack<T> sum(0);
        for (int64_t k = r.starts[i]; k < r.starts[i + 1]; ++k) {
            const Pack<T> v = r.values[k] - typename Pack<T>::V{};
            sum = sum + v * load_part(r.dense + static_cast<int64_t>(r.columns[k]) * r.width + j, rest);
        }
        store_part(r.out + i * r.width + j, sum, rest);
    }
}

}  // namespace

const SparseLoops<int32_t> sparse_loops_i32 = {is_ascending, are_within, rows<float, int32_t>, rows<double, int32_t>};
const SparseLoops<int64_t> sparse_loops_i64 = {is_ascending, are_within, rows<float, int64_t>, rows<double, int64_t>};

}  // namespace lunaria::cpu::LUNARIA_ISA
