// Numbers that are code: arithmetic on them writes instructions of LLVM's intermediate form. With them the formulas of
// core/ops/formulas.h, written over any number type, become the bodies of generated kernels.
//
// A Code is a vector of as many lanes as the kernel works on at once. This header needs nothing of LLVM.
#pragma once

#include <cstdint>
#include <functional>

#include "core/ops/vector_math.h"
#include "core/tensor/dtype.h"

namespace llvm {
class Value;
}

namespace lunaria::codegen {

class Emission;

// The emission that operators write to, and the dtype of constants. A formula says T(0.5) and cannot pass a
// destination, so it finds this one. There is one per thread, while a kernel is written.
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

// The interface that core/ops/vector_math.h asks of a vector. Bits of floats are whole numbers of their size.
Code bits_of(Code x);
Code float_of(Code bits);
Code bits_like(Code x, uint64_t bits);  // in every lane
Code operator<<(Code bits, int count);
Code operator>>(Code bits, int count);  // zeros come in
Mask any_bit(Code x, Code bits);
Code at_least(Code x, double limit);
Code at_most(Code x, double limit);
bool is_double(Code x);  // the current dtype is f64; f32 otherwise
bool is_fused(Code x);
bool scales(Code x);
bool has_tables(Code x);
Code fma(Code a, Code b, Code c);
Code alone(Code x);
Code scaled(Code x, Code n);
Code where_rare(Mask m, Code usual, const std::function<Code()>& rare);
Code by_libm(vector_math::Libm function, Code x);
// The polynomial of one of 32 intervals: `rows` coefficients for all of them, low order first.
Code poly_of_interval(Code x, double width, const float* coefficients, int rows);
template <int Rows>
Code poly_from_table(Code x, double width, const float (&coefficients)[Rows][32]) {
    return poly_of_interval(x, width, coefficients[0], Rows);
}

}  // namespace lunaria::codegen
