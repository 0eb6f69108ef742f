// kSideBySide lines between memory and a transform; see FourierLines in fourier_loops.h.
#pragma once

#include "backends/cpu/simd/fourier_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

extern const FourierLines<float> lines_f32;
extern const FourierLines<double> lines_f64;
void halves_of_spectrum(SplitNumbers x, SplitNumbers turns, int64_t half, SplitNumbers to);
void halves_of_signal(SplitNumbers x, SplitNumbers turns, int64_t half, SplitNumbers to);

}  // namespace lunaria::cpu::LUNARIA_ISA
