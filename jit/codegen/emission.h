// The state of writing one kernel: LLVM's builder, the number of lanes, the dtype of the present computation.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string_view>

#include "core/tensor/dtype.h"

namespace lunaria::codegen {

class Emission {
  public:
    Emission(llvm::Module& module, int lanes, int register_bytes)
        : module(module), builder(module.getContext()), lanes(lanes), register_bytes(register_bytes) {
        // Products and sums of one formula may be fused, which rounds once instead of twice; no other relaxation is
        // allowed.
        llvm::FastMathFlags flags;
        flags.setAllowContract();
        builder.setFastMathFlags(flags);
    }

    llvm::Module& module;
    llvm::IRBuilder<> builder;
    const int lanes;
    const int register_bytes;  // of the host's processors: 16, 32 (AVX2) or 64 (AVX-512); 0 for other processors
    // Code for a function of libm (sinf, cosf, tanf) of one number; null: libm is called.
    llvm::Value* (*outside)(Emission& emission, std::string_view function, llvm::Value* x) = nullptr;
    DType dtype = DType::f32;  // of constants, and whether integers have a sign

    // The type of a lane in a register: booleans are single bits, bfloat16 its 16 bits.
    llvm::Type* lane_type(DType t);
    llvm::Type* vector_type(DType t) { return llvm::FixedVectorType::get(lane_type(t), static_cast<unsigned>(lanes)); }
    llvm::Value* constant(DType t, double number, int64_t integer);
    llvm::Value* spread(llvm::Value* scalar) { return builder.CreateVectorSplat(static_cast<unsigned>(lanes), scalar); }
    // A vector of `from` as one of `to`; nullptr where there is no such conversion.
    llvm::Value* convert(llvm::Value* v, DType from, DType to);

  private:
    llvm::Value* bfloat_to_float(llvm::Value* v);
    llvm::Value* float_to_bfloat(llvm::Value* v);
    llvm::Value* float_to_integer(llvm::Value* v, DType from, DType to);
};

}  // namespace lunaria::codegen
