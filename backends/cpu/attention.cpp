// CPU kernels: attention in blocks of queries and of keys, so that only the scores of one block are there at a time: in
// the nearest cache, however long the sequences are (Dao and others, "FlashAttention", 2022). The queries of a block
// are the lanes: scores and results are products whose left sides are the keys and the values in place, and largest
// scores and sums are taken lane by lane.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/simd/gemm_loops.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The number of queries in a block: enough for the matrix products to be efficient, and few enough that causal
// attention skips most of the hidden scores.
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

// factor times m as dense rows.
template <class T>
void copy_scaled(const MatrixRef<T>& m, T factor, T* to) {
    constexpr int64_t kAtOnce = 8;  // in vectors, also where compilers doubt that longer loops are worth it
    for (int64_t i = 0; i < m.rows; ++i, to += m.columns) {
        const T* from = m.data + i * m.row_stride;
        int64_t j = 0;
        for (; m.column_stride == 1 && j + kAtOnce <= m.columns; j += kAtOnce) {
            T part[kAtOnce];
            for (int64_t l = 0; l < kAtOnce; ++l) part[l] = from[j + l] * factor;
            std::copy_n(part, kAtOnce, to + j);
        }
        for (; j < m.columns; ++j) to[j] = from[j * m.column_stride] * factor;
    }
}

struct Mask {
    bool causal;
    int64_t shift, keys;

    // The number of keys, from the first on, that query i sees.
    int64_t seen(int64_t i) const { return std::max<int64_t>(last_seen(i), 0); }
    // The same, but negative where later queries see no key either.
    int64_t last_seen(int64_t i) const {
        if (!causal || shift >= keys - i - 1) return keys;  // a window without end has the largest shift
        return i + 1 + shift;
    }
};

// A block of queries with its weights, or slopes of them, for the keys that its last query sees. They are stored key
// after key, with the queries side by side, so that a softmax adds up whole vectors instead of the numbers in one;
// query after query where so few are left that vectors would be half empty.
template <class T>
class Block {
  public:
    Block(int64_t size, int64_t most_keys)
        : size_(size),
          hidden_(static_cast<size_t>(kBlock), -std::numeric_limits<T>::infinity()),
          scaled_(static_cast<size_t>(kBlock * size)),
          weights_(static_cast<size_t>(kBlock * most_keys)) {}

    // Computes the weights of queries begin .. end, each of which sees a key.
    void set(const MatrixRef<T>& q, const MatrixRef<T>& k, const Mask& mask, double scale, int64_t begin, int64_t end) {
        count_ = end - begin;
        keys_ = mask.seen(end - 1);
        copy_scaled(rows(q, begin, end), static_cast<T>(scale), scaled_.data());
        product(rows(k, 0, keys_), queries(), weights_.data());
        if (is_turned()) {
            for (int64_t j = mask.seen(begin); j < keys_; ++j)
                std::copy_n(hidden_.data(), std::min(j - mask.shift - begin, count_), weights_.data() + j * count_);
            softmax_loops<T>().softmax_columns(weights_.data(), weights_.data(), keys_, count_, count_);
            return;
        }
        for (int64_t i = 0; i < count_; ++i) {
            T* row = weights_.data() + i * keys_;
            std::fill(row + mask.seen(begin + i), row + keys_, hidden_[0]);
            softmax_loops<T>().softmax(row, row, keys_);
        }
    }

    int64_t keys() const { return keys_; }
    // Scaled; one row each.
    MatrixRef<T> queries() const { return dense<T>(scaled_.data(), count_, size_); }
    // One row per query.
    MatrixRef<T> weights() const { return seen_as_rows(weights_.data()); }

    // The slopes of the scores for cotangents `d` of the results, one row per query.
    MatrixRef<T> slopes(const MatrixRef<T>& d, const MatrixRef<T>& v) {
        slopes_.resize(weights_.size());
        T* slopes = slopes_.data();
        product(rows(v, 0, keys_), d, slopes);
        if (is_turned())
            softmax_loops<T>().softmax_grad_columns(slopes, weights_.data(), slopes, keys_, count_, count_);
        else
            for (int64_t i = 0; i < count_; ++i)
                softmax_loops<T>().softmax_grad(slopes + i * keys_, weights_.data() + i * keys_, slopes + i * keys_,
                                                keys_);
        return seen_as_rows(slopes);
    }

  private:
    static constexpr int64_t kFewestTurned = 16;

