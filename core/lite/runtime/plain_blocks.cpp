#include "core/lite/runtime/plain_blocks.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/int.h"
#include "core/ops/formulas_all.h"

namespace lunaria::lite {

namespace {

using namespace formula;
using cpu::Int;
using Whole = Int<int64_t>;
using Natural = Int<uint64_t>;
using Byte = Int<uint8_t>;

template <class F, class... P>
constexpr int arity_with() {
    if constexpr (requires(F f, P... p) { f(p...); })
        return sizeof...(P);
    else
        return 0;
}
template <class F, class P>
constexpr int kArity = arity_with<F, P>() + arity_with<F, P, P>() + arity_with<F, P, P, P>() +
                       arity_with<F, P, P, P, P>() + arity_with<F, P, P, P, P, P>();

// T is the number type of the formula, Raw what lies in the register.
template <class F, class T, class Raw, int MaskAt, size_t... I>
void run_plain(const char* const* in, const int64_t* step, char* out, int64_t count) {
    auto read = [&]<size_t Operand>(int64_t i) {
        if constexpr (static_cast<int>(Operand) == MaskAt)
            return in[Operand][i * step[Operand]] != 0;
        else
            return T(reinterpret_cast<const Raw*>(in[Operand])[i * step[Operand]]);
    };
    for (int64_t i = 0; i < count; ++i) {
        const auto result = F{}(read.template operator()<I>(i)...);
        if constexpr (F::result == Result::boolean)
            out[i] = static_cast<char>(result);
        else if constexpr (std::is_same_v<T, Raw>)
            reinterpret_cast<Raw*>(out)[i] = result;
        else
            reinterpret_cast<Raw*>(out)[i] = result.v;
    }
}
template <class F, class T, class Raw, int MaskAt = -1>
constexpr FormulaBlock plain(std::string_view name = F::name) {
    constexpr int n = MaskAt < 0 ? kArity<F, T> : 3;
    static_assert(n > 0);
    const BlockFunction run = []<size_t... I>(std::index_sequence<I...>)->BlockFunction {
        return &run_plain<F, T, Raw, MaskAt, I...>;
    }
    (std::make_index_sequence<n>());
    return {name, n, F::result == Result::boolean, run};
}
template <class T, class Raw, class... F>
constexpr auto all_plain(Formulas<F...>) {
    return std::array<FormulaBlock, sizeof...(F)>{plain<F, T, Raw>()...};
}

using IntegerMath = decltype(Formulas<Add, Sub, Mul, Maximum, Minimum, Clamp, Fmax, Fmin, Abs, Neg, Square, Sign, Floor,
                                      Ceil, Trunc, Round, Relu, Relu6>() +
                             IntegerDivisions() + Comparisons() + Bits() + Shifts());

constexpr auto kTwice = all_plain<double, double>(RealFormulas());
constexpr std::array kTwiceSelections{plain<Where, double, double, 0>(), plain<MaskedFill, double, double, 1>()};
constexpr auto kWhole = all_plain<Whole, int64_t>(IntegerMath());
constexpr std::array kWholeSelections{plain<Where, Whole, int64_t, 0>(), plain<MaskedFill, Whole, int64_t, 1>()};
constexpr auto kNatural = all_plain<Natural, uint64_t>(IntegerMath());
constexpr std::array kBools{
    plain<LogicalAnd, Byte, uint8_t>(),
    plain<LogicalOr, Byte, uint8_t>(),
    plain<LogicalXor, Byte, uint8_t>(),
    plain<LogicalNot, Byte, uint8_t>(),
    plain<LogicalAnd, Byte, uint8_t>(BitwiseAnd::name),
    plain<LogicalOr, Byte, uint8_t>(BitwiseOr::name),
    plain<LogicalXor, Byte, uint8_t>(BitwiseXor::name),
    plain<LogicalNot, Byte, uint8_t>(Invert::name),
    plain<LogicalOr, Byte, uint8_t>(Add::name),
    plain<LogicalAnd, Byte, uint8_t>(Mul::name),
    plain<Maximum, Byte, uint8_t>(),
    plain<Minimum, Byte, uint8_t>(),
    plain<Equal, Byte, uint8_t>(),
    plain<NotEqual, Byte, uint8_t>(),
    plain<Less, Byte, uint8_t>(),
    plain<LessEqual, Byte, uint8_t>(),
    plain<Greater, Byte, uint8_t>(),
    plain<GreaterEqual, Byte, uint8_t>(),
    plain<Where, Byte, uint8_t, 0>(),
    plain<MaskedFill, Byte, uint8_t, 1>(),
};

const FormulaBlock* find_in(const FormulaBlock* blocks, size_t count, std::string_view op) {
    for (size_t i = 0; i < count; ++i)
        if (blocks[i].op == op) return blocks + i;
    return nullptr;
}
template <size_t... N>
const FormulaBlock* find_in(std::string_view op, const std::array<FormulaBlock, N>&... lists) {
    const FormulaBlock* found = nullptr;
    ((found = found ? found : find_in(lists.data(), N, op)), ...);
    return found;
}

BlockSet best_set() {
#if defined(__x86_64__)
    const char* const wish = std::getenv("LUNARIA_ISA");
    const std::string_view wanted = wish ? wish : "";
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (wanted == "v2" || !avx2) return v2::block_set();
    if (wanted == "avx2" || !avx512) return avx2::block_set();
    return avx512::block_set();
#else
    return neon::block_set();
#endif
}

// As in copy_elements of the full program: through int64, which saturates and has 0 for NaN; narrower integers wrap.
template <class From, class To>
void to_whole(const char* const* in, const int64_t* step, char* out, int64_t count) {
    constexpr From kEnd = std::is_signed_v<To> ? static_cast<From>(0x1p63) : static_cast<From>(0x1p64);
    const auto* const x = reinterpret_cast<const From*>(in[0]);
    auto* const to = reinterpret_cast<To*>(out);
    for (int64_t i = 0; i < count; ++i) {
        const From v = x[i * step[0]];
        if (std::is_unsigned_v<To> && v < 0)
            to[i] = static_cast<To>(v <= static_cast<From>(-0x1p63) ? INT64_MIN : static_cast<int64_t>(v));
        else
            to[i] = v != v       ? To(0)
                    : v >= kEnd  ? std::numeric_limits<To>::max()
                    : v <= -kEnd ? std::numeric_limits<To>::min()
                                 : static_cast<To>(v);
    }
}
template <class From, class To>
void to_other(const char* const* in, const int64_t* step, char* out, int64_t count) {
    const auto* const x = reinterpret_cast<const From*>(in[0]);
    auto* const to = reinterpret_cast<To*>(out);
    for (int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<To, bool>)
            to[i] = x[i * step[0]] != From(0);
        else
            to[i] = static_cast<To>(x[i * step[0]]);
    }
}
template <class From>
BlockFunction change_from(Lane to) {
    constexpr bool real = std::is_floating_point_v<From>;
    switch (to) {
        case Lane::single:
            return &to_other<From, float>;
        case Lane::twice:
            return &to_other<From, double>;
        case Lane::integer:
            if constexpr (real)
                return &to_whole<From, int64_t>;
            else
                return &to_other<From, int64_t>;
        case Lane::boolean:
            return &to_other<From, bool>;
    }
    return nullptr;
}

template <class T>
void round_each(const char* const* in, const int64_t* step, char* out, int64_t count) {
    using Raw = std::conditional_t<std::is_integral_v<T>, int64_t, float>;
    const auto* const x = reinterpret_cast<const Raw*>(in[0]);
    for (int64_t i = 0; i < count; ++i)
        reinterpret_cast<Raw*>(out)[i] = static_cast<Raw>(static_cast<T>(x[i * step[0]]));
}
template <class Raw, class T>
void read_each(const void* from, void* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<Raw*>(to)[i] = static_cast<Raw>(static_cast<const T*>(from)[i]);
}
template <class Raw, class T>
void write_each(const void* from, void* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = static_cast<T>(static_cast<const Raw*>(from)[i]);
}
template <size_t Width>
void move(const void* from, void* to, int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count) * Width);
}
void read_f16(const void* from, void* to, int64_t count) {
    blocks().rows.f16_to_f32(static_cast<const uint16_t*>(from), static_cast<float*>(to), count);
}
void write_f16(const void* from, void* to, int64_t count) {
    blocks().rows.f32_to_f16(static_cast<const float*>(from), static_cast<uint16_t*>(to), count);
}

