#include "backends/cpu/bf16_product.h"

#include <algorithm>
#include <cstring>

#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The size of a part of a copy that is worth a thread, in elements.
constexpr int64_t kWorthwhile = 65536;

// The rows of a matrix as pairs of neighbours: in place where memory allows it, else a copy in `storage`, in which an
// odd row gets one more 0.
MatrixRef<Bf16Pair> pairs_along_rows(const MatrixRef<BFloat16>& m, Tensor& storage) {
    const int64_t pairs = (m.columns + 1) / 2;
    const bool lies_in_pairs = m.column_stride == 1 && m.columns % 2 == 0 && (m.row_stride % 2 == 0 || m.rows == 1) &&
                               reinterpret_cast<uintptr_t>(m.data) % sizeof(Bf16Pair) == 0;
    if (lies_in_pairs) return {reinterpret_cast<const Bf16Pair*>(m.data), m.rows, pairs, m.row_stride / 2, 1};
    storage = Tensor::empty(DType::i32, {m.rows, pairs});
    if (m.row_stride == 1 && m.column_stride != 1) {
        // The matrix is stored by columns: a pair of neighbours in a row comes from two dense columns.
        auto* const to = storage.data<Bf16Pair>();
        parallel_for(pairs, kWorthwhile / (m.rows + 1) + 1, [&](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; ++j) {
                const BFloat16* const first = m.data + 2 * j * m.column_stride;
                const BFloat16* const second = 2 * j + 1 < m.columns ? first + m.column_stride : nullptr;
                gemm_table().pair(first, second, to + j * m.rows, m.rows);
            }
        });
        return {to, m.rows, pairs, 1, m.rows};
    }
    auto* const to = storage.data<BFloat16>();
    parallel_for(m.rows, kWorthwhile / (m.columns + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const BFloat16* const from = m.data + i * m.row_stride;
            BFloat16* const row = to + i * 2 * pairs;
            if (m.column_stride == 1)
                std::memcpy(row, from, static_cast<size_t>(m.columns) * sizeof(BFloat16));
            else
                for (int64_t j = 0; j < m.columns; ++j) row[j] = from[j * m.column_stride];
            if (m.columns % 2) row[m.columns] = BFloat16();
        }
    });
    return {storage.data<Bf16Pair>(), m.rows, pairs, pairs, 1};
}

// A right side with dense rows, turned at once into pairs of rows in the order of the loops.
PackedMatrix<Bf16Pair> packed_pairs(const MatrixRef<BFloat16>& b) {
    const GemmLoops<Bf16Pair>& loops = gemm_loops<Bf16Pair>();
    const int64_t pairs = (b.rows + 1) / 2, width = loops.panel;
    PackedMatrix<Bf16Pair> packed{pairs, b.columns, width, Tensor::empty(DType::i32, {pairs, loops.whole(b.columns)}),
                                  {},    {}};
    auto* const memory = packed.memory.data<Bf16Pair>();
    parallel_for((b.columns + width - 1) / width, kWorthwhile / (b.rows * width) + 1, [&](int64_t begin, int64_t end) {
        // Goes along the rows of b, so that memory is read in order.
        for (int64_t i = 0; i < b.rows; i += 2)
            for (int64_t column = begin * width; column < std::min(end * width, b.columns); column += width) {
                const int64_t columns = std::min(width, b.columns - column), row = loops.whole(columns);
                const BFloat16* const first = b.data + i * b.row_stride + column;
                Bf16Pair* const to = memory + column * pairs + i / 2 * row;
                gemm_table().pair(first, i + 1 < b.rows ? first + b.row_stride : nullptr, to, columns);
                std::fill(to + columns, to + row, Bf16Pair{});
            }
    });
    return packed;
}

}  // namespace

void bf16_product(const MatrixRef<BFloat16>& a, const MatrixRef<BFloat16>& b, float* c, bool add) {
    Tensor a_pairs, b_pairs;
    // With fewer rows, the product takes no longer than reordering b.
    constexpr int64_t kManyRows = 24;
    if (b.column_stride == 1 && a.rows >= kManyRows && !add)
        return packed_own_product(pairs_along_rows(a, a_pairs), packed_pairs(b), c);
    own_product(pairs_along_rows(a, a_pairs), pairs_along_rows(b.transposed(), b_pairs).transposed(), c, add);
}

}  // namespace lunaria::cpu