    bool is_turned() const { return count_ >= kFewestTurned; }
    MatrixRef<T> seen_as_rows(const T* data) const {
        return is_turned() ? dense<T>(data, keys_, count_).transposed() : dense<T>(data, count_, keys_);
    }
    // Computes a number for each key and query from a row of each.
    void product(const MatrixRef<T>& of_keys, const MatrixRef<T>& of_queries, T* out) const {
        if (is_turned())
            gemm<T>(of_keys, of_queries.transposed(), out, T(0));
        else
            gemm<T>(of_queries, of_keys.transposed(), out, T(0));
    }

    int64_t size_, count_ = 0, keys_ = 0;
    std::vector<T> hidden_, scaled_, weights_, slopes_;
};

// The first query from `begin` on that sees a key, or `end`.
int64_t first_seeing(const Mask& mask, int64_t begin, int64_t end) {
    while (begin < end && mask.seen(begin) == 0) ++begin;
    return begin;
}

// Queries and keys of a tile; the bytes of its scores.
constexpr int64_t kLaneQueries = 32;
constexpr int64_t kTileBytes = 32 << 10;

// A tile of queries with all the keys that they see, one tile of keys after another.
template <class T>
class QueryTile {
  public:
    QueryTile(int64_t size, int64_t columns)
        : loops_(gemm_loops<T>()),
          columns_(columns),
          keys_(kTileBytes / (kLaneQueries * static_cast<int64_t>(sizeof(T)))),
          queries_(memory(size * kLaneQueries)),
          scores_(memory(keys_ * kLaneQueries)),
          result_(memory(columns * kLaneQueries)),
          rows_(memory(kLaneQueries * loops_.whole(columns))),
          state_(memory(3 * kLaneQueries)) {}

    // Queries begin .. end of q; their results go to `out`, one row after another.
    void run(const MatrixRef<T>& q, const MatrixRef<T>& k, const MatrixRef<T>& v, const Mask& mask, double scale,
             int64_t begin, int64_t end, T* out) {
        const int64_t count = end - begin, width = loops_.whole(count), keys = mask.seen(end - 1);
        T *const most = state_.data<T>(), *const sum = most + kLaneQueries, *const keep = sum + kLaneQueries;
        T *const scores = scores_.data<T>(), *const result = result_.data<T>();
        std::fill_n(most, width, -std::numeric_limits<T>::infinity());
        std::fill_n(sum, width, T(0));
        loops_.pack(q.data + begin * q.row_stride, q.column_stride, q.row_stride, q.columns, count, queries_.data<T>());
        for (int64_t first = 0; first < keys; first += keys_) {
            const int64_t here = std::min(keys_, keys - first);
            loops_.multiply(here, width, q.columns, k.data + first * k.row_stride, k.row_stride, k.column_stride,
                            queries_.data<T>(), width, scores, width, Onto::nothing, nullptr);
            const int64_t seen = mask.causal ? mask.last_seen(begin) - first : here;
            softmax_loops<T>().attend(scores, here, width, scale, seen, most, sum, keep);
            if (first > 0) softmax_loops<T>().scale_columns(result, columns_, width, keep);
            loops_.multiply(columns_, width, here, v.data + first * v.row_stride, v.column_stride, v.row_stride, scores,
                            width, result, width, first > 0 ? Onto::added : Onto::nothing, nullptr);
        }
        for (int64_t j = 0; j < count; ++j) sum[j] = mask.seen(begin + j) == 0 ? T(0) : T(1) / sum[j];
        softmax_loops<T>().scale_columns(result, columns_, width, sum);
        // Rows are written in whole vectors.
        const int64_t row = loops_.whole(columns_);
        T* const rows = row == columns_ ? out : rows_.data<T>();
        loops_.pack(result, 1, width, count, columns_, rows);
        for (int64_t j = 0; row != columns_ && j < count; ++j)
            std::copy_n(rows + j * row, columns_, out + j * columns_);
    }

  private:
    static Tensor memory(int64_t count) { return Tensor::empty(dtype_of<T>(), Shape{count}); }

    const GemmLoops<T>& loops_;
    int64_t columns_, keys_;
    Tensor queries_, scores_, result_, rows_, state_;
};

