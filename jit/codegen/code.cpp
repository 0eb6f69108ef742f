#include "jit/codegen/code.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <cassert>
#include <string>
#include <vector>

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
bool has_sign() { return lunaria::has_sign(emission().dtype); }

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
Code bits_like(Code x, uint64_t bits) {
    Emission& e = emission();
    return e.spread(llvm::ConstantInt::get(llvm::Type::getIntNTy(e.module.getContext(), is_double(x) ? 64 : 32), bits));
}
Code operator<<(Code bits, int count) { return builder().CreateShl(bits.v, static_cast<uint64_t>(count)); }
Code operator>>(Code bits, int count) { return builder().CreateLShr(bits.v, static_cast<uint64_t>(count)); }
Mask any_bit(Code, Code bits) {
    return {builder().CreateICmpNE(bits.v, llvm::Constant::getNullValue(bits.v->getType()))};
}

Code at_least(Code x, double limit) { return select(Code(limit) > x, Code(limit), x); }
Code at_most(Code x, double limit) { return select(Code(limit) < x, Code(limit), x); }

bool is_double(Code) { return emission().dtype == DType::f64; }
bool is_fused(Code) { return emission().register_bytes >= 32; }
bool scales(Code) { return emission().register_bytes == 64; }
bool has_tables(Code x) { return emission().register_bytes >= 32 && !is_double(x); }

Code fma(Code a, Code b, Code c) {
    return builder().CreateIntrinsic(a.v->getType(), llvm::Intrinsic::fma, {a.v, b.v, c.v});
}

Code alone(Code x) {
    if (auto* product = llvm::dyn_cast<llvm::BinaryOperator>(x.v);
        product && product->getOpcode() == llvm::Instruction::FMul)
        product->setHasAllowContract(false);
    return x;
}

namespace {

// The lanes first, first + 1 ... of a vector; lanes beyond its end are undefined.
llvm::Value* lanes_from(llvm::Value* v, int first, int count) {
    const auto there = static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
    std::vector<int> order;
    for (int lane = first; lane < first + count; ++lane) order.push_back(lane < there ? lane : -1);
    return builder().CreateShuffleVector(v, order);
}

// Processes vectors of any width by an instruction on whole registers.
template <size_t K, class F>
Code by_registers(const std::array<Code, K>& operands, int lanes, F&& on_register) {
    const int all = emission().lanes;
    llvm::Value* result = nullptr;
    for (int first = 0; first < all; first += lanes) {
        std::array<llvm::Value*, K> parts;
        for (size_t k = 0; k < K; ++k) parts[k] = lanes_from(operands[k].v, first, lanes);
        llvm::Value* part = on_register(parts);
        if (all <= lanes) return lanes_from(part, 0, all);
        // The parts so far are in the first lanes of both operands.
        part = lanes_from(part, 0, all);
        std::vector<int> order;
        for (int lane = 0; lane < all; ++lane) order.push_back(lane < first ? lane : all + lane - first);
        if (first > 0)
            for (int lane = first + lanes; lane < all; ++lane) order[static_cast<size_t>(lane)] = -1;
        result = result ? builder().CreateShuffleVector(result, part, order) : part;
    }
    return result;
}

}  // namespace

Code scaled(Code x, Code n) {
    llvm::IRBuilder<>& b = builder();
    constexpr uint32_t current_rounding = 4;
    const bool twice = is_double(x);
    return by_registers<2>({x, n}, twice ? 8 : 16, [&](const std::array<llvm::Value*, 2>& v) -> llvm::Value* {
        const auto id =
            twice ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
        llvm::Value* every = twice ? b.getInt8(0xff) : b.getInt16(0xffff);
        return b.CreateIntrinsic(id, {}, {v[0], v[1], v[0], every, b.getInt32(current_rounding)});
    });
}

Code poly_of_interval(Code x, double width, const float* coefficients, int rows) {
    llvm::IRBuilder<>& b = builder();
    const Code center = vector_math::rounder(x), shifted = fma(x, Code(1 / width), center);
    const Code t = fma(center - shifted, Code(width), x), interval = bits_of(shifted);
    const bool wide = emission().register_bytes == 64;
    // Narrower registers hold eight numbers each: bit 3 of the interval selects within a pair of them, bit 4 between
    // the results.
    auto has_bit = [&](uint64_t bit) { return any_bit(x, interval & bits_like(x, bit)); };
    const Mask second = has_bit(8), upper = has_bit(16);
    auto coefficient = [&](int k) -> Code {
        auto numbers = [&](int first, size_t count) {
            return llvm::ConstantDataVector::get(b.getContext(),
                                                 llvm::ArrayRef<float>(coefficients + 32 * k + first, count));
        };
        if (wide)
            return by_registers<1>({interval}, 16, [&](const std::array<llvm::Value*, 1>& v) -> llvm::Value* {
                return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_ps_512, {},
                                         {numbers(0, 16), v[0], numbers(16, 16)});
            });
        auto eight = [&](int first) {
            return by_registers<1>({interval}, 8, [&](const std::array<llvm::Value*, 1>& v) -> llvm::Value* {
                return b.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permps, {}, {numbers(first, 8), v[0]});
            });
        };
        return select(upper, select(second, eight(24), eight(16)), select(second, eight(8), eight(0)));
    };
    Code y = coefficient(rows - 1);
    for (int k = rows - 2; k >= 0; --k) y = fma(y, t, coefficient(k));
    return y;
}