struct MemoryFunctions {
    MemoryFunction load = nullptr, store = nullptr;
};
template <class Raw, class T>
constexpr MemoryFunctions kEach{&read_each<Raw, T>, &write_each<Raw, T>};
MemoryFunctions memory_of(DType t) {
    switch (t) {
        case DType::u8:
            return kEach<int64_t, uint8_t>;
        case DType::i8:
            return kEach<int64_t, int8_t>;
        case DType::u16:
            return kEach<int64_t, uint16_t>;
        case DType::i16:
            return kEach<int64_t, int16_t>;
        case DType::u32:
            return kEach<int64_t, uint32_t>;
        case DType::i32:
            return kEach<int64_t, int32_t>;
        case DType::f16:
            return {&read_f16, &write_f16};
        case DType::bf16:
            return kEach<float, BFloat16>;
        case DType::f8e4m3:
            return kEach<float, Float8E4M3>;
        case DType::f8e5m2:
            return kEach<float, Float8E5M2>;
        case DType::f32:
            return {&move<4>, &move<4>};
        case DType::boolean:
            return {&read_each<bool, uint8_t>, &move<1>};
        case DType::u64:
        case DType::i64:
        case DType::f64:
            return {&move<8>, &move<8>};
        default:
            return {};
    }
}

}  // namespace