template <class T>
bool forward_tiles(const KernelCall& c) {
    const Tensor &out = c.out[0], &query = c.tensor(0);
    const int64_t heads = query.dim(0) * query.dim(1), length = query.dim(2), size = query.dim(3);
    const Mask mask{c.args[4].boolean(), c.args[5].integer(), c.tensor(1).dim(2)};
    const int64_t columns = out.dim(3), tiles = (length + kLaneQueries - 1) / kLaneQueries;
    const int64_t work = std::min(length, kLaneQueries) * mask.keys * (size + columns) / 8;
    parallel_for(heads * tiles, worthwhile_rows(work), [&](int64_t from, int64_t to) {
        QueryTile<T> tile(size, columns);
        for (int64_t item = from; item < to; ++item) {
            const int64_t head = item / tiles, begin = item % tiles * kLaneQueries;
            const int64_t end = std::min(begin + kLaneQueries, length);
            T* result = out.data<T>() + (head * length + begin) * columns;
            if (mask.seen(end - 1) == 0)
                std::fill(result, result + (end - begin) * columns, T(0));
            else
                tile.run(head_of<T>(query, head), head_of<T>(c.tensor(1), head), head_of<T>(c.tensor(2), head), mask,
                         c.args[3].number(), begin, end, result);
        }
    });
    return true;
}

template <class T>
bool forward(const KernelCall& c) {
    const Tensor &out = c.out[0], &query = c.tensor(0);
    const int64_t heads = query.dim(0) * query.dim(1), length = query.dim(2), size = query.dim(3);
    const Mask mask{c.args[4].boolean(), c.args[5].integer(), c.tensor(1).dim(2)};
    const int64_t columns = out.dim(3), blocks = (length + kBlock - 1) / kBlock;
    if (out.size() == 0) return true;
    // With fewer queries lanes would stay empty.
    if (length >= gemm_loops<T>().lanes / 2) return forward_tiles<T>(c);
    const int64_t work = std::min(length, kBlock) * mask.keys * (size + columns) / 8;
    parallel_for(heads * blocks, worthwhile_rows(work), [&](int64_t from, int64_t to) {
        Block<T> block(size, mask.keys);
        for (int64_t item = from; item < to; ++item) {
            const int64_t head = item / blocks, begin = item % blocks * kBlock, end = std::min(begin + kBlock, length);
            T* result = out.data<T>() + (head * length + begin) * columns;
            const int64_t first = first_seeing(mask, begin, end);
            result = std::fill_n(result, (first - begin) * columns, T(0));
            if (first == end) continue;
            block.set(head_of<T>(query, head), head_of<T>(c.tensor(1), head), mask, c.args[3].number(), first, end);
            gemm<T>(block.weights(), rows(head_of<T>(c.tensor(2), head), 0, block.keys()), result, T(0));
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
    if (heads * length * mask.keys == 0) {
        for (const Tensor& t : c.out)
            if (t.nbytes()) std::memset(t.raw(), 0, t.nbytes());
        return true;
    }
    // Keys and values accumulate from all blocks of a head, so that a head is the smallest part for a thread.
    parallel_for(heads, worthwhile_rows(length * mask.keys * (size + columns) / 4), [&](int64_t from, int64_t to) {
        Block<T> block(size, mask.keys);
        std::vector<T> keys_times_scale(static_cast<size_t>(mask.keys * size));
        for (int64_t head = from; head < to; ++head) {
            const MatrixRef<T> d = head_of<T>(c.tensor(0), head), q = head_of<T>(query, head),
                               k = head_of<T>(key, head), v = head_of<T>(value, head);
            T *dq = c.out[0].data<T>() + head * length * size, *dk = c.out[1].data<T>() + head * mask.keys * size,
              *dv = c.out[2].data<T>() + head * mask.keys * columns;
            copy_scaled(k, static_cast<T>(scale), keys_times_scale.data());
            // Head by head, while its data stays in a near cache.
            std::fill_n(dk, mask.keys * size, T(0));
            std::fill_n(dv, mask.keys * columns, T(0));
            for (int64_t begin = 0; begin < length; begin += kBlock) {
                const int64_t end = std::min(begin + kBlock, length), first = first_seeing(mask, begin, end);
                std::fill_n(dq + begin * size, (first - begin) * size, T(0));
                if (first == end) continue;
                block.set(q, k, mask, scale, first, end);
                gemm<T>(block.weights().transposed(), rows(d, first, end), dv, T(1));
                const MatrixRef<T> slopes = block.slopes(rows(d, first, end), v);
                gemm<T>(slopes.transposed(), block.queries(), dk, T(1));
                gemm<T>(slopes, dense<T>(keys_times_scale.data(), block.keys(), size), dq + first * size, T(0));
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
