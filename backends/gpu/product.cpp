#include "backends/gpu/product.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace lunaria::gpu {

namespace {

// A block's tile of the result, the depth of a strip, and a thread's share of the tile.
struct Tile {
    int rows, columns, depth, thread_rows, thread_columns;
    constexpr bool is_even() const {
        return rows % 4 == 0 && columns % 4 == 0 && thread_rows % 4 == 0 && thread_columns % 4 == 0;
    }
    int threads() const { return rows / thread_rows * (columns / thread_columns); }
    int64_t count(int64_t of, int size) const { return (of + size - 1) / size; }
    int64_t blocks(const ProductShape& s) const { return count(s.rows, rows) * count(s.columns, columns) * s.batches; }
};
constexpr Tile kLarge{128, 128, 8, 8, 8}, kMiddle{64, 64, 16, 4, 4}, kSmall{32, 32, 16, 4, 4}, kFlat{16, 64, 16, 4, 4},
    kTall{64, 16, 16, 4, 4};
// Enough for a processor with a hundred and more multiprocessors.
constexpr int64_t kEnoughBlocks = 128;
// The least depth of a part.
constexpr int64_t kDeep = 512;
constexpr int kPadding = 4;  // keeps columns of a strip apart in the memory's banks
static_assert(kLarge.is_even() && kMiddle.is_even() && kSmall.is_even() && kFlat.is_even() && kTall.is_even());

Tile tile_for(const ProductShape& s) {
    if (s.rows <= kFlat.rows) return kFlat;
    if (s.columns <= kTall.columns) return kTall;
    if (s.sum == DType::f32 && kLarge.blocks(s) >= kEnoughBlocks) return kLarge;
    return kMiddle.blocks(s) >= kEnoughBlocks ? kMiddle : kSmall;
}

class ProductWriter {
  public:
    ProductWriter(Writer& w, const Tile& tile, const ProductShape& shape, const ProductElements& elements)
        : w_(w), tile_(tile), shape_(shape), elements_(elements) {}

    // `part`: number of the part of the depth, which ends at `to`.
    void write(Number block_row, Number block_column, Number rows, Number columns, Number from, Number to) {
        const Near strip_a = w_.near(shape_.sum, int64_t{tile_.depth} * (tile_.rows + kPadding));
        const Near strip_b = w_.near(shape_.sum, int64_t{tile_.depth} * (tile_.columns + kPadding));
        const Number row = block_row * tile_.rows, column = block_column * tile_.columns;
        const Number across = w_.index(tile_.columns / tile_.thread_columns);
        const Number my_row = quotient(w_.thread(), across) * tile_.thread_rows;
        const Number my_column = remainder(w_.thread(), across) * tile_.thread_columns;
        for (int i = 0; i < tile_.thread_rows * tile_.thread_columns; ++i) sums_.push_back(w_.variable(zero()));
        const std::vector<Variable> next_a = registers(tile_.rows), next_b = registers(tile_.columns);
        auto fetch = [&](Number k) {
            for_strip(tile_.rows, shape_.a_along_depth, [&](size_t i, Number r, Number d) {
                guarded(next_a[i], (row + r < rows) & (k + d < to), [&] { return elements_.a(row + r, k + d); });
            });
            for_strip(tile_.columns, shape_.b_along_depth, [&](size_t i, Number c, Number d) {
                guarded(next_b[i], (column + c < columns) & (k + d < to),
                        [&] { return elements_.b(k + d, column + c); });
            });
        };
        fetch(from);
        w_.loop(from, to, w_.index(tile_.depth), [&](Number k) {
            for_strip(tile_.rows, shape_.a_along_depth, [&](size_t i, Number r, Number d) {
                strip_a.set(d * (tile_.rows + kPadding) + r, next_a[i].get());
            });
            for_strip(tile_.columns, shape_.b_along_depth, [&](size_t i, Number c, Number d) {
                strip_b.set(d * (tile_.columns + kPadding) + c, next_b[i].get());
            });
            w_.barrier();
            // The next strip is fetched while this one is used.
            fetch(k + tile_.depth);
            for (int d = 0; d < tile_.depth; ++d) add_products(strip_a, strip_b, my_row, my_column, d);
            w_.barrier();
        });
        size_t at = 0;
        for (int i = 0; i < tile_.thread_rows; ++i)
            for (int j = 0; j < tile_.thread_columns; ++j, ++at) {
                const Number r = row + my_row + i, c = column + my_column + j;
                w_.when((r < rows) & (c < columns), [&] { elements_.store(r, c, sums_[at].get()); });
            }
    }

