// The state of writing one kernel: LLVM's builder, the number of lanes, the dtype of what is computed at the moment.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "core/dtype.h"

namespace lunaria::codegen {

class Emission {
  public:
    Emission(llvm::Module& module, int lanes, int register_bytes)
        : module(module),
          builder(module.getContext()),
          lanes(lanes),
          fused(register_bytes >= 32),
          avx512(register_bytes == 64) {}

    llvm::Module& module;
    llvm::IRBuilder<> builder;
    const int lanes;
    const bool fused, avx512;  // the processor has fma and conversions of halves; the instructions of AVX-512

    // A product and a sum that are both marked so may be joined, which rounds once instead of twice. Formulas give the
    // bits that they give elsewhere, so of sums only those of reductions are marked.
    static llvm::Value* contracted(llvm::Value* v) {
        if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(v)) instruction->setHasAllowContract(true);
        return v;
    }

    // What a lane holds in a register: booleans are single bits, bfloat16 its 16 bits.
    llvm::Type* lane_type(DType t);
    llvm::Type* vector_type(DType t) { return llvm::FixedVectorType::get(lane_type(t), static_cast<unsigned>(lanes)); }
    llvm::Value* constant(DType t, double number, int64_t integer);
    llvm::Value* spread(llvm::Value* scalar) { return builder.CreateVectorSplat(static_cast<unsigned>(lanes), scalar); }
    // A vector of `from` as one of `to`; nullptr where there is no such conversion.
    llvm::Value* convert(llvm::Value* v, DType from, DType to);

  private:
    llvm::Value* half_to_float(llvm::Value* v);
    llvm::Value* float_to_half(llvm::Value* v);
    llvm::Value* bfloat_to_float(llvm::Value* v);
    llvm::Value* float_to_bfloat(llvm::Value* v);
};

}  // namespace lunaria::codegen