Code where_rare(Mask m, Code usual, const std::function<Code()>& rare) {
    llvm::IRBuilder<>& b = builder();
    llvm::LLVMContext& context = b.getContext();
    llvm::Function* here = b.GetInsertBlock()->getParent();
    auto* slow = llvm::BasicBlock::Create(context, "rare", here);
    auto* after = llvm::BasicBlock::Create(context, "usual", here);
    llvm::BasicBlock* before = b.GetInsertBlock();
    b.CreateCondBr(b.CreateOrReduce(m.v), slow, after);
    b.SetInsertPoint(slow);
    const Code exact = select(m, rare(), usual);
    slow = b.GetInsertBlock();
    b.CreateBr(after);
    b.SetInsertPoint(after);
    llvm::PHINode* result = b.CreatePHI(usual.v->getType(), 2);
    result->addIncoming(usual.v, before);
    result->addIncoming(exact.v, slow);
    return result;
}

Code by_libm(vector_math::Libm function, Code x) {
    Emission& e = emission();
    llvm::IRBuilder<>& b = e.builder;
    using vector_math::Libm;
    std::string name = function == Libm::sin ? "sin" : function == Libm::cos ? "cos" : "tan";
    if (!is_double(x)) name += 'f';
    llvm::Type* lane = x.v->getType()->getScalarType();
    auto one = [&](llvm::Value* number) -> llvm::Value* {
        if (e.outside) return e.outside(e, name, number);
        return b.CreateCall(e.module.getOrInsertFunction(name, lane, lane), {number});
    };
    llvm::Value* exact = x.v;
    for (int i = 0; i < e.lanes; ++i) {
        const auto at = static_cast<uint64_t>(i);
        exact = b.CreateInsertElement(exact, one(b.CreateExtractElement(x.v, at)), at);
    }
    return exact;
}

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
            return llvm::Type::getIntNTy(c, static_cast<unsigned>(size_of(t)) * 8);
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

// Rounds to nearest even; a NaN keeps its sign and gets the quiet bit, since rounding could carry it into infinity.
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

// Floats beyond the integers of 64 bits become the nearest one, and NaN becomes 0; narrower integers are the lowest
// bits of those. Unsigned results of at least 2^63 are converted without a sign.
llvm::Value* Emission::float_to_integer(llvm::Value* v, DType from, DType to) {
    if (from == DType::f16) return float_to_integer(convert(v, from, DType::f32), DType::f32, to);
    llvm::Type *wide = vector_type(DType::i64), *type = v->getType();
    llvm::Value* number = builder.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {wide, type}, {v});
    if (to == DType::u64) {
        llvm::Value* large = builder.CreateIntrinsic(llvm::Intrinsic::fptoui_sat, {wide, type}, {v});
        number = builder.CreateSelect(builder.CreateFCmpOGE(v, llvm::Constant::getNullValue(type)), large, number);
    }
    return builder.CreateTrunc(number, vector_type(to));
}

llvm::Value* Emission::convert(llvm::Value* v, DType from, DType to) {
    if (from == to) return v;
    llvm::Type* type = vector_type(to);
    if (from == DType::bf16) return convert(bfloat_to_float(v), DType::f32, to);
    if (to == DType::bf16) {
        llvm::Value* single = convert(v, from, DType::f32);
        return single ? float_to_bfloat(single) : nullptr;
    }
    // Converts to halves in two steps, as numbers of C++ are converted.
    if (to == DType::f16 && from != DType::f32 && from != DType::boolean)
        return convert(convert(v, from, DType::f32), DType::f32, to);
    const bool floating = lunaria::is_float(from);
    const bool with_sign = lunaria::has_sign(from);
    if (to == DType::boolean) {
        if (floating) return builder.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
        return builder.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    }
    if (lunaria::is_float(to)) {
        if (floating) return builder.CreateFPCast(v, type);
        return with_sign ? builder.CreateSIToFP(v, type) : builder.CreateUIToFP(v, type);
    }
    if (floating) return float_to_integer(v, from, to);
    return builder.CreateIntCast(v, type, with_sign);
}

}  // namespace lunaria::codegen
