// GPU kernels: attention and its gradient without the matrix of scores, tile by tile (Dao and others, "FlashAttention",
// 2022). A block takes a tile of rows; tiles of columns pass through the memory of the block. The forward pass and the
// gradient of the queries have queries as rows and keys as columns, that of keys and values the other way round.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "backends/gpu/attention.h"
#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"

namespace lunaria::gpu {

namespace {
// The largest head whose results fit into registers.
constexpr int64_t kMostSize = 256;

}  // namespace

std::optional<AttentionGeometry> attention_geometry(const KernelCall& c, size_t first) {
    const Tensor &q = c.tensor(first), &v = c.tensor(first + 2);
    const bool is_known = is_float(c.dtype) && !is_complex(c.dtype);
    if (!is_known || std::max(q.dim(3), v.dim(3)) > kMostSize || q.dim(3) == 0 || v.dim(3) == 0) return {};
    return AttentionGeometry{.heads = q.dim(0) * q.dim(1),
                             .queries = q.dim(2),
                             .keys = v.dim(2),
                             .size = static_cast<int>(q.dim(3)),
                             .value_size = static_cast<int>(v.dim(3)),
                             .dtype = c.dtype,
                             .sum = is_half(c.dtype) ? DType::f32 : c.dtype,
                             .causal = c.args[first + 4].boolean()};
}

void add_attention_place(Words& words, const KernelCall& c, const AttentionGeometry& g, size_t first) {
    // Shifts beyond all keys are the same as a shift by all keys.
    const int64_t far = std::max(g.queries, g.keys);
    const int64_t shift = std::clamp<int64_t>(c.args[first + 5].integer(), -far, far);
    words.size(g.queries).size(g.keys).size(c.tensor(first).dim(1)).size(shift).real(c.args[first + 3].number());
}

namespace {

// Threads of a block: the numbers down its rows and across its columns. Those across are neighbours in a warp.
constexpr int kDown = 16, kAcross = 8;

// The numbers of rows and columns of a tile for a thread: every kDown-th row, every kAcross-th column.
struct Share {
    int rows, columns;
    int tile_rows() const { return rows * kDown; }
    int tile_columns() const { return columns * kAcross; }
};
constexpr std::array<Share, 5> kShares{{{4, 4}, {2, 4}, {2, 2}, {1, 2}, {1, 1}}};

int pitch(int width) { return width + 1; }

// Elements of the block's memory for so many rows, read up to the next multiple of kAcross.
int64_t room(int rows, int width) { return int64_t{rows} * pitch(width) + kAcross; }

// The largest shares for which `elements` fit.
template <class F>
std::optional<Share> share_for(DType sum, F elements) {
    // Tiles start at multiples of a few bytes.
    constexpr int64_t kMostBytes = (48 << 10) - 256;
    for (const Share& s : kShares)
        if (elements(s) * static_cast<int64_t>(size_of(sum)) <= kMostBytes) return s;
    return {};
}

using Numbers = std::vector<Variable>;

class Tiles {
  public:
    Tiles(Writer& w, const AttentionGeometry& g, const Share& share)
        : w_(w),
          g_(g),
          share_(share),
          down_(quotient(w.thread(), int64_t{kAcross})),
          across_(remainder(w.thread(), int64_t{kAcross})) {}

    Number my_row(int i) const { return down_ + i * kDown; }
    Number my_column(int j) const { return across_ + j * kAcross; }
    Near tile(int rows, int width) const { return w_.near(g_.sum, room(rows, width)); }
    Number zero() const { return w_.constant(g_.sum, 0, 0); }
    Numbers variables(int count, double first = 0) const {
        Numbers list;
        for (int i = 0; i < count; ++i) list.push_back(w_.variable(w_.constant(g_.sum, first, 0)));
        return list;
    }

