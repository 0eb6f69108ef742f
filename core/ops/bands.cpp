// Operators: diagonals and bands of (batches of) matrices. All are made of other operators: the places of the
// diagonals' elements in the matrix are known from the shapes.
#include <algorithm>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

constexpr int64_t kFarthest = int64_t{1} << 40;

// Diagonals low .. high of a matrix, written as rows of one length, the uppermost first. Shorter ones are padded at
// either end, as `align` says for those above and below the main diagonal.
class Band {
  public:
    Band(const Call& c, size_t k, size_t align) : right_(c.string(align)) {
        const auto given = c.ints(k);
        if (given.empty() || given.size() > 2)
            throw value_error(
                c.name(), str("k must be one diagonal or the lowest and the highest, not ", given.size(), " numbers"));
        low = given.front();
        high = given.back();
        for (int64_t d : given)
            if (d < -kFarthest || d > kFarthest) throw value_error(c.name(), str("there is no diagonal ", d));
        if (low > high)
            throw value_error(c.name(), str("k is {", low, ", ", high, "}: the lowest diagonal comes first"));
    }

    // For a matrix of that size.
    void set_size(const Call& c, int64_t row_count, int64_t column_count) {
        rows = row_count;
        columns = column_count;
        if ((low <= -rows || high >= columns) && !(low == 0 && high == 0))
            throw value_error(c.name(), str("k is {", low, ", ", high, "}: a matrix of ", rows, " rows and ", columns,
                                            " columns has the diagonals ", 1 - rows, " .. ", columns - 1));
    }

    int64_t count() const { return high - low + 1; }
    int64_t length_of(int64_t d) const {
        return std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0));
    }
    int64_t length() const {
        return std::max<int64_t>(0, std::min(rows + std::min<int64_t>(high, 0), columns - std::max<int64_t>(low, 0)));
    }
    // The position in its row at which the diagonal d begins.
    int64_t start_of(int64_t d) const {
        const bool above_left = right_.starts_with("LEFT"), below_left = right_.ends_with("LEFT");
        const bool left = (d >= 0 && above_left) || (d <= 0 && below_left);
        return left ? 0 : length() - length_of(d);
    }

    // The place of every element of the matrix in the diagonals, and whether it has one.
    std::pair<Tensor, Tensor> places_in_diagonals() const {
        auto places = nowhere(rows, columns);
        each([&](int64_t row, int64_t column, int64_t place) { set(places, row * columns + column, place); });
        return places;
    }
    // The place of every element of the diagonals in the matrix, and whether it has one or is padding.
    std::pair<Tensor, Tensor> places_in_matrix() const {
        auto places = nowhere(count(), length());
        each([&](int64_t row, int64_t column, int64_t place) { set(places, place, row * columns + column); });
        return places;
    }

    int64_t low = 0, high = 0, rows = 0, columns = 0;

  private:
    static std::pair<Tensor, Tensor> nowhere(int64_t lines, int64_t size) {
        // The batch may be empty, so that the result is small however many lines there are.
        checked_shape("matrix_diag", Shape{lines, size}.dims());
        return {Tensor::zeros(DType::i64, {lines * size}), Tensor::zeros(DType::boolean, {lines, size})};
    }
    static void set(std::pair<Tensor, Tensor>& places, int64_t at, int64_t place) {
        places.first.data<int64_t>()[at] = place;
        places.second.data<bool>()[at] = true;
    }
    template <class F>
    void each(F f) const {
        for (int64_t d = low; d <= high; ++d) {
            const int64_t row = std::max<int64_t>(-d, 0), column = std::max<int64_t>(d, 0), start = start_of(d);
            for (int64_t i = 0; i < length_of(d); ++i) f(row + i, column + i, (high - d) * length() + start + i);
        }
    }

    std::string_view right_;
};

Shape joined_bands(Shape batch, std::initializer_list<int64_t> last) {
    for (int64_t n : last) batch.push_back(n);
    return batch;
}

Shape first_axes(const Shape& s, int count) {
    Shape batch = s;
    batch.resize(count);
    return batch;
}

// Elements of the last axis of `flat` at `places`, in the shape after the batch; `otherwise` where a place does not
// exist.
Expr picked(const ExpandCall& c, const Expr& flat, const std::pair<Tensor, Tensor>& places, const Shape& shape,
            const Expr& otherwise) {
    if (flat.shape().back() == 0 || shape.size() == 0) return otherwise.broadcast_to(shape);
    const Expr elements =
        c.call("index_select", {flat, flat.rank() - 1, c.builder.constant(places.first)}).reshape(shape);
    return where(c.builder.constant(places.second), elements, otherwise);
}

Expr expand_matrix_diag(const ExpandCall& c) {
    Band band(c, 1, 5);
    const bool several = band.low != band.high;
    expect_rank_at_least(c, 0, several ? 2 : 1);
    const Shape s = c.shape(0);
    const int batch_rank = s.rank() - (several ? 2 : 1);
    if (several && s[s.rank() - 2] != band.count())
        throw shape_error(c.name(), str("x is ", s, ": its axis before the last must have the size ", band.count(),
                                        ", one row for each diagonal"));
    const int64_t longest = s.back();
    const int64_t least_rows = longest - std::min<int64_t>(band.high, 0);
    const int64_t least_columns = longest + std::max<int64_t>(band.low, 0);
    int64_t rows = c.integer(2), columns = c.integer(3);
    if (rows == -1 && columns == -1) rows = columns = std::max(least_rows, least_columns);
    if (rows == -1) rows = least_rows;
    if (columns == -1) columns = least_columns;
    if (rows < least_rows || columns < least_columns || (rows != least_rows && columns != least_columns))
        throw value_error(c.name(), str("num_rows ", rows, " and num_cols ", columns, " do not fit diagonals of ",
                                        longest, " elements: one of them must be ", least_rows, " or ", least_columns,
                                        ", the other no smaller"));
    const Shape out = joined_bands(first_axes(s, batch_rank), {rows, columns});
    checked_shape(c.name(), out.dims());
    band.set_size(c, rows, columns);
    const Expr flat = c.in(0).reshape(joined_bands(first_axes(s, batch_rank), {band.count() * longest}));
    return picked(c, flat, band.places_in_diagonals(), out, c.in(4));
}

