// GPU kernels: attention and its gradient in float16 and bfloat16, with products of 16 x 16 by 16 x 8 elements, which a
// warp computes at a time, and sums in float32. As in attention.cpp a block takes a tile of rows, and tiles of columns
// pass by; a warp has 16 of the rows. Of every 16 x 8 elements of a result a thread has four: two neighbours of row
// lane / 4 and two of the row 8 below. Weights go from there into the next product without passing through memory.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "backends/gpu/attention.h"
#include "core/base/error.h"
#include "core/loops/thread_loop.h"

namespace lunaria::gpu {

namespace {

constexpr int kBlock = 16, kHalf = 8;  // elements along a fragment
constexpr int kLoad = 4;               // elements that are copied at a time
constexpr int kMostSize = 128;

// The partition of a kernel: warps of a block, columns of a tile.
struct Units {
    int warps, columns;
    int rows() const { return warps * kBlock; }
    int threads() const { return warps * graph::kWarp; }
};

// The distance of a tile's rows, for which eight of them are in different banks.
int pitch(int width) { return width + kHalf; }
int64_t room(int rows, int width) { return int64_t{rows} * pitch(width); }

using Four = std::array<Variable, 4>;
constexpr size_t kRows = 2;  // of a thread: its first two elements of a Four are in one, the others in the other
// Calls f(i) for each of them.
template <class F>
void for_rows(F f) {
    for (size_t i = 0; i < kRows; ++i) f(i);
}
// For a warp's rows, the sums of every eight columns.
using Sums = std::vector<Four>;

class UnitTiles {
  public:
    UnitTiles(Writer& w, const AttentionGeometry& g, const Units& u)
        : w_(w),
          g_(g),
          u_(u),
          lane_(remainder(w.thread(), int64_t{graph::kWarp})),
          first_row_(quotient(w.thread(), int64_t{graph::kWarp}) * kBlock) {}

    Near tile(int rows, int width) const { return w_.near(g_.dtype, room(rows, width)); }
    Number zero() const { return w_.constant(DType::f32, 0, 0); }
    Number lane() const { return lane_; }

    // The positions of this thread's rows in the tile of rows, and of element e of a Four in the tile of columns.
    Number row(size_t i) const { return first_row_ + static_cast<int>(i) * kHalf + quotient(lane_, 4); }
    Number column(int eighth, int e) const { return remainder(lane_, 4) * 2 + (eighth * kHalf + e % 2); }

    Sums sums(int width) const {
        Sums s(static_cast<size_t>(width / kHalf));
        for (Four& four : s)
            for (Variable& v : four) v = w_.variable(zero());
        return s;
    }
    std::vector<Variable> numbers_of_rows(double first) const {
        std::vector<Variable> list;
        for (size_t i = 0; i < kRows; ++i) list.push_back(w_.variable(w_.constant(DType::f32, first, 0)));
        return list;
    }

    // Brings rows of a matrix from `first` on, with zeros past its end. An element here is kLoad numbers of the matrix.
    void bring(const Near& to, const HeadMatrix& from, Number first, int rows, int width) const {
        const Near target{to.start, DType::i64};
        const int per_row = width / kLoad, all = rows * per_row, threads = u_.threads();
        std::vector<Number> places, values;
        for (int i = 0; i < all; i += threads) {
            const Number e = w_.thread() + i, r = quotient(e, int64_t{per_row}), c = remainder(e, int64_t{per_row});
            const Number row = first + r;
            Number inside = row < from.length;
            if (i + threads > all) inside = inside & (e < int64_t{all});
            const Number at = from.start + select(inside, row, w_.index(0)) * from.row + c;
            const Number v = from.elements.get(at);
            values.push_back(select(inside, v, like(v, 0)));
            places.push_back(r * (pitch(width) / kLoad) + c);
        }
        for (size_t i = 0; i < places.size(); ++i) {
            const int left = all - static_cast<int>(i) * threads;
            if (left >= threads)
                target.set(places[i], values[i]);
            else
                w_.when(w_.thread() < int64_t{left}, [&] { target.set(places[i], values[i]); });
        }
    }

