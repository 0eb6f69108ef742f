#include "jit/codegen/code.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cassert>

#include "jit/codegen/emission.h"

namespace lunaria::codegen {

namespace {

Emission*& writing_slot() {
    static thread_local Emission* current = nullptr;
    return current;
}

Emission& emission() { return Writing::current(); }
llvm::IRBuilder<>& builder() { return emission().builder; }

bool is_float(const Code& x) { return x.v->getType()->isFPOrFPVectorTy(); }
bool has_sign() { return emission().dtype != DType::u8 && emission().dtype != DType::boolean; }

llvm::Type* bits_type(const Code& x) {
    llvm::Type* type = x.v->getType();
    llvm::Type* lane = llvm::Type::getIntNTy(type->getContext(), type->getScalarSizeInBits());
    return llvm::FixedVectorType::get(lane, llvm::cast<llvm::FixedVectorType>(type)->getNumElements());
}

Code unary(llvm::Intrinsic::ID id, Code x) { return builder().CreateUnaryIntrinsic(id, x.v); }

Mask compare(Code a, Code b, llvm::CmpInst::Predicate floats, llvm::CmpInst::Predicate with_sign,
             llvm::CmpInst::Predicate without) {
    if (is_float(a)) return {builder().CreateFCmp(floats, a.v, b.v)};
    return {builder().CreateICmp(has_sign() ? with_sign : without, a.v, b.v)};
}

}  // namespace

Writing::Writing(Emission& e) : outer_(writing_slot()) { writing_slot() = &e; }
Writing::~Writing() { writing_slot() = outer_; }
Emission& Writing::current() {
    assert(writing_slot());
    return *writing_slot();
}

Mask operator&(Mask a, Mask b) { return {builder().CreateAnd(a.v, b.v)}; }
Mask operator|(Mask a, Mask b) { return {builder().CreateOr(a.v, b.v)}; }
Mask operator!=(Mask a, Mask b) { return {builder().CreateXor(a.v, b.v)}; }
Mask operator!(Mask a) { return {builder().CreateNot(a.v)}; }

Code::Code(double x) : v(emission().constant(emission().dtype, x, static_cast<int64_t>(x == x ? x : 0))) {}

Code operator+(Code a, Code b) { return is_float(a) ? builder().CreateFAdd(a.v, b.v) : builder().CreateAdd(a.v, b.v); }
Code operator-(Code a, Code b) { return is_float(a) ? builder().CreateFSub(a.v, b.v) : builder().CreateSub(a.v, b.v); }
Code operator*(Code a, Code b) { return is_float(a) ? builder().CreateFMul(a.v, b.v) : builder().CreateMul(a.v, b.v); }
Code operator/(Code a, Code b) { return builder().CreateFDiv(a.v, b.v); }
Code operator-(Code a) { return is_float(a) ? builder().CreateFNeg(a.v) : builder().CreateNeg(a.v); }
Code operator&(Code a, Code b) { return builder().CreateAnd(a.v, b.v); }
Code operator|(Code a, Code b) { return builder().CreateOr(a.v, b.v); }
Code operator^(Code a, Code b) { return builder().CreateXor(a.v, b.v); }

using P = llvm::CmpInst::Predicate;
Mask operator==(Code a, Code b) { return compare(a, b, P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ); }
Mask operator!=(Code a, Code b) { return compare(a, b, P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE); }
Mask operator<(Code a, Code b) { return compare(a, b, P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT); }
Mask operator<=(Code a, Code b) { return compare(a, b, P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE); }
Mask operator>(Code a, Code b) { return compare(a, b, P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT); }
Mask operator>=(Code a, Code b) { return compare(a, b, P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE); }

Code select(Mask m, Code a, Code b) { return builder().CreateSelect(m.v, a.v, b.v); }

Code abs(Code x) {
    if (is_float(x)) return unary(llvm::Intrinsic::fabs, x);
    if (!has_sign()) return x;
    return builder().CreateBinaryIntrinsic(llvm::Intrinsic::abs, x.v, builder().getFalse());
}
Code sqrt(Code x) { return unary(llvm::Intrinsic::sqrt, x); }
Code floor(Code x) { return unary(llvm::Intrinsic::floor, x); }
Code ceil(Code x) { return unary(llvm::Intrinsic::ceil, x); }
Code trunc(Code x) { return unary(llvm::Intrinsic::trunc, x); }
Code rint(Code x) { return unary(llvm::Intrinsic::rint, x); }
Code copysign(Code magnitude, Code sign) {
    return builder().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v);
}

Code bits_of(Code x) { return builder().CreateBitCast(x.v, bits_type(x)); }
Code float_of(Code bits) { return builder().CreateBitCast(bits.v, emission().vector_type(emission().dtype)); }
Code bit_constant(uint64_t bits) {
    Emission& e = emission();
    llvm::Type* lane = llvm::Type::getIntNTy(e.module.getContext(), is_double() ? 64 : 32);
    return e.spread(llvm::ConstantInt::get(lane, bits));
}
Code shift_left(Code bits, int count) { return builder().CreateShl(bits.v, static_cast<uint64_t>(count)); }
Code shift_right(Code bits, int count) { return builder().CreateLShr(bits.v, static_cast<uint64_t>(count)); }
bool is_double() { return emission().dtype == DType::f64; }

