// The interface of the code generator's library (jit/codegen/, liblunaria_codegen.so) for programs that load it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/loops/thread_loop.h"
#include "core/loops/thread_program.h"

namespace lunaria::graph {

// Increased whenever the same program gives other machine code: part of the key of cached kernels.
inline constexpr int kGeneratorVersion = 13;

// The name of the function in generated code.
inline constexpr const char* kLoopSymbol = "loop";

// Code of a loop program for the host. Pointers are those of the operands' first elements, `sizes` those of LoopTask
// (core/loops/graph_backend.h). The function computes rows row_begin .. row_end, and of each row the elements
// column_begin .. column_end (all of them where has_rows). `scratch`: memory of this thread.
using LoopFunction = void (*)(void* const* pointers, const int64_t* sizes, int64_t row_begin, int64_t row_end,
                              int64_t column_begin, int64_t column_end, void* scratch);

inline constexpr const char* kGenerateSymbol = "lunaria_generate";
inline constexpr const char* kVersionSymbol = "lunaria_generator_version";

// Passes the bytes of an object file with the function `symbol` to `sink`; false where the generator does not support
// the program. `target`: a level of instruction sets, x86-64-v2 to v4.
using GenerateFunction = bool (*)(const LoopProgram* program, const char* symbol, const char* target, void* context,
                                  void (*sink)(void* context, const char* bytes, size_t count));
using VersionFunction = int (*)();

// The same for a processor that runs threads in blocks. `target`: sm_80 and above (the bytes are PTX text), or a level
// of x86-64, where the function is an EmulatedKernel.
inline constexpr const char* kGenerateThreadsSymbol = "lunaria_generate_threads";
using GenerateThreadsFunction = bool (*)(const LoopProgram* program, const ThreadShape* shape, const char* symbol,
                                         const char* target, void* context,
                                         void (*sink)(void* context, const char* bytes, size_t count));

// The same for a thread program.
inline constexpr const char* kGenerateProgramSymbol = "lunaria_generate_program";
using GenerateProgramFunction = bool (*)(const ThreadProgram* program, const char* symbol, const char* target,
                                         void* context, void (*sink)(void* context, const char* bytes, size_t count));

}  // namespace lunaria::graph
