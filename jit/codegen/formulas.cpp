#include "jit/codegen/formulas.h"

#include <array>
#include <utility>

#include "core/ops/formulas_all.h"
#include "jit/codegen/math.h"

namespace lunaria::codegen {

namespace {

namespace f = lunaria::formula;

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
    if constexpr (takes<F, 5>())
        if (args.size() == 5) return apply<F>(args, std::make_index_sequence<5>());
    return nullptr;
}

// Code has the functions that its own formulas need; other functions are calls.
template <class F>
llvm::Value* written(std::span<llvm::Value* const> args) {
    if constexpr (F::fuses == f::Fuses::never || F::fuses == f::Fuses::by_loop || F::domain == f::Domain::any)
        return nullptr;
    else
        return apply<F>(args);
}

template <class... F>
llvm::Value* find(std::string_view name, std::span<llvm::Value* const> args, f::Formulas<F...>) {
    llvm::Value* result = nullptr;
    (void)((name == F::name && ((result = written<F>(args)), true)) || ...);
    return result;
}

}  // namespace

llvm::Value* write_formula(std::string_view name, std::span<llvm::Value* const> args) {
    // These mix masks and numbers.
    if (name == "where" && args.size() == 3) return select(Mask{args[0]}, Code(args[1]), Code(args[2])).v;
    if (name == "masked_fill" && args.size() == 3) return select(Mask{args[1]}, Code(args[2]), Code(args[0])).v;
    if (name == "logical_not" && args.size() == 1) return (!Mask{args[0]}).v;
    return find(name, args, f::AllFormulas());
}

}  // namespace lunaria::codegen
