/* Operators for tests/lua/op_library_test.lua: sums of the rows of a matrix, each raised to a power, and their gradient. */
#include <math.h>
#include <stdio.h>

#include "lunaria.h"

static size_t count_of(const lunaria_tensor* t) {
    size_t count = 1;
    for (int i = 0; i < t->rank; ++i) count *= (size_t)t->shape[i];
    return count;
}

static double at(const lunaria_tensor* t, size_t i) {
    return t->dtype == LUNARIA_FLOAT64 ? ((const double*)t->data)[i] : (double)((const float*)t->data)[i];
}

static void set(const lunaria_tensor* t, size_t i, double x) {
    if (t->dtype == LUNARIA_FLOAT64)
        ((double*)t->data)[i] = x;
    else
        ((float*)t->data)[i] = (float)x;
}

static int check(const lunaria_tensor* x, char* message, size_t size) {
    if (x->dtype == LUNARIA_FLOAT32 || x->dtype == LUNARIA_FLOAT64) return 0;
    snprintf(message, size, "x must hold floats");
    return 1;
}

/* x[..., n], p[n] -> [...]: the sum of x^p along the last axis. */
LUNARIA_API lunaria_operator powers, powers_grad;

int powers(const lunaria_tensor* in, size_t inputs, lunaria_tensor* out, size_t outputs, char* message, size_t size) {
    const size_t n = (size_t)in[1].shape[in[1].rank - 1], rows = count_of(out);
    if (inputs != 2 || outputs != 1 || check(in, message, size)) return 1;
    for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i) sum += pow(at(in, r * n + i), at(in + 1, i));
        set(out, r, sum);
    }
    return 0;
}

/* x, p, the result, its cotangent -> the cotangents of x and p. */
int powers_grad(const lunaria_tensor* in, size_t inputs, lunaria_tensor* out, size_t outputs, char* message, size_t size) {
    const size_t n = (size_t)in[1].shape[in[1].rank - 1], rows = count_of(in + 3);
    if (inputs != 4 || outputs != 2 || check(in, message, size)) return 1;
    for (size_t i = 0; i < n; ++i) set(out + 1, i, 0);
    for (size_t r = 0; r < rows; ++r)
        for (size_t i = 0; i < n; ++i) {
            const double x = at(in, r * n + i), p = at(in + 1, i), d = at(in + 3, r);
            set(out, r * n + i, d * p * pow(x, p - 1));
            set(out + 1, i, at(out + 1, i) + d * pow(x, p) * log(x));
        }
    return 0;
}

/* x[...] -> [...]: every element doubled; without a gradient. */
LUNARIA_API lunaria_operator twice;
int twice(const lunaria_tensor* in, size_t inputs, lunaria_tensor* out, size_t outputs, char* message, size_t size) {
    (void)inputs, (void)outputs;
    if (check(in, message, size)) return 1;
    for (size_t i = 0; i < count_of(in); ++i) set(out, i, 2 * at(in, i));
    return 0;
}
