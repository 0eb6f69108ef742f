// The loops of bench/index_rules.lua as they are written by hand, over rows in parallel. Compiled for this processor,
// with sums in any order.
#include <cmath>

#include "bench/direct.h"

namespace {

constexpr long kBatch = 8, kRows = 256, kColumns = 256, kDepth = 64;

direct::Run scores() {
    const float *q = direct::randn(kBatch * kRows * kDepth), *w = direct::randn(kBatch * kColumns * kDepth);
    float* y = direct::randn(kBatch * kRows * kColumns);
    return [=](long calls) {
        for (long n = 0; n < calls; ++n) {
#pragma omp parallel for collapse(2)
            for (long b = 0; b < kBatch; ++b)
                for (long i = 0; i < kRows; ++i)
                    for (long j = 0; j < kColumns; ++j) {
                        float sum = 0;
                        for (long k = 0; k < kDepth; ++k)
                            sum += q[(b * kRows + i) * kDepth + k] * w[(b * kColumns + j) * kDepth + k];
                        y[(b * kRows + i) * kColumns + j] = sum;
                    }
        }
    };
}

direct::Run distances() {
    const float *q = direct::randn(kBatch * kRows * kDepth), *w = direct::randn(kBatch * kColumns * kDepth);
    float* y = direct::randn(kBatch * kRows * kColumns);
    return [=](long calls) {
        for (long n = 0; n < calls; ++n) {
#pragma omp parallel for collapse(2)
            for (long b = 0; b < kBatch; ++b)
                for (long i = 0; i < kRows; ++i)
                    for (long j = 0; j < kColumns; ++j) {
                        float sum = 0;
                        for (long k = 0; k < kDepth; ++k)
                            sum += std::fabs(q[(b * kRows + i) * kDepth + k] - w[(b * kColumns + j) * kDepth + k]);
                        y[(b * kRows + i) * kColumns + j] = sum;
                    }
        }
    };
}

// Of the sum of the squares of the differences, weighted by d.
direct::Run distances_grad() {
    const float *q = direct::randn(kBatch * kRows * kDepth), *w = direct::randn(kBatch * kColumns * kDepth);
    const float* d = direct::randn(kBatch * kRows * kColumns);
    float *dq = direct::randn(kBatch * kRows * kDepth), *dw = direct::randn(kBatch * kColumns * kDepth);
    return [=](long calls) {
        for (long n = 0; n < calls; ++n) {
#pragma omp parallel for collapse(2)
            for (long b = 0; b < kBatch; ++b)
                for (long i = 0; i < kRows; ++i) {
                    float* to = dq + (b * kRows + i) * kDepth;
                    const float* a = q + (b * kRows + i) * kDepth;
                    for (long k = 0; k < kDepth; ++k) to[k] = 0;
                    for (long j = 0; j < kColumns; ++j) {
                        const float weight = 2 * d[(b * kRows + i) * kColumns + j];
                        for (long k = 0; k < kDepth; ++k) to[k] += weight * (a[k] - w[(b * kColumns + j) * kDepth + k]);
                    }
                }
#pragma omp parallel for collapse(2)
            for (long b = 0; b < kBatch; ++b)
                for (long j = 0; j < kColumns; ++j) {
                    float* to = dw + (b * kColumns + j) * kDepth;
                    const float* a = w + (b * kColumns + j) * kDepth;
                    for (long k = 0; k < kDepth; ++k) to[k] = 0;
                    for (long i = 0; i < kRows; ++i) {
                        const float weight = -2 * d[(b * kRows + i) * kColumns + j];
                        for (long k = 0; k < kDepth; ++k) to[k] += weight * (q[(b * kRows + i) * kDepth + k] - a[k]);
                    }
                }
        }
    };
}

direct::Run blur(long size) {
    const float *x = direct::randn(size * size), *w = direct::randn(9);
    float* y = direct::randn(size * size);
    const long out = size - 2;
    return [=](long calls) {
        for (long n = 0; n < calls; ++n) {
#pragma omp parallel for
            for (long i = 0; i < out; ++i)
                for (long j = 0; j < out; ++j) {
                    float sum = 0;
                    for (long p = 0; p < 3; ++p)
                        for (long q = 0; q < 3; ++q) sum += x[(i + p) * size + j + q] * w[p * 3 + q];
                    y[i * out + j] = sum;
                }
        }
    };
}

direct::Run blur_grad(long size) {
    const float *x = direct::randn(size * size), *w = direct::randn(9);
    const long out = size - 2, wide = size + 2;
    const float* d = direct::randn(out * out);
    float *dx = direct::randn(size * size), *dw = direct::randn(9), *padded = direct::randn(wide * wide);
    return [=](long calls) {
        for (long n = 0; n < calls; ++n) {
            // The cotangent with zeros around it, so that every element of x has all nine points.
#pragma omp parallel for
            for (long i = 0; i < wide; ++i)
                for (long j = 0; j < wide; ++j) {
                    const bool inside = i >= 2 && i < out + 2 && j >= 2 && j < out + 2;
                    padded[i * wide + j] = inside ? d[(i - 2) * out + j - 2] : 0;
                }
#pragma omp parallel for
            for (long i = 0; i < size; ++i)
                for (long j = 0; j < size; ++j) {
                    float sum = 0;
                    for (long p = 0; p < 3; ++p)
                        for (long q = 0; q < 3; ++q) sum += padded[(i + p) * wide + j + q] * w[(2 - p) * 3 + 2 - q];
                    dx[i * size + j] = sum;
                }
            for (long p = 0; p < 3; ++p)
                for (long q = 0; q < 3; ++q) {
                    float sum = 0;
#pragma omp parallel for reduction(+ : sum)
                    for (long i = 0; i < out; ++i)
                        for (long j = 0; j < out; ++j) sum += x[(i + p) * size + j + q] * d[i * out + j];
                    dw[p * 3 + q] = sum;
                }
        }
    };
}

}  // namespace

int main() {
    return direct::serve({{"scores", scores},
                          {"distances", distances},
                          {"distances_grad", distances_grad},
                          {"blur_256", [] { return blur(256); }},
                          {"blur_1024", [] { return blur(1024); }},
                          {"blur_grad_256", [] { return blur_grad(256); }},
                          {"blur_grad_1024", [] { return blur_grad(1024); }}});
}