    // Brings rows of a matrix from `first` on, times a factor, with zeros past its end.
    void bring(const Near& to, const HeadMatrix& from, Number first, int rows, int width, const Number* factor) const {
        w_.for_each_here(w_.index(int64_t{rows} * width), [&](Number e) {
            const Number r = quotient(e, int64_t{width}), c = remainder(e, int64_t{width}), row = first + r;
            const Variable v = w_.variable(zero());
            w_.when(row < from.length, [&] {
                const Number x = cast(from.elements.get(from.start + row * from.row + c * from.column), g_.sum);
                v.set(factor ? x * *factor : x);
            });
            to.set(r * pitch(width) + c, v.get());
        });
    }

    // The products of this thread's rows of one tile with its columns' rows of another.
    std::vector<Number> dots(const Near& rows, const Near& columns, int width) const {
        const Numbers sums = variables(share_.rows * share_.columns);
        w_.loop(w_.index(0), w_.index(width), w_.index(1), [&](Number d) {
            std::vector<Number> right;
            for (int j = 0; j < share_.columns; ++j) right.push_back(columns.get(my_column(j) * pitch(width) + d));
            for (int i = 0; i < share_.rows; ++i) {
                const Number left = rows.get(my_row(i) * pitch(width) + d);
                for (int j = 0; j < share_.columns; ++j) {
                    const Variable& sum = sums[static_cast<size_t>(i * share_.columns + j)];
                    sum.set(sum.get() + left * right[static_cast<size_t>(j)]);
                }
            }
        });
        std::vector<Number> list;
        for (const Variable& v : sums) list.push_back(v.get());
        return list;
    }

    // This thread's part of rows of results of that width: every kAcross-th element.
    static int count(int width) { return (width + kAcross - 1) / kAcross; }
    Numbers results(int width) const { return variables(share_.rows * count(width)); }

    // results += weights (rows by columns of the tile) times the tile's columns.
    void add(const Numbers& results, const Near& weights, const Near& columns, int width) const {
        w_.loop(w_.index(0), w_.index(share_.tile_columns()), w_.index(1), [&](Number k) {
            std::vector<Number> right;
            for (int j = 0; j < count(width); ++j) right.push_back(columns.get(k * pitch(width) + my_column(j)));
            for (int i = 0; i < share_.rows; ++i) {
                const Number left = weights.get(my_row(i) * pitch(share_.tile_columns()) + k);
                for (int j = 0; j < count(width); ++j) {
                    const Variable& sum = results[static_cast<size_t>(i * count(width) + j)];
                    sum.set(sum.get() + left * right[static_cast<size_t>(j)]);
                }
            }
        });
    }
    void keep(const Near& weights, int i, int j, Number v) const {
        weights.set(my_row(i) * pitch(share_.tile_columns()) + my_column(j), v);
    }

    // Writes dense rows of a head's matrix, each element by a function of this thread's value and its row's number
    // here.
    template <class F>
    void store(const Numbers& results, const Elements& to, Number start, Number first, Number length, int width,
               F value) const {
        for (int i = 0; i < share_.rows; ++i)
            for (int j = 0; j < count(width); ++j) {
                const Number row = first + my_row(i), column = my_column(j);
                w_.when((row < length) & (column < int64_t{width}), [&] {
                    const Number v = value(results[static_cast<size_t>(i * count(width) + j)].get(), i);
                    to.set(start + row * width + column, cast(v, to.dtype));
                });
            }
    }

    // Combines over the threads across.
    template <class F>
    Number fold(Number v, F combine) const {
        for (int bits = 1; bits < kAcross; bits *= 2) v = combine(v, w_.exchange(v, bits));
        return v;
    }

    Writer& w() const { return w_; }
    const Share& share() const { return share_; }
    const AttentionGeometry& geometry() const { return g_; }

  private:
    Writer& w_;
    const AttentionGeometry& g_;
    const Share share_;
    const Number down_, across_;
};

// The largest score and the sum of weights relative to it and, for the gradient, the weighted mean of the slopes; for
// every row of this thread. Earlier sums are rescaled when there is a new largest score.
class Rows {
  public:
    explicit Rows(const Tiles& tiles)
        : tiles_(tiles),
          largest_(tiles.variables(tiles.share().rows, kLowestScore)),
          sums_(tiles.variables(tiles.share().rows)) {}

