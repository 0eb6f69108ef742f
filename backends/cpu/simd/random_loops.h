// Random numbers by whole Philox blocks of four words; see backends/cpu/random.cpp, whose loops these must match.
#pragma once

#include <cstdint>

namespace lunaria::cpu::LUNARIA_ISA {

void uniform_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
void normal_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
void dropout_blocks(const float* x, float* out, uint8_t* mask, uint64_t key, uint64_t counter, uint64_t first,
                    int64_t blocks, uint32_t limit, float keep);
void uniform_f64_blocks(double* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
void normal_f64_blocks(double* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
void laplace_blocks(float* out, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);
void random_bits(uint64_t* out, int64_t stride, uint64_t key, uint64_t counter, uint64_t first, int64_t blocks);

}  // namespace lunaria::cpu::LUNARIA_ISA
