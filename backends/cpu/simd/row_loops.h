// The interface between the kernels for reductions, softmax and norms and their loops, which are compiled per
// instruction set. Rows are contiguous; `rows × width` blocks have `stride` elements from row to row. T is float or
// double; sums are returned in double, in the order of core/loops/sum_order.h.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

template <class T>
struct ReduceLoops {
    double (*sum)(const T* x, int64_t n);
    void (*sum_rows)(const T* x, int64_t rows, int64_t n, double* totals);  // of each row, dense ones
    // The same for data in memory, or at the far end of the last cache.
    double (*sum_far)(const T* x, int64_t n);
    void (*sum_rows_far)(const T* x, int64_t rows, int64_t n, double* totals);
    double (*squares)(const T* x, int64_t n, double from);  // of the differences from `from`
    // The sum of the powers of magnitudes; with order 0 the number of those that are not 0.
    double (*powers)(const T* x, int64_t n, double order);
    double (*product)(const T* x, int64_t n);
    double (*sum_numbers)(const T* x, int64_t n);  // of those that are not NaN
    // For at least one element; NaN if there is one.
    T (*largest)(const T* x, int64_t n);
    T (*smallest)(const T* x, int64_t n);
    // Index of the first element equal to `value` (the first NaN if it is NaN), which must exist.
    int64_t (*find)(const T* x, int64_t n, T value);
    // Writes the first elements of runs of equal ones, where NaN is equal to NaN, to `out`, which has room for n;
    // returns their number.
    int64_t (*first_of_runs)(const T* x, int64_t n, T* out);

    // totals[j] += the sum (the squares) of column j.
    void (*sum_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals);
    void (*sum_number_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals);
    void (*product_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, double* totals);  // *= column j
    void (*square_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, const double* from, double* totals);
    // The same in float64, for squares that leave the range of T.
    void (*wide_square_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, const double* from,
                                double* totals);
    void (*power_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, double order, double* totals);
    // totals[j] = the sum (of the numbers, squares, powers; the product) of column j, in the order of a row: for rows
    // of at most kSumLanes elements that lie side by side.
    void (*sum_across)(const T* x, int64_t n, int64_t width, int64_t stride, double* totals);
    void (*sum_numbers_across)(const T* x, int64_t n, int64_t width, int64_t stride, double* totals);
    void (*squares_across)(const T* x, int64_t n, int64_t width, int64_t stride, const double* from, double* totals);
    void (*powers_across)(const T* x, int64_t n, int64_t width, int64_t stride, double order, double* totals);
    void (*product_across)(const T* x, int64_t n, int64_t width, int64_t stride, double* totals);
    // best[j] = the extremum of column j and of best[j] before.
    void (*largest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, T* best);
    void (*smallest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, T* best);
    // The same with the number of the first row that holds it; `row` is the number of the first row given.
    void (*first_largest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best,
                                  int64_t* at);
    void (*first_smallest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best,
                                   int64_t* at);
};

template <class T>
struct SoftmaxLoops {
    // For one row.
    void (*softmax)(const T* x, T* y, int64_t n);
    void (*log_softmax)(const T* x, T* y, int64_t n);
    double (*logsumexp)(const T* x, int64_t n);
    void (*softmax_grad)(const T* dout, const T* y, T* dx, int64_t n);
    void (*log_softmax_grad)(const T* dout, const T* y, T* dx, int64_t n);
    // For every column; stride in elements for all operands. logsumexp gives one number per column.
    void (*softmax_columns)(const T* x, T* y, int64_t rows, int64_t width, int64_t stride);
    void (*log_softmax_columns)(const T* x, T* y, int64_t rows, int64_t width, int64_t stride);
    void (*logsumexp_columns)(const T* x, T* y, int64_t rows, int64_t width, int64_t stride);
    void (*softmax_grad_columns)(const T* dout, const T* y, T* dx, int64_t rows, int64_t width, int64_t stride);
    void (*log_softmax_grad_columns)(const T* dout, const T* y, T* dx, int64_t rows, int64_t width, int64_t stride);
    // Attention of `width` queries side by side, whole vectors of them, to further keys. The scores (keys × width),
    // times `scale`, become exponentials relative to the largest score so far, which is in `most`; `sum` is their sum,
    // and `keep` the factor for earlier exponentials from here on. Query j sees the first `seen` + j of these keys; the
    // others get 0.
    void (*attend)(T* scores, int64_t keys, int64_t width, double scale, int64_t seen, T* most, T* sum, T* keep);
    // x[i][j] *= factor[j] for whole vectors of columns.
    void (*scale_columns)(T* x, int64_t rows, int64_t width, const T* factor);
    // y[k][r] = exp(x[k][r] - the largest x[..][r]) for whole vectors of rows r that lie side by side.
    void (*exponentials_across)(const T* x, T* y, int64_t n, int64_t width);
};

