// GEMM as OpenBLAS gives it to a C program: row-major, into memory that is there already.
#include <cblas.h>

#include "bench/direct.h"

static direct::Workload gemm(int m, int k, int n) {
    const std::string name = "matmul_" + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
    return {name, [=] {
                const float *a = direct::randn(std::size_t(m) * k), *b = direct::randn(std::size_t(k) * n);
                float* c = direct::randn(std::size_t(m) * n);
                return [=](long calls) {
                    for (long i = 0; i < calls; ++i) {
                        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
                    }
                };
            }};
}

int main() {
    return direct::serve({gemm(64, 64, 64), gemm(128, 128, 128), gemm(256, 256, 256), gemm(512, 512, 512),
                          gemm(1024, 1024, 1024), gemm(2048, 2048, 2048), gemm(64, 784, 512), gemm(64, 512, 256),
                          gemm(64, 512, 10), gemm(1, 784, 512), gemm(1024, 128, 512), gemm(1024, 512, 128),
                          gemm(32, 400, 120)});
}
