// CPU kernels: attention in blocks of queries, so that only the scores of one block are there at a time.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/row_loops.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

// Queries of a block: enough for the matrix products to be efficient, and few enough that causal attention leaves out
// most of what is not seen.
constexpr int64_t kBlock = 64;

// One head of one sample.
template <class T>
MatrixRef<T> head_of(const Tensor& t, int64_t head) {
    const int64_t heads = t.dim(1);
    const Strides& s = t.strides();
    return {t.data<T>() + head / heads * s[0] + head % heads * s[1], t.dim(2), t.dim(3), s[2], s[3]};
}

template <class T>
MatrixRef<T> rows(const MatrixRef<T>& m, int64_t begin, int64_t end) {
    return {m.data + begin * m.row_stride, end - begin, m.columns, m.row_stride, m.column_stride};
}

template <class T>
MatrixRef<T> dense(const T* data, int64_t rows, int64_t columns) {
    return {data, rows, columns, columns, 1};
}

struct Mask {
    bool causal;
    int64_t shift, keys;

    // How many keys, from the first on, query i sees.
    int64_t seen(int64_t i) const {
        if (!causal || shift >= keys - i - 1) return keys;  // a window without end has the largest shift
        return std::max<int64_t>(i + 1 + shift, 0);
    }
};

// The weights of a block of queries for the keys that its last query sees, in `weights`; `scaled` gets scale times the
// queries.
template <class T>
void block_weights(const MatrixRef<T>& q, const MatrixRef<T>& k, const Mask& mask, double scale, int64_t begin,
                   int64_t end, std::vector<T>& scaled, std::vector<T>& weights) {
    const int64_t keys = mask.seen(end - 1);
    for (int64_t i = begin; i < end; ++i)
        for (int64_t d = 0; d < q.columns; ++d)
            scaled[static_cast<size_t>((i - begin) * q.columns + d)] =
                q.data[i * q.row_stride + d * q.column_stride] * static_cast<T>(scale);
    gemm<T>(dense<T>(scaled.data(), end - begin, q.columns), rows(k, 0, keys).transposed(), weights.data(), T(0));
    for (int64_t i = begin; i < end; ++i) {
        T* row = weights.data() + (i - begin) * keys;
        const int64_t seen = mask.seen(i);
        // Rows of one length: as many exponentials again cost less than loops whose ends nobody can foresee.
        std::fill(row + seen, row + keys, seen ? -std::numeric_limits<T>::infinity() : T(0));
        if (seen) softmax_loops<T>().softmax(row, row, keys);
    }
}

template <class T>
bool forward(const KernelCall& c) {
    const Tensor &out = c.out[0], &query = c.tensor(0);
    const int64_t heads = query.dim(0) * query.dim(1), length = query.dim(2), size = query.dim(3);
    const Mask mask{c.args[4].boolean(), c.args[5].integer(), c.tensor(1).dim(2)};
    const int64_t columns = out.dim(3), blocks = (length + kBlock - 1) / kBlock;
    if (out.size() == 0) return true;
    const int64_t work = std::min(length, kBlock) * mask.keys * (size + columns) / 8;
    parallel_for(heads * blocks, worthwhile_rows(work), [&](int64_t from, int64_t to) {
        std::vector<T> scaled(static_cast<size_t>(kBlock * size)), weights(static_cast<size_t>(kBlock * mask.keys));
        for (int64_t item = from; item < to; ++item) {
            const int64_t head = item / blocks, begin = item % blocks * kBlock, end = std::min(begin + kBlock, length);
            const MatrixRef<T> q = head_of<T>(query, head), k = head_of<T>(c.tensor(1), head),
                               v = head_of<T>(c.tensor(2), head);
            T* result = out.data<T>() + (head * length + begin) * columns;
            const int64_t keys = mask.seen(end - 1);
            if (keys == 0) {
                std::fill(result, result + (end - begin) * columns, T(0));
                continue;
            }
            block_weights(q, k, mask, c.args[3].number(), begin, end, scaled, weights);
            gemm<T>(dense<T>(weights.data(), end - begin, keys), rows(v, 0, keys), result, T(0));
        }
    });
    return true;
}

template <class T>
bool backward(const KernelCall& c) {
    const Tensor &query = c.tensor(1), &key = c.tensor(2), &value = c.tensor(3);
    const int64_t heads = query.dim(0) * query.dim(1), length = query.dim(2), size = query.dim(3);
    const Mask mask{c.args[5].boolean(), c.args[6].integer(), key.dim(2)};
    const int64_t columns = value.dim(3);
    const double scale = c.args[4].number();
    for (const Tensor& t : c.out)
        if (t.nbytes()) std::memset(t.raw(), 0, t.nbytes());
    if (heads * length * mask.keys == 0) return true;
    // Keys and values collect from all blocks of a head, so that a head is the least part of a thread.
    parallel_for(heads, worthwhile_rows(length * mask.keys * (size + columns) / 4), [&](int64_t from, int64_t to) {
        std::vector<T> scaled(static_cast<size_t>(kBlock * size)), weights(static_cast<size_t>(kBlock * mask.keys)),
            slopes(weights.size());
        for (int64_t head = from; head < to; ++head) {
            const MatrixRef<T> d = head_of<T>(c.tensor(0), head), q = head_of<T>(query, head),
                               k = head_of<T>(key, head), v = head_of<T>(value, head);
            T *dq = c.out[0].data<T>() + head * length * size, *dk = c.out[1].data<T>() + head * mask.keys * size,
              *dv = c.out[2].data<T>() + head * mask.keys * columns;
            for (int64_t begin = 0; begin < length; begin += kBlock) {
                const int64_t end = std::min(begin + kBlock, length), count = end - begin;
                const int64_t keys = mask.seen(end - 1);
                if (keys == 0) continue;
                block_weights(q, k, mask, scale, begin, end, scaled, weights);
                const MatrixRef<T> p = dense<T>(weights.data(), count, keys), ds = dense<T>(slopes.data(), count, keys);
                gemm<T>(p.transposed(), rows(d, begin, end), dv, T(1));
                gemm<T>(rows(d, begin, end), rows(v, 0, keys).transposed(), slopes.data(), T(0));
                for (int64_t i = 0; i < count; ++i) {
                    T* row = slopes.data() + i * keys;
                    softmax_loops<T>().softmax_grad(row, weights.data() + i * keys, row, keys);
                }
                gemm<T>(ds.transposed(), dense<T>(scaled.data(), count, size), dk, T(1));
                T* slope = dq + begin * size;
                gemm<T>(ds, rows(k, 0, keys), slope, T(0));
                for (int64_t i = 0; i < count * size; ++i) slope[i] *= static_cast<T>(scale);
            }
        }
    });
    return true;
}

bool attention(const KernelCall& c) {
    return with_real(c.dtype, [&](auto zero) { return forward<decltype(zero)>(c); });
}

bool attention_grad(const KernelCall& c) {
    return with_real(c.dtype, [&](auto zero) { return backward<decltype(zero)>(c); });
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
    table.fast("attention", attention);
    table.fast("attention_grad", attention_grad);
}

}  // namespace lunaria::cpu