    // sums += this warp's rows of a tile times so many rows of another tile: products of rows with rows.
    void add_dots(const Sums& sums, const Near& rows, const Near& columns, int width) const {
        for (int k = 0; k < width; k += kBlock) {
            const Writer::Fragment left = w_.fragment(rows, first_row_ * pitch(width) + k, pitch(width), false);
            for (int n = 0; n < u_.columns; n += kBlock) {
                const Writer::Fragment right =
                    w_.fragment(columns, w_.index(int64_t{n} * pitch(width) + k), pitch(width), false);
                for (size_t half = 0; half < 2; ++half)
                    w_.multiply(g_.dtype, left, right[half], right[half + 2],
                                sums[static_cast<size_t>(n / kHalf) + half]);
            }
        }
    }

    // sums += weights (rows by columns of the tile) times the rows of the tile of columns.
    void add_weighted(const Sums& sums, const std::vector<std::array<Number, 4>>& weights, const Near& columns,
                      int width) const {
        for (int k = 0; k < u_.columns; k += kBlock) {
            const auto at = static_cast<size_t>(k / kHalf);
            const auto &first = weights[at], &second = weights[at + 1];
            const Writer::Fragment left{w_.pair(first[0], first[1], g_.dtype), w_.pair(first[2], first[3], g_.dtype),
                                        w_.pair(second[0], second[1], g_.dtype),
                                        w_.pair(second[2], second[3], g_.dtype)};
            for (int n = 0; n < width; n += kBlock) {
                const Writer::Fragment right =
                    w_.fragment(columns, w_.index(int64_t{k} * pitch(width) + n), pitch(width), true);
                for (size_t half = 0; half < 2; ++half)
                    w_.multiply(g_.dtype, left, right[2 * half], right[2 * half + 1],
                                sums[static_cast<size_t>(n / kHalf) + half]);
            }
        }
    }

    // Combines over the threads that share rows.
    template <class F>
    Number fold(Number v, F combine) const {
        for (int bits = 1; bits < 4; bits *= 2) v = combine(v, w_.exchange(v, bits));
        return v;
    }

    // Writes dense rows of a head's result, each times the factor of its row. An element of `to` is two numbers.
    template <class F>
    void store(const Sums& sums, const Elements& to, Number start, Number first, Number length, int width,
               F factor) const {
        for_rows([&](size_t i) {
            const Number row_here = first + row(i);
            w_.when(row_here < length, [&] {
                for (int n = 0; n < width / kHalf; ++n) {
                    const Four& s = sums[static_cast<size_t>(n)];
                    const Number low = s[2 * i].get() * factor(i), high = s[2 * i + 1].get() * factor(i);
                    to.set(start + row_here * (width / 2) + (remainder(lane_, 4) + n * (kHalf / 2)),
                           w_.pair(low, high, g_.dtype));
                }
            });
        });
    }

    Writer& w() const { return w_; }
    const Units& units() const { return u_; }
    const AttentionGeometry& geometry() const { return g_; }

  private:
    Writer& w_;
    const AttentionGeometry& g_;
    const Units u_;
    const Number lane_, first_row_;
};

// The results of a tile: by every eight columns, like sums.
using Weights = std::vector<std::array<Number, 4>>;

Weights empty_weights(const Units& u) { return Weights(static_cast<size_t>(u.columns / kHalf)); }

// Calls f(number of the element's Four, e, column) for the elements of row i of this thread.
template <class F>
void for_elements(const UnitTiles& tiles, size_t i, F f) {
    for (int n = 0; n < tiles.units().columns / kHalf; ++n)
        for (size_t e = 2 * i; e < 2 * i + 2; ++e) f(static_cast<size_t>(n), e, tiles.column(n, static_cast<int>(e)));
}

// Weights are powers of 2, for which the processor has an instruction: scores are binary logarithms.
constexpr double kBinary = 1.4426950408889634;  // log2(e)

Number binary_factor(const AttentionPlace& at) { return at.factor * kBinary; }
Number larger(Number a, Number b) { return select(a < b, b, a); }
Number sum_of(Number a, Number b) { return a + b; }

// The largest score, and the sum of weights relative to it, for every row of this thread, as in attention.cpp.
class UnitRows {
  public:
    explicit UnitRows(const UnitTiles& tiles)
        : tiles_(tiles), largest_(tiles.numbers_of_rows(kLowestScore)), sums_(tiles.numbers_of_rows(0)) {}