    // Takes the scores of row i, none where hidden; returns the weights, and the factor for earlier sums.
    struct Weights {
        std::vector<Number> weights;
        Number factor;
    };
    Weights take(int i, const std::vector<Number>& scores, const std::vector<Number>& seen) const {
        const auto row = static_cast<size_t>(i);
        const Number lowest = like(tiles_.zero(), kLowestScore);
        Number most = lowest;
        for (size_t j = 0; j < scores.size(); ++j) most = maximum(most, select(seen[j], scores[j], lowest));
        most = maximum(tiles_.fold(most, [](Number a, Number b) { return maximum(a, b); }), largest_[row].get());
        Weights result{{}, exp(largest_[row].get() - most)};
        Number sum = tiles_.zero();
        for (size_t j = 0; j < scores.size(); ++j) {
            result.weights.push_back(select(seen[j], exp(scores[j] - most), tiles_.zero()));
            sum += result.weights.back();
        }
        sum = tiles_.fold(sum, [](Number a, Number b) { return a + b; });
        sums_[row].set(sums_[row].get() * result.factor + sum);
        largest_[row].set(most);
        return result;
    }
    Number largest(int i) const { return largest_[static_cast<size_t>(i)].get(); }
    // 0 for a query that sees no key.
    Number inverse(int i) const {
        const Number sum = sums_[static_cast<size_t>(i)].get();
        return select(sum == like(sum, 0), sum, like(sum, 1) / sum);
    }

