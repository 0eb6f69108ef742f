// What the library of the code generator (jit/codegen/, liblunaria_codegen.so) offers to those who load it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/loops/thread_loop.h"
#include "core/loops/thread_program.h"

namespace lunaria::graph {

// Counted up whenever the same program gives other machine code: part of the key of cached kernels.
inline constexpr int kGeneratorVersion = 12;

// The name of the function in generated code.
inline constexpr const char* kLoopSymbol = "loop";

// Code of a loop program for the host. Pointers are those of the operands' first elements, `sizes` those of LoopTask
// (core/loops/graph_backend.h). Rows row_begin .. row_end are done, of each row elements column_begin .. column_end
// (all of it where has_rows). `scratch`: memory of this thread.
using LoopFunction = void (*)(void* const* pointers, const int64_t* sizes, int64_t row_begin, int64_t row_end,
                              int64_t column_begin, int64_t column_end, void* scratch);

inline constexpr const char* kGenerateSymbol = "lunaria_generate";
inline constexpr const char* kVersionSymbol = "lunaria_generator_version";

// Hands the bytes of an object file with the function `symbol` to `sink`; false where the program asks for something
// that the generator can't do. `target`: a level of instruction sets, x86-64-v2 to v4.
using GenerateFunction = bool (*)(const LoopProgram* program, const char* symbol, const char* target, void* context,
                                  void (*sink)(void* context, const char* bytes, size_t count));
using VersionFunction = int (*)();

// The same for a processor that runs threads in blocks. `target`: sm_80 and above (the bytes are PTX text), or a level
// of x86-64, where the function is an EmulatedKernel.
inline constexpr const char* kGenerateThreadsSymbol = "lunaria_generate_threads";
using GenerateThreadsFunction = bool (*)(const LoopProgram* program, const ThreadShape* shape, const char* symbol,
                                         const char* target, void* context,
                                         void (*sink)(void* context, const char* bytes, size_t count));

// Likewise of a thread program.
inline constexpr const char* kGenerateProgramSymbol = "lunaria_generate_program";
using GenerateProgramFunction = bool (*)(const ThreadProgram* program, const char* symbol, const char* target,
                                         void* context, void (*sink)(void* context, const char* bytes, size_t count));

}  // namespace lunaria::graph