const BlockSet& blocks() {
    static const BlockSet set = best_set();
    return set;
}

const FormulaBlock* find_formula(std::string_view op, DType operand) {
    switch (lane_of(operand)) {
        case Lane::single:
            for (const FormulaBlocks& list : blocks().formulas)
                if (const FormulaBlock* found = find_in(list.blocks, list.count, op)) return found;
            return nullptr;
        case Lane::twice:
            return find_in(op, kTwice, kTwiceSelections);
        case Lane::integer:
            return operand == DType::u64 ? find_in(op, kNatural, kWholeSelections)
                                         : find_in(op, kWhole, kWholeSelections);
        case Lane::boolean:
            return find_in(op, kBools);
    }
    return nullptr;
}

BlockFunction change_lane(DType from, Lane to) {
    if (lane_of(from) == to) return nullptr;
    switch (lane_of(from)) {
        case Lane::single:
            return change_from<float>(to);
        case Lane::twice:
            return change_from<double>(to);
        case Lane::integer:
            return from == DType::u64 ? change_from<uint64_t>(to) : change_from<int64_t>(to);
        case Lane::boolean:
            return change_from<uint8_t>(to);
    }
    return nullptr;
}

BlockFunction round_to(DType t) {
    switch (t) {
        case DType::u8:
            return &round_each<uint8_t>;
        case DType::i8:
            return &round_each<int8_t>;
        case DType::u16:
            return &round_each<uint16_t>;
        case DType::i16:
            return &round_each<int16_t>;
        case DType::u32:
            return &round_each<uint32_t>;
        case DType::i32:
            return &round_each<int32_t>;
        case DType::f16:
            return &round_each<Half>;
        case DType::bf16:
            return &round_each<BFloat16>;
        default:
            return nullptr;
    }
}

MemoryFunction loader_of(DType t) { return memory_of(t).load; }
MemoryFunction storer_of(DType t) { return memory_of(t).store; }

}  // namespace lunaria::lite