    // Takes the scores of a tile whose first column is key `first`; returns the weights, and calls rescale(row, factor)
    // for earlier sums.
    template <class F>
    Weights take(const AttentionPlace& at, const Sums& scores, Number first, F rescale) const {
        Weights weights = empty_weights(tiles_.units());
        Writer& w = tiles_.w();
        const Number lowest = w.constant(DType::f32, kLowestScore, 0), scale = binary_factor(at);
        for_rows([&](size_t i) {
            const Number end = at.end_of_keys(tiles_.geometry(), at.tile + tiles_.row(i)) - first;
            Number most = lowest;
            for_elements(tiles_, i, [&](size_t four, size_t e, Number column) {
                weights[four][e] = select(column < end, scores[four][e].get() * scale, lowest);
                most = larger(most, weights[four][e]);
            });
            most = larger(tiles_.fold(most, larger), largest_[i].get());
            // If nothing has been seen so far, hidden scores are as large as the largest one.
            const Number base = select(most == lowest, tiles_.zero(), most);
            const Number factor = w.power_of_2(largest_[i].get() - most);
            Number sum = tiles_.zero();
            for_elements(tiles_, i, [&](size_t four, size_t e, Number) {
                weights[four][e] = w.power_of_2(weights[four][e] - base);
                sum += weights[four][e];
            });
            sum = tiles_.fold(sum, sum_of);
            sums_[i].set(sums_[i].get() * factor + sum);
            largest_[i].set(most);
            rescale(i, factor);
        });
        return weights;
    }
    Number largest(size_t i) const { return largest_[i].get(); }
    // 0 for a query that sees no key.
    Number inverse(size_t i) const {
        const Number sum = sums_[i].get();
        return select(sum == like(sum, 0), sum, like(sum, 1) / sum);
    }

