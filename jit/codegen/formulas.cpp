#include "jit/codegen/formulas.h"

#include <array>
#include <utility>

#include "core/ops/formula_lists.h"
#include "jit/codegen/code.h"

namespace lunaria::codegen {

namespace {

using Args = std::span<llvm::Value* const>;

template <class F, class T, size_t... I>
llvm::Value* apply(Args args, std::index_sequence<I...>) {
    return F{}(Code<T>(args[I])...).v;
}
template <class F, class T, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
    return requires(F formula, std::array<Code<T>, sizeof...(I)> a) { formula(a[I]...); };
}
template <class F, class T>
llvm::Value* apply(Args args) {
    llvm::Value* result = nullptr;
    auto with = [&](auto indices) {
        if constexpr (takes<F, T>(indices))
            if (args.size() == indices.size()) result = apply<F, T>(args, indices);
    };
    with(std::make_index_sequence<1>());
    with(std::make_index_sequence<2>());
    with(std::make_index_sequence<3>());
    with(std::make_index_sequence<4>());
    with(std::make_index_sequence<5>());
    return result;
}
template <class T, class... F>
llvm::Value* find(std::string_view name, Args args, formula::Formulas<F...>) {
    llvm::Value* result = nullptr;
    (void)((name == F::name && ((result = apply<F, T>(args)), true)) || ...);
    return result;
}

// On bools + and max are "or", * and min are "and", and false is less than true.
llvm::Value* write_logic(std::string_view name, Args args) {
    auto is_one_of = [&](std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (args.empty()) return nullptr;
    const Mask a{args[0]}, b{args.size() > 1 ? args[1] : nullptr}, c{args.size() > 2 ? args[2] : nullptr};
    if (args.size() == 1) return is_one_of({"logical_not", "invert"}) ? (!a).v : nullptr;
    if (args.size() == 3) return name == "clamp" ? ((a | b) & c).v : nullptr;
    if (is_one_of({"logical_and", "bitwise_and", "mul", "minimum", "fmin"})) return (a & b).v;
    if (is_one_of({"logical_or", "bitwise_or", "add", "maximum", "fmax"})) return (a | b).v;
    if (is_one_of({"logical_xor", "bitwise_xor", "not_equal"})) return (a != b).v;
    if (name == "equal") return (!(a != b)).v;
    if (name == "less") return ((!a) & b).v;
    if (name == "less_equal") return ((!a) | b).v;
    if (name == "greater") return (a & !b).v;
    if (name == "greater_equal") return (a | !b).v;
    return nullptr;
}

}  // namespace

llvm::Value* write_formula(std::string_view name, DType dtype, Args args) {
    // These mix masks and numbers.
    if (name == "where" && args.size() == 3) return write::select(args[0], args[1], args[2]);
    if (name == "masked_fill" && args.size() == 3) return write::select(args[1], args[2], args[0]);
    using Floats = formula::FloatFormulas;
    using Integers = formula::IntegerFormulas;
    switch (dtype) {
        case DType::boolean:
            return write_logic(name, args);
        case DType::u8:
            return find<uint8_t>(name, args, Integers());
        case DType::i8:
            return find<int8_t>(name, args, Integers());
        case DType::i16:
            return find<int16_t>(name, args, Integers());
        case DType::i32:
            return find<int32_t>(name, args, Integers());
        case DType::i64:
            return find<int64_t>(name, args, Integers());
        case DType::f32:
            return find<float>(name, args, Floats());
        case DType::f64:
            return find<double>(name, args, Floats());
        default:
            return nullptr;
    }
}

}  // namespace lunaria::codegen
