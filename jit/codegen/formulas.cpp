#include "jit/codegen/formulas.h"

#include <array>
#include <utility>

#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_compare.h"
#include "core/ops/formulas_gradient.h"
#include "core/ops/formulas_math.h"
#include "core/ops/formulas_special.h"
#include "jit/codegen/math.h"

namespace lunaria::codegen {

namespace {

namespace f = lunaria::formula;

// What core/loops/loop.cpp says that generated code may be made of.
using Written =
    f::Formulas<f::Add, f::Sub, f::Mul, f::Maximum, f::Minimum, f::Clamp, f::Fmax, f::Fmin, f::Abs, f::Neg, f::Square,
                f::Sign, f::Relu, f::Relu6, f::Equal, f::NotEqual, f::Less, f::LessEqual, f::Greater, f::GreaterEqual,
                f::Div, f::Sqrt, f::Rsqrt, f::Reciprocal, f::Floor, f::Ceil, f::Trunc, f::Round, f::Frac, f::Deg2rad,
                f::Rad2deg, f::Copysign, f::Lerp, f::Addcmul, f::Addcdiv, f::HuberElement, f::Heaviside, f::LeakyRelu,
                f::Hardsigmoid, f::Hardswish, f::Hardshrink, f::Softshrink, f::Threshold, f::Softsign, f::ReluGrad,
                f::TanhGrad, f::SigmoidGrad, f::Isnan, f::Isinf, f::Isposinf, f::Isneginf, f::Isfinite, f::Signbit,
                f::Xdivy, f::Exp, f::Exp2, f::Expm1, f::Log, f::Log2, f::Log10, f::Log1p, f::Logaddexp, f::Logaddexp2,
                f::Xlogy, f::Sinh, f::Cosh, f::Tanh, f::Asinh, f::Acosh, f::Atanh, f::Elu, f::Celu, f::Selu, f::Sigmoid,
                f::Logsigmoid, f::Silu, f::GeluTanh, f::FastGelu, f::Softplus, f::Mish, f::Tanhshrink, f::SiluGrad,
                f::GeluTanhGrad, f::Erf, f::Erfc, f::Gelu, f::GeluGrad, f::Asin, f::Acos, f::Atan, f::Atan2, f::Sin,
                f::Cos, f::Tan, f::LogicalAnd, f::LogicalOr, f::LogicalXor>;

template <class F, size_t... I>
llvm::Value* apply(std::span<llvm::Value* const> args, std::index_sequence<I...>) {
    return F{}(Code(args[I])...).v;
}
template <class F, size_t N>
constexpr bool takes() {
    return []<size_t... I>(std::index_sequence<I...>) {
        return requires(F formula, std::array<Code, N> a) { formula(a[I]...); };
    }
    (std::make_index_sequence<N>());
}
template <class F>
llvm::Value* apply(std::span<llvm::Value* const> args) {
    if constexpr (takes<F, 1>())
        if (args.size() == 1) return apply<F>(args, std::make_index_sequence<1>());
    if constexpr (takes<F, 2>())
        if (args.size() == 2) return apply<F>(args, std::make_index_sequence<2>());
    if constexpr (takes<F, 3>())
        if (args.size() == 3) return apply<F>(args, std::make_index_sequence<3>());
    if constexpr (takes<F, 4>())
        if (args.size() == 4) return apply<F>(args, std::make_index_sequence<4>());
    return nullptr;
}

template <class... F>
llvm::Value* find(std::string_view name, std::span<llvm::Value* const> args, f::Formulas<F...>) {
    llvm::Value* result = nullptr;
    (void)((name == F::name && ((result = apply<F>(args)), true)) || ...);
    return result;
}

}  // namespace

llvm::Value* write_formula(std::string_view name, std::span<llvm::Value* const> args) {
    // These mix masks and numbers.
    if (name == "where" && args.size() == 3) return select(Mask{args[0]}, Code(args[1]), Code(args[2])).v;
    if (name == "masked_fill" && args.size() == 3) return select(Mask{args[1]}, Code(args[2]), Code(args[0])).v;
    if (name == "logical_not" && args.size() == 1) return (!Mask{args[0]}).v;
    return find(name, args, Written());
}

}  // namespace lunaria::codegen
