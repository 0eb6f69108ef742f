#include "core/federated/vertical/masked_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/threads/threads.h"

namespace lunaria::federated {

namespace {

constexpr std::string_view kMaskedProductsWhere = "vertical";
constexpr int64_t kPart = 1 << 14;  // elements that are worth a thread

int64_t rows_in_part(int64_t columns) { return std::max<int64_t>(1, kPart / std::max<int64_t>(1, columns)); }

Tensor integers(const Tensor& t, int rank) {
    if (t.dtype() != DType::i64 || t.rank() != rank)
        throw dtype_error(kMaskedProductsWhere, str("integers of 64 bits with ", rank, " axes are expected, got ",
                                                    name_of(t.dtype()), " of shape ", t.shape()));
    return t.to_host().contiguous();
}

uint64_t* words(const Tensor& t) { return t.data<uint64_t>(); }

void draw(const Secret& seed, std::string_view purpose, int64_t number, std::span<uint64_t> to) {
    Secret key;
    const Primitives& table = primitives(kMaskedProductsWhere);
    table.hkdf(seed.view(), "lunaria masked products 1", str(purpose, ":", number), key.bytes());
    table.keystream(key)->next({reinterpret_cast<uint8_t*>(to.data()), to.size_bytes()});
}

uint64_t product(const uint64_t* a, const uint64_t* b, int64_t count) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
}

void same_columns(const Tensor& x, const Tensor& v) {
    if (x.dim(1) != v.dim(1))
        throw shape_error(kMaskedProductsWhere,
                          str("a matrix of shape ", x.shape(), " has no product with vectors of shape ", v.shape()));
}

template <class F>
Tensor of_both(const Tensor& a, const Tensor& b, F f) {
    if (a.shape() != b.shape() || a.dtype() != DType::i64 || b.dtype() != DType::i64)
        throw shape_error(kMaskedProductsWhere,
                          str("shares must be int64 of one shape, got ", a.shape(), " and ", b.shape()));
    const Tensor x = a.to_host().contiguous(), y = b.to_host().contiguous();
    Tensor result = Tensor::empty(DType::i64, x.shape());
    for (int64_t i = 0; i < x.size(); ++i) words(result)[i] = f(words(x)[i], words(y)[i]);
    return result;
}

}  // namespace

Tensor drawn_integers(const Secret& seed, std::string_view purpose, int64_t number, int64_t count) {
    Tensor result = Tensor::empty(DType::i64, Shape{count});
    draw(seed, purpose, number, {words(result), static_cast<size_t>(count)});
    return result;
}

Tensor masked_matrix(const Tensor& x, const Secret& seed) {
    const Tensor m = integers(x, 2);
    Tensor result = Tensor::empty(DType::i64, m.shape());
    const int64_t n = m.dim(1);
    parallel_for(m.dim(0), rows_in_part(n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            uint64_t* row = words(result) + r * n;
            draw(seed, "matrix", r, {row, static_cast<size_t>(n)});
            for (int64_t i = 0; i < n; ++i) row[i] = words(m)[r * n + i] - row[i];
        }
    });
    return result;
}

Tensor mask_product(const Secret& seed, int64_t rows, const Tensor& v) {
    const Tensor vectors = integers(v, 2);
    if (rows < 0) throw value_error(kMaskedProductsWhere, "a matrix has no rows below 0");
    const int64_t n = vectors.dim(1), count = vectors.dim(0);
    Tensor result = Tensor::empty(DType::i64, Shape{count, rows});
    parallel_for(rows, rows_in_part(n), [&](int64_t begin, int64_t end) {
        std::vector<uint64_t> row(static_cast<size_t>(n));
        for (int64_t r = begin; r < end; ++r) {
            draw(seed, "matrix", r, row);
            for (int64_t k = 0; k < count; ++k)
                words(result)[k * rows + r] = product(row.data(), words(vectors) + k * n, n);
        }
    });
    return result;
}

Tensor ring_product(const Tensor& x, const Tensor& v) {
    const Tensor m = integers(x, 2), vectors = integers(v, 2);
    same_columns(m, vectors);
    const int64_t n = m.dim(1), rows = m.dim(0), count = vectors.dim(0);
    Tensor result = Tensor::empty(DType::i64, Shape{count, rows});
    parallel_for(rows, rows_in_part(n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
            for (int64_t k = 0; k < count; ++k)
                words(result)[k * rows + r] = product(words(m) + r * n, words(vectors) + k * n, n);
    });
    return result;
}

Tensor ring_histogram(const Tensor& of, int64_t width, const Tensor& v) {
    const Tensor columns = integers(of, 2), vectors = integers(v, 2);
    same_columns(columns, vectors);
    if (width < 1 || width > (1 << 20))
        throw value_error(kMaskedProductsWhere, str("a width of ", width, " is beyond 1 to 2^20"));
    const int64_t n = vectors.dim(1), groups = columns.dim(0), count = vectors.dim(0);
    Tensor result = Tensor::zeros(DType::i64, Shape{count, groups * width});
    const auto add = [&](int64_t g, int64_t k) {
        uint64_t* sums = words(result) + (k * groups + g) * width;
        for (int64_t i = 0; i < n; ++i) {
            const uint64_t at = words(columns)[g * n + i];
            if (at >= static_cast<uint64_t>(width))
                throw index_error(kMaskedProductsWhere, str("there is no column ", at, " of ", width));
            sums[at] += words(vectors)[k * n + i];
        }
    };
    parallel_for(groups, rows_in_part(n), [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g)
            for (int64_t k = 0; k < count; ++k) add(g, k);
    });
    return result;
}

Tensor ring_sum(const Tensor& a, const Tensor& b) {
    return of_both(a, b, [](uint64_t x, uint64_t y) { return x + y; });
}
Tensor ring_difference(const Tensor& a, const Tensor& b) {
    return of_both(a, b, [](uint64_t x, uint64_t y) { return x - y; });
}

Tensor to_fixed(const Tensor& x, int bits) {
    if (x.dtype() != DType::f64)
        throw dtype_error(kMaskedProductsWhere, str("float64 is expected, got ", name_of(x.dtype())));
    const Tensor from = x.to_host().contiguous();
    Tensor result = Tensor::empty(DType::i64, from.shape());
    constexpr double kMost = 9.2e18;  // below 2^63
    for (int64_t i = 0; i < from.size(); ++i) {
        const double scaled = std::nearbyint(std::ldexp(from.data<double>()[i], bits));
        if (!(std::abs(scaled) < kMost))
            throw value_error(kMaskedProductsWhere, str("the number ", from.data<double>()[i],
                                                        " has no room in 64 bits, ", bits, " of them behind the point"))
                .hint("scale the data to numbers of about 1");
        result.data<int64_t>()[i] = static_cast<int64_t>(scaled);
    }
    return result;
}

Tensor from_fixed(const Tensor& x, int bits) {
    if (x.dtype() != DType::i64)
        throw dtype_error(kMaskedProductsWhere, str("int64 is expected, got ", name_of(x.dtype())));
    const Tensor from = x.to_host().contiguous();
    Tensor result = Tensor::empty(DType::f64, from.shape());
    for (int64_t i = 0; i < from.size(); ++i)
        result.data<double>()[i] = std::ldexp(static_cast<double>(from.data<int64_t>()[i]), -bits);
    return result;
}

}  // namespace lunaria::federated