template <class T>
struct NormLoops {
    // y = (x - mean) * scale * weight + bias, where weight and bias are vectors or null.
    void (*apply)(const T* x, T* y, int64_t n, double mean, double scale, const T* weight, const T* bias);
    // y = (x - mean) * scale + shift with one number each.
    void (*apply_scalar)(const T* x, T* y, int64_t n, double mean, double scale, double shift);
    // y[i][j] = (x[i][j] - mean[j]) * scale[j] + shift[j].
    void (*apply_columns)(const T* x, T* y, int64_t rows, int64_t width, const T* mean, const T* scale, const T* shift);
    // sum = sum of dy, slope = sum of dy * (x - mean) * rstd.
    void (*dots)(const T* dy, const T* x, int64_t n, double mean, double rstd, double* sum, double* slope);
    // dx = rstd * (dy - sum - xhat * slope).
    void (*pull)(const T* dy, const T* x, int64_t n, double mean, double rstd, double sum, double slope, T* dx);
    // The gradients of rows of n elements that are normalised one by one and multiplied by weight, which may be null:
    // dx of each row, and its contributions to dweight and dbias.
    void (*pull_rows)(const T* dy, const T* x, const T* weight, int64_t rows, int64_t n, double eps, T* dx,
                      double* dweight, double* dbias);
};

template <class T>
struct LossLoops {
    // Element by element; false when an x is outside 0 .. 1.
    bool (*bernoulli)(const T* x, const T* target, T* y, int64_t n);
    void (*sigmoid)(const T* x, const T* target, const T* pos_weight, T* y, int64_t n);  // pos_weight may be null
};

// T is an integer type; sums and products are of 64 bits and wrap.
template <class T>
struct IntegerLoops {
    int64_t (*sum)(const T* x, int64_t n);
    int64_t (*product)(const T* x, int64_t n);
    T (*largest)(const T* x, int64_t n);  // of at least one element
    T (*smallest)(const T* x, int64_t n);
    int64_t (*find)(const T* x, int64_t n, T value);  // the first position of a value that must exist
    // totals[j] = totals[j] and column j, joined.
    void (*sum_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t* totals);
    void (*product_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t* totals);
    void (*largest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, T* best);
    void (*smallest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, T* best);
    void (*first_largest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best,
                                  int64_t* at);
    void (*first_smallest_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best,
                                   int64_t* at);
};

// Tests for 0. T is a type of numbers.
template <class T>
struct TruthLoops {
    int64_t (*count)(const T* x, int64_t n);  // of those that are not 0
    // result[j] = result[j] and whether all (any) of column j are not 0; bytes 0 or 1.
    void (*all_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, uint8_t* result);
    void (*any_columns)(const T* x, int64_t rows, int64_t width, int64_t stride, uint8_t* result);
};

template <class T>
struct IntegerRows {
    IntegerLoops<T> loops;
    TruthLoops<T> truth;
};

// The interface of each instruction set's namespace.
struct RowLoops {
    IntegerRows<uint8_t> u8;
    IntegerRows<int8_t> i8;
    IntegerRows<int16_t> i16;
    IntegerRows<int32_t> i32;
    IntegerRows<int64_t> i64;
    TruthLoops<float> truth_f32;
    TruthLoops<double> truth_f64;
    ReduceLoops<float> reduce_f32;
    ReduceLoops<double> reduce_f64;
    SoftmaxLoops<float> softmax_f32;
    SoftmaxLoops<double> softmax_f64;
    NormLoops<float> norm_f32;
    NormLoops<double> norm_f64;
    LossLoops<float> loss_f32;
    LossLoops<double> loss_f64;
};
namespace v2 {
void fill_reduce_loops(RowLoops& loops);
void fill_integer_loops(RowLoops& loops);
void fill_softmax_loops(RowLoops& loops);
void fill_norm_loops(RowLoops& loops);
void fill_loss_loops(RowLoops& loops);
}  // namespace v2
namespace avx2 {
void fill_reduce_loops(RowLoops& loops);
void fill_integer_loops(RowLoops& loops);
void fill_softmax_loops(RowLoops& loops);
void fill_norm_loops(RowLoops& loops);
void fill_loss_loops(RowLoops& loops);
}  // namespace avx2
namespace avx512 {
void fill_reduce_loops(RowLoops& loops);
void fill_integer_loops(RowLoops& loops);
void fill_softmax_loops(RowLoops& loops);
void fill_norm_loops(RowLoops& loops);
void fill_loss_loops(RowLoops& loops);
}  // namespace avx512

}  // namespace lunaria::cpu
