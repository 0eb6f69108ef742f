// Figures of a tensor's elements. Tensors of other devices are copied to the host first; complex ones have no figures.
#pragma once

#include "core/tensor/tensor.h"

namespace lunaria::watch {

// `min`, `max` and the sums are over the finite elements; without any, min and max are NaN.
struct Statistics {
    int64_t count = 0, zeros = 0, nan = 0, positive_infinity = 0, negative_infinity = 0;
    double min = 0, max = 0, sum = 0, absolute_sum = 0;

    int64_t finite() const { return count - nan - positive_infinity - negative_infinity; }
    double mean() const;  // NaN without finite elements, as absolute_mean() is
    double absolute_mean() const;
    double zero_percentage() const {
        return count ? 100.0 * static_cast<double>(zeros) / static_cast<double>(count) : 0;
    }
};
Statistics statistics_of(const Tensor& t);

// Whether the elements are numbers of which there are figures.
bool has_statistics(const Tensor& t);

// What one fast pass tells.
struct Glance {
    bool all_finite = true, all_zero = true;
};
Glance glance_at(const Tensor& t);

// The first element that is not finite, in row-major order; -1: all are.
int64_t first_not_finite(const Tensor& t);

// Whether at least `percent` of the elements lie in [low, high]; stops as soon as it is known.
bool lie_within(const Tensor& t, double low, double high, double percent);
double percentage_within(const Tensor& t, double low, double high);

// Whether all elements are zero; stops at the first that is not.
bool are_zero(const Tensor& t);

// Whether the mean of the magnitudes is at least `bound`; stops as soon as it is. False for another dtype than float32.
bool reaches_absolute_mean(const Tensor& t, double bound);
// The mean of the magnitudes of the finite elements; NaN without any.
double absolute_mean_of(const Tensor& t);

// A tensor and an earlier one of its dtype and shape. An element is as before where |new - old| <= atol + rtol |old|.
struct Tolerance {
    double rtol = 1e-5, atol = 1e-8;
    bool equal_nan = false;
};
struct Change {
    int64_t count = 0, unequal = 0;
    double absolute_sum = 0, largest = 0, old_sum = 0;  // of |new - old|, the same, of |old|
};
// Throws shape_error.
Change change_of(const Tensor& now, const Tensor& before, const Tolerance& tolerance);
// The mean of |new - old| divided by that of |old| plus epsilon; not finite if an element is not.
double update_ratio(const Tensor& now, const Tensor& before, double epsilon);

}  // namespace lunaria::watch