Expr expand_matrix_diag_part(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    const Shape s = c.shape(0);
    Band band(c, 1, 3);
    band.set_size(c, s[s.rank() - 2], s.back());
    const Shape batch = first_axes(s, s.rank() - 2);
    const Shape out = band.low == band.high ? joined_bands(batch, {band.length()})
                                            : joined_bands(batch, {band.count(), band.length()});
    auto places = band.places_in_matrix();
    if (band.low == band.high) places.second = places.second.view({band.length()}, {1}, 0);
    return picked(c, c.in(0).reshape(joined_bands(batch, {band.rows * band.columns})), places, out, c.in(2));
}

Expr expand_matrix_set_diag(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    const Shape s = c.shape(0);
    Band band(c, 2, 3);
    band.set_size(c, s[s.rank() - 2], s.back());
    const Shape batch = first_axes(s, s.rank() - 2);
    const Shape wanted = band.low == band.high ? joined_bands(batch, {band.length()})
                                               : joined_bands(batch, {band.count(), band.length()});
    if (c.shape(1) != wanted)
        throw shape_error(c.name(), str("diagonal is ", c.shape(1), ": for x of shape ", s, " it must be ", wanted));
    const Expr flat = c.in(1).reshape(joined_bands(batch, {band.count() * band.length()}));
    return picked(c, flat, band.places_in_diagonals(), s, c.in(0));
}

Expr expand_band_part(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    Expr x = c.in(0);
    if (c.integer(1) >= 0) x = c.call("triu", {x, -c.integer(1)});
    if (c.integer(2) >= 0) x = c.call("tril", {x, c.integer(2)});
    return x;
}

}  // namespace

void add_band_ops(Registry& ops) {
    ops.add(
           "matrix_diag(x/input: same, k: ints = 0, num_rows: int = -1, num_cols: int = -1, padding_value: same = 0, "
           "align: \"RIGHT_LEFT\"|\"LEFT_RIGHT\"|\"LEFT_LEFT\"|\"RIGHT_RIGHT\" = \"RIGHT_LEFT\")")
        .doc(
            "Matrices with the last axis of x as diagonal k; for k = {lowest, highest}, with the rows of x as "
            "diagonals, the highest first. Shorter diagonals stand at the right or left end of their rows, as align "
            "says for those above and below the main one. All else is padding_value.")
        .example("matrix_diag(tensor{1.0, 2.0})", "tensor{{1.0, 0.0}, {0.0, 2.0}}")
        .expand(expand_matrix_diag)
        .sample("f32[2,3]")
        .sample("f32[2,3], {-1,0}, padding_value=5.0")
        .sample("f32[3,2], {0,2}, 2, 4, 0.5, \"LEFT_RIGHT\"");
    ops.add(
           "matrix_diag_part(x/input: same, k: ints = 0, padding_value: same = 0, align: "
           "\"RIGHT_LEFT\"|\"LEFT_RIGHT\"|\"LEFT_LEFT\"|\"RIGHT_RIGHT\" = \"RIGHT_LEFT\")")
        .doc(
            "Diagonal k of matrices, or the diagonals k = {lowest, highest} as rows, the highest first; shorter ones "
            "are filled up with padding_value where align says.")
        .example("matrix_diag_part(tensor{{1.0, 2.0}, {3.0, 4.0}}, 1)", "tensor{2.0}")
        .expand(expand_matrix_diag_part)
        .sample("f32[2,3,4]")
        .sample("f32[3,4], {-1,2}, 5.0")
        .sample("f32[3,3], {-2,1}, 0.5, \"LEFT_LEFT\"");
    ops.add(
           "matrix_set_diag(x/input: same, diagonal: same, k: ints = 0, align: "
           "\"RIGHT_LEFT\"|\"LEFT_RIGHT\"|\"LEFT_LEFT\"|\"RIGHT_RIGHT\" = \"RIGHT_LEFT\")")
        .doc(
            "Replaces diagonal k of x, or the diagonals k = {lowest, highest}, by those that matrix_diag_part would "
            "give.")
        .example("matrix_set_diag(tensor{{1.0, 2.0}, {3.0, 4.0}}, tensor{0.0, 9.0})", "tensor{{0.0, 2.0}, {3.0, 9.0}}")
        .expand(expand_matrix_set_diag)
        .sample("f32[2,3,4], f32[2,3]")
        .sample("f32[3,4], f32[4,3], {-1,2}");
    ops.add("matrix_band_part(x/input: tensor, lower: int, upper: int)")
        .doc(
            "Sets to zero what lies outside the band of `lower` diagonals below the main one and `upper` above it; -1: "
            "all.")
        .example("matrix_band_part(tensor{{1, 2}, {3, 4}}, 0, -1)", "tensor{{1, 2}, {0, 4}}")
        .expand(expand_band_part)
        .sample("f32[2,3,4], 1, 0")
        .sample("f32[4,4], -1, 2");
}

}  // namespace lunaria
