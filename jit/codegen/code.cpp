#include "jit/codegen/code.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cassert>
#include <numeric>

#include "jit/codegen/emission.h"

namespace lunaria::codegen {

namespace {

Emission*& writing_slot() {
    static thread_local Emission* current = nullptr;
    return current;
}

Emission& emission() { return Writing::current(); }
llvm::IRBuilder<>& builder() { return emission().builder; }

bool is_float(llvm::Value* x) { return x->getType()->isFPOrFPVectorTy(); }
int lanes_of(llvm::Value* x) {
    return static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
}
llvm::Value* whole_constant(llvm::Value* like, uint64_t number) {
    return llvm::ConstantInt::get(like->getType(), number);
}

// The lanes first .. first + count of x; those behind its end are left open.
llvm::Value* piece(llvm::Value* x, int first, int count) {
    std::vector<int> order(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) order[static_cast<size_t>(i)] = first + i < lanes_of(x) ? first + i : -1;
    return builder().CreateShuffleVector(x, order);
}
// f of parts of x and y (y may be null) of `count` lanes each, put together again.
template <class F>
llvm::Value* in_pieces(llvm::Value* x, llvm::Value* y, int count, F f) {
    const int lanes = lanes_of(x);
    if (lanes == count) return f(x, y);
    std::vector<llvm::Value*> parts;
    for (int first = 0; first < lanes; first += count)
        parts.push_back(f(piece(x, first, count), y ? piece(y, first, count) : nullptr));
    llvm::Value* all = llvm::concatenateVectors(builder(), parts);
    return lanes < count ? piece(all, 0, lanes) : all;
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

namespace write {

Value constant(DType t, double x) {
    return emission().constant(t, x, lunaria::is_float(t) ? 0 : static_cast<int64_t>(x));
}
Value add(Value a, Value b) { return is_float(a) ? builder().CreateFAdd(a, b) : builder().CreateAdd(a, b); }
Value sub(Value a, Value b) { return is_float(a) ? builder().CreateFSub(a, b) : builder().CreateSub(a, b); }
// A reduction may take the product into its sum; no other sum is marked so.
Value mul(Value a, Value b) {
    return is_float(a) ? Emission::contracted(builder().CreateFMul(a, b)) : builder().CreateMul(a, b);
}
Value div(Value a, Value b) { return builder().CreateFDiv(a, b); }
Value neg(Value a) { return is_float(a) ? builder().CreateFNeg(a) : builder().CreateNeg(a); }
Value bit_and(Value a, Value b) { return builder().CreateAnd(a, b); }
Value bit_or(Value a, Value b) { return builder().CreateOr(a, b); }
Value bit_xor(Value a, Value b) { return builder().CreateXor(a, b); }
Value bit_not(Value a) { return builder().CreateNot(a); }

// By more places than there are (a negative number is many) nothing is left but the sign.
Value shift_left(Value a, Value b) {
    const uint64_t bits = a->getType()->getScalarSizeInBits();
    Value shifted = builder().CreateShl(a, builder().CreateAnd(b, whole_constant(b, bits - 1)));
    Value inside = builder().CreateICmpULT(b, whole_constant(b, bits));
    return builder().CreateSelect(inside, shifted, llvm::Constant::getNullValue(a->getType()));
}
Value shift_right(Value a, Value b, bool with_sign) {
    const uint64_t bits = a->getType()->getScalarSizeInBits();
    Value inside = builder().CreateICmpULT(b, whole_constant(b, bits));
    if (with_sign) return builder().CreateAShr(a, builder().CreateSelect(inside, b, whole_constant(b, bits - 1)));
    Value shifted = builder().CreateLShr(a, builder().CreateAnd(b, whole_constant(b, bits - 1)));
    return builder().CreateSelect(inside, shifted, llvm::Constant::getNullValue(a->getType()));
}

Value compare(Order order, Value a, Value b, bool with_sign) {
    using P = llvm::CmpInst::Predicate;
    constexpr P floats[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT, P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
    constexpr P signs[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_SLT, P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
    constexpr P none[] = {P::ICMP_EQ, P::ICMP_NE, P::ICMP_ULT, P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
    const auto i = static_cast<size_t>(order);
    return is_float(a) ? builder().CreateFCmp(floats[i], a, b)
                       : builder().CreateICmp(with_sign ? signs[i] : none[i], a, b);
}
Value select(Value mask, Value a, Value b) { return builder().CreateSelect(mask, a, b); }

Value unary(Unary which, Value x) {
    constexpr llvm::Intrinsic::ID ids[] = {llvm::Intrinsic::fabs, llvm::Intrinsic::sqrt,  llvm::Intrinsic::floor,
                                           llvm::Intrinsic::ceil, llvm::Intrinsic::trunc, llvm::Intrinsic::rint};
    return builder().CreateUnaryIntrinsic(ids[static_cast<size_t>(which)], x);
}
Value whole_abs(Value x) { return builder().CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, builder().getFalse()); }
Value copysign(Value magnitude, Value sign) {
    return builder().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}
Value fma(Value a, Value b, Value c) {
    return builder().CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value convert(Value x, DType from, DType to) { return emission().convert(x, from, to); }
Value bits_of(Value x, DType to) { return builder().CreateBitCast(x, emission().vector_type(to)); }

Value replace_where(Value fast, Value mask, const std::function<Value()>& slow) {
    if (auto* known = llvm::dyn_cast<llvm::Constant>(mask); known && known->isNullValue()) return fast;
    llvm::IRBuilder<>& b = builder();
    llvm::LLVMContext& context = emission().module.getContext();
    llvm::BasicBlock* before = b.GetInsertBlock();
    auto* inside = llvm::BasicBlock::Create(context, "slow", before->getParent());
    auto* after = llvm::BasicBlock::Create(context, "joined", before->getParent());
    b.CreateCondBr(b.CreateOrReduce(mask), inside, after);
    b.SetInsertPoint(inside);
    Value replaced = b.CreateSelect(mask, slow(), fast);
    llvm::BasicBlock* end = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    llvm::PHINode* result = b.CreatePHI(fast->getType(), 2);
    result->addIncoming(fast, before);
    result->addIncoming(replaced, end);
    return result;
}

Value each(const void* function, std::span<const Value> x) {
    llvm::IRBuilder<>& b = builder();
    std::string_view name;
    for (const libm::Function& f : libm::functions())
        if (f.address == function) name = f.name;
    llvm::Type* lane = x[0]->getType()->getScalarType();
    auto* type = llvm::FunctionType::get(lane, std::vector<llvm::Type*>(x.size(), lane), false);
    llvm::FunctionCallee callee = emission().module.getOrInsertFunction(name, type);
    Value result = llvm::PoisonValue::get(x[0]->getType());
    for (int i = 0; i < lanes_of(x[0]); ++i) {
        const auto at = static_cast<uint64_t>(i);
        std::vector<Value> args;
        for (Value v : x) args.push_back(b.CreateExtractElement(v, at));
        result = b.CreateInsertElement(result, b.CreateCall(callee, args), at);
    }
    return result;
}

Value wide(Wide which, Value x, Value y, int table) {
    constexpr int kCurrentRounding = 4, kMantissaFrom1To2WithoutSign = 4;
    const bool twice = x->getType()->getScalarSizeInBits() == 64;
    return in_pieces(x, y, twice ? 8 : 16, [&](Value a, Value c) -> Value {
        llvm::IRBuilder<>& b = builder();
        llvm::Type* type = a->getType();
        Value all = llvm::ConstantInt::getAllOnesValue(b.getIntNTy(twice ? 8 : 16));
        Value rounding = b.getInt32(kCurrentRounding);
        auto call = [&](llvm::Intrinsic::ID id, std::initializer_list<Value> args) {
            return b.CreateIntrinsic(type, id, std::vector<Value>(args));
        };
        switch (which) {
            case Wide::scalef:
                return call(twice ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                                  : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                            {a, c, a, all, rounding});
            case Wide::getexp:
                return call(llvm::Intrinsic::x86_avx512_mask_getexp_ps_512, {a, a, all, rounding});
            case Wide::getmant:
                return call(llvm::Intrinsic::x86_avx512_mask_getmant_ps_512,
                            {a, b.getInt32(kMantissaFrom1To2WithoutSign), a, all, rounding});
            case Wide::rcp14:
                return call(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {a, a, all});
            case Wide::rsqrt14:
                return call(llvm::Intrinsic::x86_avx512_rsqrt14_ps_512, {a, a, all});
            case Wide::fixup: {
                Value codes = b.CreateVectorSplat(16, b.getInt32(static_cast<uint32_t>(table)));
                return call(llvm::Intrinsic::x86_avx512_mask_fixupimm_ps_512,
                            {a, c, codes, b.getInt32(0), all, rounding});
            }
        }
        return nullptr;
    });
}

Value lookup(Value place, std::span<const float, 32> numbers) {
    return in_pieces(place, nullptr, 16, [&](Value at, Value) -> Value {
        llvm::IRBuilder<>& b = builder();
        auto half = [&](size_t first) {
            return llvm::ConstantDataVector::get(b.getContext(), llvm::ArrayRef<float>(numbers.data() + first, 16));
        };
        Value low = half(0), high = half(16);
        return b.CreateIntrinsic(low->getType(), llvm::Intrinsic::x86_avx512_vpermi2var_ps_512, {low, at, high});
    });
}

bool fuses() { return emission().fused; }
bool has_avx512() { return emission().avx512; }

}  // namespace write

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

// As the eager loops do it where the processor has no instruction for it.
llvm::Value* Emission::half_to_float(llvm::Value* v) {
    using Bits = Code<int32_t>;
    const Bits word = builder.CreateZExt(builder.CreateBitCast(v, vector_type(DType::i16)), vector_type(DType::i32));
    const Bits rest = word & Bits(0x7fff), high = codegen::shift_left(rest, 13);
    const Bits small = bits_of(Code<float>(convert(rest.v, DType::i32, DType::f32)) * Code<float>(0x1p-24));
    const Bits large = select(rest >= Bits(0x7c00), high | Bits(0x7f800000), high + Bits(112 << 23));
    return float_of(select(rest < Bits(0x400), small, large) | codegen::shift_left(word & Bits(0x8000), 16)).v;
}
llvm::Value* Emission::float_to_half(llvm::Value* v) {
    using Bits = Code<int32_t>;
    const Bits word = bits_of(Code<float>(v)), size = word & Bits(0x7fffffff);
    // Below the smallest normal half: adding 0.5 leaves the rounded value in the lowest bits.
    const Bits small = bits_of(float_of(size) + Code<float>(0.5)) - Bits(0x3f000000);
    const Bits odd = codegen::shift_right(size, 13) & Bits(1);
    const Bits normal = codegen::shift_right(size - Bits(0x37fff001) + odd, 13);
    Bits half = select(size < Bits(0x38800000), small, normal);
    half = select(size >= Bits(0x477ff000), Bits(0x7c00), half);
    half = select(size > Bits(0x7f800000), Bits(0x7e00), half);
    half = half | (codegen::shift_right(word, 16) & Bits(0x8000));
    return builder.CreateBitCast(builder.CreateTrunc(half.v, vector_type(DType::i16)), vector_type(DType::f16));
}

llvm::Value* Emission::convert(llvm::Value* v, DType from, DType to) {
    if (from == to) return v;
    if (!fused && from == DType::f16) return convert(half_to_float(v), DType::f32, to);
    if (!fused && to == DType::f16) {
        llvm::Value* single = convert(v, from, DType::f32);
        return single ? float_to_half(single) : nullptr;
    }
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