  private:
    const Tiles& tiles_;
    const Numbers largest_, sums_;
};

// The numbers of row i.
std::vector<Number> row_of(const std::vector<Number>& all, int i, int columns) {
    const auto first = all.begin() + i * columns;
    return {first, first + columns};
}

std::vector<Number> seen_by(const Tiles& tiles, const AttentionPlace& at, int i, Number first_key) {
    std::vector<Number> seen;
    for (int j = 0; j < tiles.share().columns; ++j)
        seen.push_back(at.sees(tiles.geometry(), at.tile + tiles.my_row(i), first_key + tiles.my_column(j)));
    return seen;
}

void write_forward(Writer& w, const AttentionGeometry& g, const Share& share) {
    const Elements out = w.tensor(g.dtype), q = w.tensor(g.dtype), k = w.tensor(g.dtype), v = w.tensor(g.dtype);
    const AttentionPlace at(w, g, false, share.tile_rows());
    const HeadMatrix queries = at.matrix(w, q, at.queries), keys = at.matrix(w, k, at.keys),
                     values = at.matrix(w, v, at.keys);
    const Tiles tiles(w, g, share);
    const int rows = share.tile_rows(), columns = share.tile_columns();
    const Near q_tile = tiles.tile(rows, g.size), other = tiles.tile(columns, std::max(g.size, g.value_size)),
               weights = tiles.tile(rows, columns);
    tiles.bring(q_tile, queries, at.tile, rows, g.size, &at.factor);
    const Rows state(tiles);
    const Numbers results = tiles.results(g.value_size);
    w.loop(w.index(0), at.end_of_keys(g, at.tile + (rows - 1)), w.index(columns), [&](Number first) {
        w.barrier();
        tiles.bring(other, keys, first, columns, g.size, nullptr);
        w.barrier();
        const std::vector<Number> scores = tiles.dots(q_tile, other, g.size);
        for (int i = 0; i < share.rows; ++i) {
            const Rows::Weights taken = state.take(i, row_of(scores, i, share.columns), seen_by(tiles, at, i, first));
            for (int j = 0; j < share.columns; ++j) tiles.keep(weights, i, j, taken.weights[static_cast<size_t>(j)]);
            for (int j = 0; j < Tiles::count(g.value_size); ++j) {
                const Variable& r = results[static_cast<size_t>(i * Tiles::count(g.value_size) + j)];
                r.set(r.get() * taken.factor);
            }
        }
        w.barrier();
        tiles.bring(other, values, first, columns, g.value_size, nullptr);
        w.barrier();
        tiles.add(results, weights, other, g.value_size);
    });
    std::vector<Number> inverse;
    for (int i = 0; i < share.rows; ++i) inverse.push_back(state.inverse(i));
    tiles.store(results, out, at.head * at.queries * g.value_size, at.tile, at.queries, g.value_size,
                [&](Number x, int i) { return x * inverse[static_cast<size_t>(i)]; });
}

// Writes the gradient of the queries and, for the other kernel, two numbers of each query: the logarithm of the sum of
// its weights' parts, and the weighted mean of its slopes.
void write_query_grad(Writer& w, const AttentionGeometry& g, const Share& share) {
    const Elements out = w.tensor(g.dtype), d = w.tensor(g.dtype), q = w.tensor(g.dtype), k = w.tensor(g.dtype),
                   v = w.tensor(g.dtype), logs = w.tensor(g.sum), means = w.tensor(g.sum);
    const AttentionPlace at(w, g, false, share.tile_rows());
    const HeadMatrix slopes = at.matrix(w, d, at.queries), queries = at.matrix(w, q, at.queries),
                     keys = at.matrix(w, k, at.keys), values = at.matrix(w, v, at.keys);
    const Tiles tiles(w, g, share);
    const int rows = share.tile_rows(), columns = share.tile_columns();
    const Near q_tile = tiles.tile(rows, g.size), d_tile = tiles.tile(rows, g.value_size),
               k_tile = tiles.tile(columns, g.size), v_tile = tiles.tile(columns, g.value_size),
               weights = tiles.tile(rows, columns);
    tiles.bring(q_tile, queries, at.tile, rows, g.size, &at.factor);
    tiles.bring(d_tile, slopes, at.tile, rows, g.value_size, nullptr);
    auto for_keys = [&](auto body) {
        w.loop(w.index(0), at.end_of_keys(g, at.tile + (rows - 1)), w.index(columns), [&](Number first) {
            w.barrier();
            tiles.bring(k_tile, keys, first, columns, g.size, nullptr);
            tiles.bring(v_tile, values, first, columns, g.value_size, nullptr);
            w.barrier();
            body(first, tiles.dots(q_tile, k_tile, g.size), tiles.dots(d_tile, v_tile, g.value_size));
        });
    };
    const Rows state(tiles);
    const Numbers sums = tiles.variables(share.rows);
    for_keys([&](Number first, const std::vector<Number>& scores, const std::vector<Number>& of_values) {
        for (int i = 0; i < share.rows; ++i) {
            const Rows::Weights taken = state.take(i, row_of(scores, i, share.columns), seen_by(tiles, at, i, first));
            Number sum = tiles.zero();
            for (int j = 0; j < share.columns; ++j)
                sum += taken.weights[static_cast<size_t>(j)] * of_values[static_cast<size_t>(i * share.columns + j)];
            const Variable& all = sums[static_cast<size_t>(i)];
            all.set(all.get() * taken.factor + tiles.fold(sum, [](Number a, Number b) { return a + b; }));
        }
    });
    std::vector<Number> inverse, mean;
    for (int i = 0; i < share.rows; ++i) {
        inverse.push_back(state.inverse(i));
        mean.push_back(sums[static_cast<size_t>(i)].get() * inverse.back());
        const Number row = at.tile + tiles.my_row(i);
        w.when((row < at.queries) & (tiles.my_column(0) == like(row, 0)), [&] {
            // For a query that sees no key no weight is needed.
            const Number log =
                formula("log", select(inverse.back() == tiles.zero(), like(inverse.back(), 1), inverse.back()));
            logs.set(at.head * at.queries + row, state.largest(i) - log);
            means.set(at.head * at.queries + row, mean.back());
        });
    }
    const Numbers results = tiles.results(g.size);
    for_keys([&](Number first, const std::vector<Number>& scores, const std::vector<Number>& of_values) {
        for (int i = 0; i < share.rows; ++i) {
            const std::vector<Number> seen = seen_by(tiles, at, i, first);
            for (int j = 0; j < share.columns; ++j) {
                const auto e = static_cast<size_t>(i * share.columns + j), row = static_cast<size_t>(i);
                const Number weight = exp(scores[e] - state.largest(i)) * inverse[row];
                const Number slope = weight * (of_values[e] - mean[row]);
                tiles.keep(weights, i, j, select(seen[static_cast<size_t>(j)], slope, tiles.zero()));
            }
        }
        w.barrier();
        tiles.add(results, weights, k_tile, g.size);
    });
    tiles.store(results, out, at.head * at.queries * g.size, at.tile, at.queries, g.size,
                [&](Number x, int) { return x * at.factor; });
}

void write_key_grad(Writer& w, const AttentionGeometry& g, const Share& share) {
    const Elements key_out = w.tensor(g.dtype), value_out = w.tensor(g.dtype), d = w.tensor(g.dtype),
                   q = w.tensor(g.dtype), k = w.tensor(g.dtype), v = w.tensor(g.dtype), logs = w.tensor(g.sum),
                   means = w.tensor(g.sum);
    const AttentionPlace at(w, g, true, share.tile_rows());
    const HeadMatrix slopes = at.matrix(w, d, at.queries), queries = at.matrix(w, q, at.queries),
                     keys = at.matrix(w, k, at.keys), values = at.matrix(w, v, at.keys);
    const Tiles tiles(w, g, share);
    const int rows = share.tile_rows(), columns = share.tile_columns();
    const Near k_tile = tiles.tile(rows, g.size), v_tile = tiles.tile(rows, g.value_size),
               q_tile = tiles.tile(columns, g.size), d_tile = tiles.tile(columns, g.value_size),
               weights = tiles.tile(rows, columns), weight_slopes = tiles.tile(rows, columns);
    tiles.bring(k_tile, keys, at.tile, rows, g.size, nullptr);
    tiles.bring(v_tile, values, at.tile, rows, g.value_size, nullptr);
    const Numbers key_results = tiles.results(g.size), value_results = tiles.results(g.value_size);
    // The first query that sees the first key.
    Number begin = w.index(0);
    if (g.causal) begin = select(at.shift < at.tile, at.tile - at.shift, begin);
    w.loop(begin, at.queries, w.index(columns), [&](Number first) {
        w.barrier();
        tiles.bring(q_tile, queries, first, columns, g.size, &at.factor);
        tiles.bring(d_tile, slopes, first, columns, g.value_size, nullptr);
        w.barrier();
        const std::vector<Number> scores = tiles.dots(k_tile, q_tile, g.size),
                                  of_values = tiles.dots(v_tile, d_tile, g.value_size);
        for (int j = 0; j < share.columns; ++j) {
            const Number query = first + tiles.my_column(j);
            const Number inside = select(query < at.queries, query, w.index(0));
            const Number log = logs.get(at.head * at.queries + inside), mean = means.get(at.head * at.queries + inside);
            for (int i = 0; i < share.rows; ++i) {
                const auto e = static_cast<size_t>(i * share.columns + j);
                const Number seen = at.sees(g, query, at.tile + tiles.my_row(i));
                const Number weight = select(seen, exp(scores[e] - log), tiles.zero());
                tiles.keep(weights, i, j, weight);
                tiles.keep(weight_slopes, i, j, select(seen, weight * (of_values[e] - mean), tiles.zero()));
            }
        }
        w.barrier();
        tiles.add(value_results, weights, d_tile, g.value_size);
        tiles.add(key_results, weight_slopes, q_tile, g.size);
    });
    auto as_it_is = [](Number x, int) { return x; };
    tiles.store(key_results, key_out, at.head * at.keys * g.size, at.tile, at.keys, g.size, as_it_is);
    tiles.store(value_results, value_out, at.head * at.keys * g.value_size, at.tile, at.keys, g.value_size, as_it_is);
}

void add_steps(Words& words, const Tensor& t) {
    for (int axis = 0; axis < 4; ++axis) words.size(t.strides()[axis]);
}

std::string name_of(std::string_view kernel, const AttentionGeometry& g, const Share& s) {
    return str(kernel, ' ', lunaria::name_of(g.dtype), ' ', g.size, ' ', g.value_size, g.causal ? " causal " : " ",
               s.rows, ' ', s.columns);
}

bool run_tiles(Launcher& launcher, std::string_view kernel, const AttentionGeometry& g, const Share& s, int64_t rows,
               const Words& words, void (*write)(Writer&, const AttentionGeometry&, const Share&)) {
    const int64_t blocks = (rows + s.tile_rows() - 1) / s.tile_rows() * g.heads;
    return launcher.run(name_of(kernel, g, s), blocks, kDown * kAcross, words, [&](Writer& w) { write(w, g, s); });
}

bool attention(Launcher& launcher, const KernelCall& c) {
    const auto g = attention_geometry(c, 0);
    if (!g) return false;
    if (attention_by_units(launcher, c, *g)) return true;
    const auto share = share_for(g->sum, [&](const Share& s) {
        return room(s.tile_rows(), g->size) + room(s.tile_columns(), std::max(g->size, g->value_size)) +
               room(s.tile_rows(), s.tile_columns());
    });
    if (!share) return false;
    Words words;
    words.tensor(c.out[0]);
    for (size_t i = 0; i < 3; ++i) words.tensor(c.tensor(i));
    add_attention_place(words, c, *g, 0);
    for (size_t i = 0; i < 3; ++i) add_steps(words, c.tensor(i));
    return run_tiles(launcher, "attention", *g, *share, g->queries, words, write_forward);
}

bool attention_grad(Launcher& launcher, const KernelCall& c) {
    const auto g = attention_geometry(c, 1);
    if (!g) return false;
    if (attention_grad_by_units(launcher, c, *g)) return true;
    const auto query_share = share_for(g->sum, [&](const Share& s) {
        return room(s.tile_rows(), g->size) + room(s.tile_rows(), g->value_size) + room(s.tile_columns(), g->size) +
               room(s.tile_columns(), g->value_size) + room(s.tile_rows(), s.tile_columns());
    });
    const auto key_share = share_for(g->sum, [&](const Share& s) {
        return room(s.tile_rows(), g->size) + room(s.tile_rows(), g->value_size) + room(s.tile_columns(), g->size) +
               room(s.tile_columns(), g->value_size) + 2 * room(s.tile_rows(), s.tile_columns());
    });
    if (!query_share || !key_share) return false;
    const int64_t numbers = g->heads * g->queries;
    const Address logs = launcher.take(numbers * static_cast<int64_t>(size_of(g->sum)));
    const Address means = launcher.take(numbers * static_cast<int64_t>(size_of(g->sum)));
    auto words_for = [&](std::initializer_list<size_t> results) {
        Words words;
        for (size_t r : results) words.tensor(c.out[r]);
        for (size_t i = 0; i < 4; ++i) words.tensor(c.tensor(i));
        words.address(logs, numbers).address(means, numbers);
        add_attention_place(words, c, *g, 1);
        for (size_t i = 0; i < 4; ++i) add_steps(words, c.tensor(i));
        return words;
    };
    return run_tiles(launcher, "attention's queries", *g, *query_share, g->queries, words_for({0}), write_query_grad) &&
           run_tiles(launcher, "attention's keys", *g, *key_share, g->keys, words_for({1, 2}), write_key_grad);
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
    table.add_for_halves("attention", attention);
    table.add_for_halves("attention_grad", attention_grad);
}

}  // namespace lunaria::gpu
