// What the library of the code generator (jit/codegen/, liblunaria_codegen.so) offers to those who load it.
#pragma once

#include <cstddef>

#include "jit/graph/thread_loop.h"

namespace lunaria::graph {

// Counted up whenever the same program gives other machine code: part of the key of cached kernels.
inline constexpr int kGeneratorVersion = 2;

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

}  // namespace lunaria::graph