  private:
    const UnitTiles& tiles_;
    const std::vector<Variable> largest_, sums_;
};

void write_forward(Writer& w, const AttentionGeometry& g, const Units& u) {
    const Elements out = w.tensor(DType::i32), q = w.tensor(DType::i64), k = w.tensor(DType::i64),
                   v = w.tensor(DType::i64);
    const AttentionPlace at(w, g, false, u.rows());
    const HeadMatrix queries = at.matrix(w, q, at.queries), keys = at.matrix(w, k, at.keys),
                     values = at.matrix(w, v, at.keys);
    const UnitTiles tiles(w, g, u);
    const Near q_tile = tiles.tile(u.rows(), g.size), k_tile = tiles.tile(u.columns, g.size),
               v_tile = tiles.tile(u.columns, g.value_size);
    tiles.bring(q_tile, queries, at.tile, u.rows(), g.size);
    const UnitRows state(tiles);
    const Sums results = tiles.sums(g.value_size);
    w.loop(w.index(0), at.end_of_keys(g, at.tile + (u.rows() - 1)), w.index(u.columns), [&](Number first) {
        w.barrier();
        tiles.bring(k_tile, keys, first, u.columns, g.size);
        tiles.bring(v_tile, values, first, u.columns, g.value_size);
        w.barrier();
        const Sums scores = tiles.sums(u.columns);
        tiles.add_dots(scores, q_tile, k_tile, g.size);
        const Weights weights = state.take(at, scores, first, [&](size_t i, Number factor) {
            for (const Four& r : results)
                for (size_t e = 2 * i; e < 2 * i + 2; ++e) r[e].set(r[e].get() * factor);
        });
        tiles.add_weighted(results, weights, v_tile, g.value_size);
    });
    std::vector<Number> inverse;
    for_rows([&](size_t i) { inverse.push_back(state.inverse(i)); });
    tiles.store(results, out, at.head * at.queries * (g.value_size / 2), at.tile, at.queries, g.value_size,
                [&](size_t i) { return inverse[i]; });
}

// Writes the gradient of the queries and, for the other kernel, as in attention.cpp, the logarithm of the sum of each
// query's weights, and their mean of the slopes.
void write_query_grad(Writer& w, const AttentionGeometry& g, const Units& u) {
    const Elements out = w.tensor(DType::i32), d = w.tensor(DType::i64), q = w.tensor(DType::i64),
                   k = w.tensor(DType::i64), v = w.tensor(DType::i64), logs = w.tensor(DType::f32),
                   means = w.tensor(DType::f32);
    const AttentionPlace at(w, g, false, u.rows());
    const HeadMatrix slopes = at.matrix(w, d, at.queries), queries = at.matrix(w, q, at.queries),
                     keys = at.matrix(w, k, at.keys), values = at.matrix(w, v, at.keys);
    const UnitTiles tiles(w, g, u);
    const Near q_tile = tiles.tile(u.rows(), g.size), d_tile = tiles.tile(u.rows(), g.value_size),
               k_tile = tiles.tile(u.columns, g.size), v_tile = tiles.tile(u.columns, g.value_size);
    tiles.bring(q_tile, queries, at.tile, u.rows(), g.size);
    tiles.bring(d_tile, slopes, at.tile, u.rows(), g.value_size);
    auto for_keys = [&](auto body) {
        w.loop(w.index(0), at.end_of_keys(g, at.tile + (u.rows() - 1)), w.index(u.columns), [&](Number first) {
            w.barrier();
            tiles.bring(k_tile, keys, first, u.columns, g.size);
            tiles.bring(v_tile, values, first, u.columns, g.value_size);
            w.barrier();
            const Sums scores = tiles.sums(u.columns), of_values = tiles.sums(u.columns);
            tiles.add_dots(scores, q_tile, k_tile, g.size);
            tiles.add_dots(of_values, d_tile, v_tile, g.value_size);
            body(first, scores, of_values);
        });
    };
    const UnitRows state(tiles);
    const std::vector<Variable> sums = tiles.numbers_of_rows(0);
    for_keys([&](Number first, const Sums& scores, const Sums& of_values) {
        std::vector<Number> factors;
        const Weights weights =
            state.take(at, scores, first, [&](size_t, Number factor) { factors.push_back(factor); });
        for_rows([&](size_t i) {
            Number sum = tiles.zero();
            for_elements(tiles, i,
                         [&](size_t four, size_t e, Number) { sum += weights[four][e] * of_values[four][e].get(); });
            sum = tiles.fold(sum, sum_of);
            sums[i].set(sums[i].get() * factors[i] + sum);
        });
    });
    std::vector<Number> inverse, mean;
    for_rows([&](size_t i) {
        inverse.push_back(state.inverse(i));
        mean.push_back(sums[i].get() * inverse[i]);
        const Number row = at.tile + tiles.row(i);
        w.when((row < at.queries) & (remainder(tiles.lane(), 4) == 0), [&] {
            const Number part = select(inverse[i] == tiles.zero(), like(inverse[i], 1), inverse[i]);
            logs.set(at.head * at.queries + row, state.largest(i) - formula("log", part) * kBinary);
            means.set(at.head * at.queries + row, mean[i]);
        });
    });
    const Sums results = tiles.sums(g.size);
    for_keys([&](Number first, const Sums& scores, const Sums& of_values) {
        Weights weight_slopes = empty_weights(u);
        const Number scale = binary_factor(at);
        for_rows([&](size_t i) {
            const Number end = at.end_of_keys(g, at.tile + tiles.row(i)) - first;
            for_elements(tiles, i, [&](size_t four, size_t e, Number column) {
                const Number weight = w.power_of_2(scores[four][e].get() * scale - state.largest(i)) * inverse[i];
                const Number slope = weight * (of_values[four][e].get() - mean[i]);
                weight_slopes[four][e] = select(column < end, slope, tiles.zero());
            });
        });
        tiles.add_weighted(results, weight_slopes, k_tile, g.size);
    });
    tiles.store(results, out, at.head * at.queries * (g.size / 2), at.tile, at.queries, g.size,
                [&](size_t) { return at.factor; });
}

void write_key_grad(Writer& w, const AttentionGeometry& g, const Units& u) {
    const Elements key_out = w.tensor(DType::i32), value_out = w.tensor(DType::i32), d = w.tensor(DType::i64),
                   q = w.tensor(DType::i64), k = w.tensor(DType::i64), v = w.tensor(DType::i64),
                   logs = w.tensor(DType::f32), means = w.tensor(DType::f32);
    const AttentionPlace at(w, g, true, u.rows());
    const HeadMatrix slopes = at.matrix(w, d, at.queries), queries = at.matrix(w, q, at.queries),
                     keys = at.matrix(w, k, at.keys), values = at.matrix(w, v, at.keys);
    const UnitTiles tiles(w, g, u);
    const Near k_tile = tiles.tile(u.rows(), g.size), v_tile = tiles.tile(u.rows(), g.value_size),
               q_tile = tiles.tile(u.columns, g.size), d_tile = tiles.tile(u.columns, g.value_size);
    tiles.bring(k_tile, keys, at.tile, u.rows(), g.size);
    tiles.bring(v_tile, values, at.tile, u.rows(), g.value_size);
    const Sums key_results = tiles.sums(g.size), value_results = tiles.sums(g.value_size);
    // The first query that sees the first key.
    Number begin = w.index(0);
    if (g.causal) begin = select(at.shift < at.tile, at.tile - at.shift, begin);
    w.loop(begin, at.queries, w.index(u.columns), [&](Number first) {
        w.barrier();
        tiles.bring(q_tile, queries, first, u.columns, g.size);
        tiles.bring(d_tile, slopes, first, u.columns, g.value_size);
        w.barrier();
        const Sums scores = tiles.sums(u.columns), of_values = tiles.sums(u.columns);
        tiles.add_dots(scores, k_tile, q_tile, g.size);
        tiles.add_dots(of_values, v_tile, d_tile, g.value_size);
        // For the queries that are this thread's columns.
        std::vector<Number> log, mean;
        for (int n = 0; n < u.columns / kHalf; ++n)
            for (int e = 0; e < 2; ++e) {
                const Number query = first + tiles.column(n, e), inside = query < at.queries;
                const Number place = at.head * at.queries + select(inside, query, w.index(0));
                // A weight past the end is 0.
                log.push_back(select(inside, logs.get(place), w.constant(DType::f32, -kLowestScore, 0)));
                mean.push_back(means.get(place));
            }
        const Number scale = binary_factor(at);
        Weights weights = empty_weights(u), weight_slopes = empty_weights(u);
        for_rows([&](size_t i) {
            // The first query that sees the key.
            const Number start = at.tile + tiles.row(i) - at.shift - first;
            auto seen_by = [&](Number column, Number v) {
                return g.causal ? select(column < start, tiles.zero(), v) : v;
            };
            for_elements(tiles, i, [&](size_t four, size_t e, Number column) {
                const size_t mine = four * 2 + e % 2;
                const Number weight = seen_by(column, w.power_of_2(scores[four][e].get() * scale - log[mine]));
                weights[four][e] = weight;
                weight_slopes[four][e] = seen_by(column, weight * (of_values[four][e].get() - mean[mine]));
            });
        });
        tiles.add_weighted(value_results, weights, d_tile, g.value_size);
        tiles.add_weighted(key_results, weight_slopes, q_tile, g.size);
    });
    tiles.store(key_results, key_out, at.head * at.keys * (g.size / 2), at.tile, at.keys, g.size,
                [&](size_t) { return at.factor; });
    tiles.store(value_results, value_out, at.head * at.keys * (g.value_size / 2), at.tile, at.keys, g.value_size,
                [&](size_t) { return w.constant(DType::f32, 1, 0); });
}

bool is_brought_together(const Tensor& t) {
    if (reinterpret_cast<Address>(t.raw()) % (kLoad * size_of(t.dtype())) || t.strides()[3] != 1) return false;
    for (int axis = 0; axis < 3; ++axis)
        if (t.dim(axis) > 1 && t.strides()[axis] % kLoad) return false;
    return true;
}

bool takes(const KernelCall& c, const AttentionGeometry& g, size_t first, size_t count) {
    if (!is_half(g.dtype) || g.size % kBlock || g.value_size % kBlock) return false;
    if (std::max(g.size, g.value_size) > kMostSize) return false;
    for (size_t i = first; i < first + count; ++i)
        if (c.tensor(i).dtype() != g.dtype || !is_brought_together(c.tensor(i))) return false;
    return true;
}

// Steps count groups of kLoad elements.
void add_steps(Words& words, const Tensor& t) {
    for (int axis = 0; axis < 4; ++axis) words.size(t.strides()[axis] / kLoad);
}

bool run_units(Launcher& launcher, std::string_view kernel, const AttentionGeometry& g, const Units& u, int64_t rows,
               const Words& words, void (*write)(Writer&, const AttentionGeometry&, const Units&)) {
    const int64_t blocks = (rows + u.rows() - 1) / u.rows() * g.heads;
    const std::string name = str(kernel, " by units ", name_of(g.dtype), ' ', g.size, ' ', g.value_size,
                                 g.causal ? " causal " : " ", u.warps, ' ', u.columns);
    return launcher.run(name, blocks, u.threads(), words, [&](Writer& w) { write(w, g, u); });
}

}  // namespace

bool attention_by_units(Launcher& launcher, const KernelCall& c, const AttentionGeometry& g) {
    if (!takes(c, g, 0, 3)) return false;
    constexpr Units kUnits{4, 32};
    Words words;
    words.tensor(c.out[0]);
    for (size_t i = 0; i < 3; ++i) words.tensor(c.tensor(i));
    add_attention_place(words, c, g, 0);
    for (size_t i = 0; i < 3; ++i) add_steps(words, c.tensor(i));
    return run_units(launcher, "attention", g, kUnits, g.queries, words, write_forward);
}

bool attention_grad_by_units(Launcher& launcher, const KernelCall& c, const AttentionGeometry& g) {
    if (!takes(c, g, 0, 4)) return false;
    // For wide heads, as many rows as the memory of a block holds.
    const Units units{std::max(g.size, g.value_size) <= kMostSize / 2 ? 4 : 2, 32};
    const int64_t numbers = g.heads * g.queries;
    const Address logs = launcher.take(numbers * static_cast<int64_t>(sizeof(float)));
    const Address means = launcher.take(numbers * static_cast<int64_t>(sizeof(float)));
    auto words_for = [&](std::initializer_list<size_t> results) {
        Words words;
        for (size_t r : results) words.tensor(c.out[r]);
        for (size_t i = 0; i < 4; ++i) words.tensor(c.tensor(i));
        words.address(logs, numbers).address(means, numbers);
        add_attention_place(words, c, g, 1);
        for (size_t i = 0; i < 4; ++i) add_steps(words, c.tensor(i));
        return words;
    };
    return run_units(launcher, "attention's queries", g, units, g.queries, words_for({0}), write_query_grad) &&
           run_units(launcher, "attention's keys", g, units, g.keys, words_for({1, 2}), write_key_grad);
}

}  // namespace lunaria::gpu
