#include "jit/codegen/far_angles.h"

#include <array>
#include <numbers>
#include <string>

namespace lunaria::codegen {

namespace {

// 2 / pi = 0.A2F9836E..., 32 bits a word; the first word is the integer part.
constexpr std::array<uint32_t, 8> kTwoOverPi{0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                             0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

// Writes the function: the angle in quadrants is a product with as many bits of 2 / pi as matter (M. Payne and R.
// Hanek, "Radian reduction for trigonometric functions", 1983); then series of doubles.
class FarAngle {
  public:
    FarAngle(llvm::Module& module, std::string_view function)
        : module_(module), b_(module.getContext()), name_(function) {}

    llvm::Function* write(const std::string& symbol) {
        auto* type = llvm::FunctionType::get(b_.getFloatTy(), {b_.getFloatTy()}, false);
        auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, symbol, module_);
        f->addFnAttr(llvm::Attribute::NoUnwind);
        f->addFnAttr(llvm::Attribute::NoInline);
        b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", f));
        b_.CreateRet(value(f->getArg(0)));
        return f;
    }

  private:
    llvm::Value* word(uint64_t x) { return b_.getInt64(x); }
    llvm::Value* number(double x) { return llvm::ConstantFP::get(b_.getDoubleTy(), x); }

    llvm::Value* value(llvm::Value* x) {
        llvm::Value* bits = b_.CreateZExt(b_.CreateBitCast(x, b_.getInt32Ty()), b_.getInt64Ty());
        llvm::Value* negative = b_.CreateICmpNE(b_.CreateAnd(bits, word(0x80000000)), word(0));
        llvm::Value* power = b_.CreateAnd(b_.CreateLShr(bits, 23), word(0xff));
        llvm::Value* mantissa = b_.CreateShl(b_.CreateOr(b_.CreateAnd(bits, word(0x7fffff)), word(0x800000)), 8);
        // |x| = mantissa * 2^(e - 31). A number below 1 is an angle already.
        llvm::Value* small = b_.CreateICmpULT(power, word(127));
        llvm::Value* e = b_.CreateSelect(small, word(1), b_.CreateSub(power, word(127)));
        llvm::Value *quadrant = nullptr, *angle = nullptr;
        reduce(mantissa, e, quadrant, angle);
        llvm::Value* itself = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b_.CreateFPExt(x, b_.getDoubleTy()));
        // A small angle needs no reduction: up to 1 the series converge to a float's accuracy.
        angle = b_.CreateSelect(small, itself, angle);
        quadrant = b_.CreateSelect(small, word(0), quadrant);
        llvm::Value* result = b_.CreateFPTrunc(turned(angle, quadrant, negative), b_.getFloatTy());
        llvm::Value* infinite = b_.CreateICmpEQ(power, word(255));
        return b_.CreateSelect(infinite, llvm::ConstantFP::getNaN(b_.getFloatTy()), result);
    }

    // With e = 32 q + s and 1 <= s <= 32, the words of 2 / pi before the q-th only contribute whole turns, and those
    // after the next three less than 2^-94 quadrants.
    void reduce(llvm::Value* mantissa, llvm::Value* e, llvm::Value*& quadrant, llvm::Value*& angle) {
        llvm::Type* wide = b_.getInt128Ty();
        llvm::Value* at_least = b_.CreateSelect(b_.CreateICmpULT(e, word(1)), word(0), b_.CreateSub(e, word(1)));
        llvm::Value* q = b_.CreateLShr(at_least, 5);
        llvm::Value* s = b_.CreateSub(e, b_.CreateShl(q, 5));
        llvm::Value* product = llvm::ConstantInt::get(wide, 0);
        for (size_t k = 0; k < 4; ++k) {
            llvm::Value* factor = word(kTwoOverPi[k]);
            for (size_t i = 1; i < 4; ++i)
                factor = b_.CreateSelect(b_.CreateICmpEQ(q, word(i)), word(kTwoOverPi[i + k]), factor);
            llvm::Value* part = b_.CreateZExt(b_.CreateMul(mantissa, factor), wide);
            product = b_.CreateAdd(product, b_.CreateShl(part, 32 * (3 - k)));
        }
        // From here on 2^128 are four quadrants. s = 0 occurs only with e = 0; the product is then half of what the
        // shift below assumes.
        llvm::Value* none = b_.CreateICmpEQ(s, word(0));
        llvm::Value* shift = b_.CreateSelect(none, word(0), b_.CreateSub(s, word(1)));
        llvm::Value* turns = b_.CreateShl(product, b_.CreateZExt(shift, wide));
        turns = b_.CreateSelect(none, b_.CreateLShr(turns, 1), turns);
        llvm::Value* half = b_.CreateShl(llvm::ConstantInt::get(wide, 1), 125);
        llvm::Value* nearest = b_.CreateLShr(b_.CreateAdd(turns, half), 126);
        llvm::Value* rest = b_.CreateSub(turns, b_.CreateShl(nearest, 126));
        quadrant = b_.CreateTrunc(nearest, b_.getInt64Ty());
        llvm::Value* top = b_.CreateTrunc(b_.CreateAShr(rest, 64), b_.getInt64Ty());
        angle = b_.CreateFMul(b_.CreateSIToFP(top, b_.getDoubleTy()), number(0x1p-62 * std::numbers::pi / 2));
    }

    // The sum of (-z)^i / (2i + first)!, from its last term on.
    llvm::Value* series(llvm::Value* z, int first) {
        llvm::Value* sum = number(1);
        for (int i = 8; i >= 1; --i) {
            const double divisor = (2.0 * i + first - 1) * (2.0 * i + first);
            sum = b_.CreateFSub(number(1), b_.CreateFMul(b_.CreateFMul(z, number(1 / divisor)), sum));
        }
        return sum;
    }

    llvm::Value* turned(llvm::Value* angle, llvm::Value* quadrant, llvm::Value* negative) {
        llvm::Value* z = b_.CreateFMul(angle, angle);
        llvm::Value* sine = b_.CreateFMul(angle, series(z, 1));
        llvm::Value* cosine = series(z, 0);
        if (name_ == "cosf") quadrant = b_.CreateAdd(quadrant, word(1));
        llvm::Value* odd = b_.CreateICmpNE(b_.CreateAnd(quadrant, word(1)), word(0));
        llvm::Value* below = b_.CreateICmpNE(b_.CreateAnd(quadrant, word(2)), word(0));
        llvm::Value* v = b_.CreateSelect(odd, cosine, sine);
        llvm::Value* sign = b_.CreateXor(below, negative);
        if (name_ == "cosf") sign = below;
        if (name_ == "tanf") {
            v = b_.CreateFDiv(v, b_.CreateSelect(odd, b_.CreateFNeg(sine), cosine));
            sign = negative;
        }
        return b_.CreateSelect(sign, b_.CreateFNeg(v), v);
    }

    llvm::Module& module_;
    llvm::IRBuilder<> b_;
    const std::string_view name_;
};

}  // namespace

llvm::Value* far_angle(Emission& emission, std::string_view function, llvm::Value* x) {
    const std::string symbol = "far_" + std::string(function);
    llvm::Function* known = emission.module.getFunction(symbol);
    if (!known) known = FarAngle(emission.module, function).write(symbol);
    return emission.builder.CreateCall(known, {x});
}

}  // namespace lunaria::codegen
