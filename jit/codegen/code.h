// Numbers that are code: arithmetic on them writes instructions of LLVM's intermediate form. The formulas of
// core/ops/formulas.h, written over any number type, become the bodies of generated kernels with these.
//
// A Code is a vector of as many lanes as the kernel works on at once. This header needs nothing of LLVM.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace llvm {
class Value;
}

namespace lunaria::codegen {

class Emission;

// Which emission the operators write to, and in which dtype constants are. A formula says T(0.5) and has no way to say
// where to: this is what it finds. One per thread, for the time that a kernel is written.
class Writing {
  public:
    explicit Writing(Emission& emission);
    ~Writing();
    Writing(const Writing&) = delete;
    static Emission& current();

  private:
    Emission* const outer_;
};

struct Mask {
    llvm::Value* v = nullptr;
    friend Mask operator&(Mask a, Mask b);
    friend Mask operator|(Mask a, Mask b);
    friend Mask operator!=(Mask a, Mask b);
    friend Mask operator!(Mask a);
};

struct Code {
    llvm::Value* v = nullptr;

    Code() = default;
    Code(llvm::Value* value) : v(value) {}
    explicit Code(double x);  // in every lane
    explicit Code(int x) : Code(static_cast<double>(x)) {}

    friend Code operator+(Code a, Code b);
    friend Code operator-(Code a, Code b);
    friend Code operator*(Code a, Code b);
    friend Code operator/(Code a, Code b);
    friend Code operator-(Code a);
    friend Code operator&(Code a, Code b);
    friend Code operator|(Code a, Code b);
    friend Code operator^(Code a, Code b);
    friend Mask operator==(Code a, Code b);
    friend Mask operator!=(Code a, Code b);
    friend Mask operator<(Code a, Code b);
    friend Mask operator<=(Code a, Code b);
    friend Mask operator>(Code a, Code b);
    friend Mask operator>=(Code a, Code b);
};

Code select(Mask m, Code a, Code b);

// Functions that are one instruction or two.
Code abs(Code x);
Code sqrt(Code x);
Code floor(Code x);
Code ceil(Code x);
Code trunc(Code x);
Code rint(Code x);
Code copysign(Code magnitude, Code sign);

// The bits of floats as integers of their size, and back.
Code bits_of(Code x);
Code float_of(Code bits);
Code bit_constant(uint64_t bits);  // an integer of the size of the current floats, in every lane
Code shift_left(Code bits, int count);
Code shift_right(Code bits, int count);  // zeros come in
bool is_double();                        // the current dtype is f64; f32 otherwise

// x * 2^n for any whole n in one instruction; no code (v is null) where the processor has none for these vectors.
Code scaled(Code x, Code n);

// Where any lane is set, the lanes of `x` under `function` of libm (one of floats); else `fast`.
Code unless_any(Mask m, Code fast, const char* function, Code x);

}  // namespace lunaria::codegen