Code scaled(Code x, Code n) {
    Emission& e = emission();
    const int bytes = e.lanes * (is_double() ? 8 : 4);
    if (!e.avx512 || bytes != 64) return Code();
    llvm::IRBuilder<>& b = e.builder;
    constexpr uint32_t current_rounding = 4;
    if (is_double())
        return b.CreateIntrinsic(x.v->getType(), llvm::Intrinsic::x86_avx512_mask_scalef_pd_512,
                                 {x.v, n.v, x.v, b.getInt8(0xff), b.getInt32(current_rounding)});
    return b.CreateIntrinsic(x.v->getType(), llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                             {x.v, n.v, x.v, b.getInt16(0xffff), b.getInt32(current_rounding)});
}

Code unless_any(Mask m, Code fast, const char* function, Code x) {
    Emission& e = emission();
    llvm::IRBuilder<>& b = e.builder;
    llvm::LLVMContext& context = e.module.getContext();
    llvm::Function* here = b.GetInsertBlock()->getParent();
    auto* slow = llvm::BasicBlock::Create(context, "outside", here);
    auto* after = llvm::BasicBlock::Create(context, "inside", here);
    llvm::BasicBlock* before = b.GetInsertBlock();
    b.CreateCondBr(b.CreateOrReduce(m.v), slow, after);
    b.SetInsertPoint(slow);
    llvm::Type* lane = x.v->getType()->getScalarType();
    auto one = [&](llvm::Value* number) -> llvm::Value* {
        if (e.outside) return e.outside(e, function, number);
        return b.CreateCall(e.module.getOrInsertFunction(function, lane, lane), {number});
    };
    llvm::Value* exact = x.v;
    for (int i = 0; i < e.lanes; ++i) {
        auto at = static_cast<uint64_t>(i);
        exact = b.CreateInsertElement(exact, one(b.CreateExtractElement(x.v, at)), at);
    }
    slow = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    llvm::PHINode* result = b.CreatePHI(x.v->getType(), 2);
    result->addIncoming(fast.v, before);
    result->addIncoming(exact, slow);
    return result;
}

namespace {
unsigned bytes_of(DType t) {
    switch (t) {
        case DType::u8:
        case DType::i8:
            return 1;
        case DType::i16:
            return 2;
        case DType::i32:
            return 4;
        default:
            return 8;
    }
}
}  // namespace

llvm::Type* Emission::lane_type(DType t) {
    llvm::LLVMContext& c = module.getContext();
    switch (t) {
        case DType::boolean:
            return llvm::Type::getInt1Ty(c);
        case DType::f16:
            return llvm::Type::getHalfTy(c);
        case DType::bf16:
            return llvm::Type::getInt16Ty(c);
        case DType::f32:
            return llvm::Type::getFloatTy(c);
        case DType::f64:
            return llvm::Type::getDoubleTy(c);
        default:
            return llvm::Type::getIntNTy(c, bytes_of(t) * 8);
    }
}

llvm::Value* Emission::constant(DType t, double number, int64_t integer) {
    llvm::Type* lane = lane_type(t);
    if (t == DType::boolean) return spread(llvm::ConstantInt::get(lane, number != 0));
    if (t == DType::bf16) return spread(llvm::ConstantInt::get(lane, BFloat16(static_cast<float>(number)).bits));
    if (lane->isFloatingPointTy()) return spread(llvm::ConstantFP::get(lane, number));
    return spread(llvm::ConstantInt::get(lane, static_cast<uint64_t>(integer), true));
}

llvm::Value* Emission::bfloat_to_float(llvm::Value* v) {
    llvm::Type* words = llvm::FixedVectorType::get(builder.getInt32Ty(), static_cast<unsigned>(lanes));
    return builder.CreateBitCast(builder.CreateShl(builder.CreateZExt(v, words), 16), vector_type(DType::f32));
}

// To nearest even; a NaN keeps its sign and gets the quiet bit, as rounding could carry it into infinity.
llvm::Value* Emission::float_to_bfloat(llvm::Value* v) {
    llvm::Type* words = llvm::FixedVectorType::get(builder.getInt32Ty(), static_cast<unsigned>(lanes));
    auto word = [&](uint32_t x) { return llvm::ConstantInt::get(words, x); };
    llvm::Value* u = builder.CreateBitCast(v, words);
    llvm::Value* top = builder.CreateLShr(u, 16);
    llvm::Value* rounded =
        builder.CreateLShr(builder.CreateAdd(builder.CreateAdd(u, word(0x7fff)), builder.CreateAnd(top, word(1))), 16);
    llvm::Value* nan = builder.CreateFCmpUNO(v, v);
    llvm::Value* result = builder.CreateSelect(nan, builder.CreateOr(top, word(0x40)), rounded);
    return builder.CreateTrunc(result, vector_type(DType::bf16));
}

llvm::Value* Emission::convert(llvm::Value* v, DType from, DType to) {
    if (from == to) return v;
    llvm::Type* type = vector_type(to);
    if (from == DType::bf16) return convert(bfloat_to_float(v), DType::f32, to);
    if (to == DType::bf16) {
        llvm::Value* single = convert(v, from, DType::f32);
        return single ? float_to_bfloat(single) : nullptr;
    }
    const bool floating = lunaria::is_float(from);
    const bool with_sign = from != DType::u8 && from != DType::boolean;
    if (to == DType::boolean) {
        if (floating) return builder.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
        return builder.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    }
    if (lunaria::is_float(to)) {
        if (floating) return builder.CreateFPCast(v, type);
        return with_sign ? builder.CreateSIToFP(v, type) : builder.CreateUIToFP(v, type);
    }
    if (floating) return nullptr;
    return builder.CreateIntCast(v, type, with_sign);
}

}  // namespace lunaria::codegen