  private:
    Number zero() { return w_.constant(shape_.sum, 0, 0); }
    std::vector<Variable> registers(int width) {
        std::vector<Variable> list;
        for (int i = 0; i < width * tile_.depth; i += tile_.threads()) list.push_back(w_.variable(zero()));
        return list;
    }
    // The elements of a strip that this thread copies: adjacent threads copy adjacent elements.
    template <class F>
    void for_strip(int width, bool along_depth, F f) {
        size_t i = 0;
        for (int first = 0; first < width * tile_.depth; first += tile_.threads(), ++i) {
            const Number e = w_.thread() + first;
            const int line = along_depth ? tile_.depth : width;
            const Number across = remainder(e, line), down = quotient(e, line);
            along_depth ? f(i, down, across) : f(i, across, down);
        }
    }
    template <class F>
    void guarded(const Variable& to, Number inside, F element) {
        to.set(zero());
        w_.when(inside, [&] { to.set(element()); });
    }
    void add_products(const Near& a, const Near& b, Number row, Number column, int depth) {
        // Lines of a strip and shares of a thread are multiples of four elements.
        auto neighbours = [depth](const Near& from, Number first, int width, int count) {
            std::vector<Number> list;
            for (int i = 0; i < count; ++i) {
                const Number at = first + (depth * (width + kPadding) + i);
                list.push_back(i % kPadding == 0 ? from.get_aligned(at) : from.get(at));
            }
            return list;
        };
        const std::vector<Number> left = neighbours(a, row, tile_.rows, tile_.thread_rows);
        const std::vector<Number> right = neighbours(b, column, tile_.columns, tile_.thread_columns);
        size_t at = 0;
        for (const Number& x : left)
            for (const Number& y : right) {
                sums_[at].set(sums_[at].get() + x * y);
                ++at;
            }
    }

    Writer& w_;
    const Tile tile_;
    const ProductShape& shape_;
    const ProductElements& elements_;
    std::vector<Variable> sums_;
};

// Adds up the parts' sums, one after the other, and stores them as elements of the result.
bool add_parts(Launcher& launcher, const std::string& name, const ProductShape& s, int64_t parts, Address sums,
               Words words, const std::function<ProductElements(Writer&)>& write) {
    const int64_t matrix = s.rows * s.columns;
    words.size(s.batches).size(s.rows).size(s.columns).size(parts).word(sums);
    return launcher.run_for(str("sum of parts ", name_of(s.sum), ' ', name), s.batches * matrix, words, [&](Writer& w) {
        const ProductElements elements = write(w);
        const Number batches = w.size(), rows = w.size(), columns = w.size(), count = w.size();
        const Elements from{w.word(), s.sum};
        w.for_each(batches * rows * columns, [&](Number i) {
            const Number column = remainder(i, columns), rest = quotient(i, columns);
            const Number row = remainder(rest, rows), batch = quotient(rest, rows);
            const Variable sum = w.variable(w.constant(s.sum, 0, 0));
            const Number element = row * columns + column, size = rows * columns;
            w.loop(w.index(0), count, w.index(1),
                   [&](Number part) { sum.set(sum.get() + from.get((batch * count + part) * size + element)); });
            if (elements.begin) elements.begin(w, batch);
            elements.store(row, column, sum.get());
        });
    });
}

}  // namespace

bool run_product(Launcher& launcher, const std::string& name, const ProductShape& s, Words words,
                 const std::function<ProductElements(Writer&)>& write) {
    const Tile tile = tile_for(s);
    const int64_t blocks = tile.blocks(s);
    const int64_t parts = std::clamp<int64_t>(std::min(kEnoughBlocks / blocks, s.depth / kDeep), 1, kEnoughBlocks);
    // Parts are whole strips.
    const int64_t part = tile.count(tile.count(s.depth, static_cast<int>(parts)), tile.depth) * tile.depth;
    const Words own = words;
    const int64_t elements_of_sums = s.batches * s.rows * s.columns * parts;
    const Address sums = parts > 1 ? launcher.take(elements_of_sums * static_cast<int64_t>(size_of(s.sum))) : 0;
    words.size(s.rows).size(s.columns).size(s.depth).size(parts).size(part).word(sums);
    const std::string kind = str(name_of(s.sum), s.a_along_depth ? " k" : " m", s.b_along_depth ? "k " : "n ", name);
    const bool done = launcher.run(
        str("product ", tile.rows, 'x', tile.columns, ' ', parts > 1 ? "in parts " : "", kind), blocks * parts,
        tile.threads(), words, [&](Writer& w) {
            ProductElements elements = write(w);
            const Number rows = w.size(), columns = w.size(), depth = w.size(), count = w.size(), size = w.size();
            const Elements to{w.word(), s.sum};
            const Number down = quotient(rows + (tile.rows - 1), tile.rows);
            const Number across = quotient(columns + (tile.columns - 1), tile.columns);
            const Number column = remainder(w.block(), across), rest = quotient(w.block(), across);
            const Number row = remainder(rest, down), piece = quotient(rest, down);
            const Number batch = parts > 1 ? quotient(piece, count) : piece;
            Number from = w.index(0), end = depth;
            if (parts > 1) {
                from = remainder(piece, count) * size;
                end = select(from + size < depth, from + size, depth);
                elements.store = [&, start = piece * rows * columns](Number r, Number c, Number v) {
                    to.set(start + r * columns + c, v);
                };
            }
            if (elements.begin) elements.begin(w, batch);
            ProductWriter(w, tile, s, elements).write(row, column, rows, columns, from, end);
        });
    return done && (parts == 1 || add_parts(launcher, kind, s, parts, sums, own, write));
}

}  // namespace lunaria::gpu
