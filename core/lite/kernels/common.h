// Common parts of the light runtime's kernels: the choice of an instruction set, threads lent by the caller,
// activations.
//
// Kernels work on raw pointers and never allocate: memory beside the operands is scratch, whose size in bytes a
// function beside each kernel tells, and which begins at a multiple of 64. A kernel's result depends on neither the
// number of workers nor on what scratch holds. Integer kernels give the same bits with every instruction set; float
// kernels differ in the order of sums.
#pragma once

#include <cstdint>

namespace lunaria::lite::kernels {

// plain: the vector extension with registers of 16 bytes, for every processor (SSE of x86-64-v2, NEON of aarch64).
enum class Isa : uint8_t { plain, avx2, avx512, avx512vnni };
inline constexpr int kIsas = 4;
const char* name_of(Isa isa);
bool has(Isa isa);  // whether this program and this processor have it
Isa best_isa();     // the newest that is there; at most the one that the environment variable LUNARIA_ISA names

// Threads of the caller: run() calls task(closure, index, worker) once for each index below `count`, with worker
// numbers below `workers`, no two calls at once with the same number, and returns when all are done.
struct Workers {
    using Task = void (*)(void* closure, int64_t index, int worker);
    void (*run)(void* pool, int64_t count, Task task, void* closure) = nullptr;  // null: the calling thread does all
    void* pool = nullptr;
    int workers = 1;
};

enum class Activation : uint8_t {
    none,
    relu,
    relu6,
    clip,          // between alpha and beta
    leaky_relu,    // alpha x below zero
    elu,           // alpha (e^x - 1) below zero
    hard_sigmoid,  // clip(x / 6 + 1/2, 0, 1)
    hard_swish,    // x times that
    sigmoid,
    silu,
    gelu,       // by the normal distribution
    gelu_tanh,  // its approximation by tanh
    tanh,
    mish,
};

// The end of a product, for each element of the result in column (channel) j:
//   y = act(scale[j] * sum + bias[j] + residual), or act(scale[j] * sum + bias[j]) + residual
// with what is null left out. NaN stays NaN. The residual has the places of the result with a row length of its own; it
// may be the result's own memory.
struct Epilogue {
    const float* bias = nullptr;
    const float* scale = nullptr;
    const float* residual = nullptr;
    int64_t residual_row = 0;  // elements from a row (pixel) to the next
    Activation activation = Activation::none;
    bool residual_last = false;
    float alpha = 0, beta = 0;
};

// The float epilogue alone, on a matrix: y may be x.
void apply_epilogue(Isa isa, const Epilogue& epilogue, int64_t rows, int64_t columns, const float* x, int64_t x_row,
                    float* y, int64_t y_row);

// (batch, channels, pixels) to (batch, pixels, channels) and back: a transposition of matrices of elements of 1, 2 or 4
// bytes.
void transpose(Isa isa, int element_bytes, int64_t batch, int64_t rows, int64_t columns, const void* from, void* to,
               const Workers& workers = {});

}  // namespace lunaria::lite::kernels
