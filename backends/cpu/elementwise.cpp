#include "backends/cpu/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/around_cache.h"
#include "backends/cpu/elementwise_walk.h"
#include "backends/cpu/machine_code.h"
#include "core/loops/limits.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

using Conversions = std::array<std::array<ConvertLoop, kDTypeCount>, kDTypeCount>;

struct Loops {
    std::vector<OpLoops> ops;  // by operator
    // Loops that read and write f16 and bf16 and compute in f32, where `ops` has none. Single values are of 16 bits,
    // too: numbers that are not must be computed with in f32.
    struct Halves {
        OpLoops::Entry f16, bf16;
    };
    std::vector<Halves> halves;
    Conversions conversions{};
};

size_t index_of(DType t) { return static_cast<size_t>(t); }

void add_table(Loops& loops, const LoopTable& table, bool only_missing) {
    for (int i = 0; i < table.count; ++i) {
        const ElementLoopEntry& e = table.entries[i];
        const Op* op = registry().find(e.op);
        if (!op) continue;
        const auto id = static_cast<size_t>(op->id);
        OpLoops::Entry& to = e.dtype == DType::f16    ? loops.halves[id].f16
                             : e.dtype == DType::bf16 ? loops.halves[id].bf16
                                                      : loops.ops[id].by_dtype[index_of(e.dtype)];
        if (only_missing && to.loop) continue;
        to = {e.loop, e.around, e.operands, e.mask, table.cost, e.boolean};
    }
}

void mark_special(Loops& loops) {
    auto mark = [&](std::string_view name, bool OpLoops::*flag) {
        if (const Op* op = registry().find(name)) loops.ops[static_cast<size_t>(op->id)].*flag = true;
    };
    for (auto name : {"floor_divide", "remainder", "fmod", "truncate_div"}) mark(name, &OpLoops::divides);
    mark("pow", &OpLoops::raises);
    mark("clamp", &OpLoops::has_limits);
    mark("nan_to_num", &OpLoops::has_replacements);
    auto set = [&](std::string_view name, bool of_integers) {
        loops.ops[static_cast<size_t>(registry().get(name).id)].of_integers = of_integers;
    };
    for (auto name : {"isnan", "isinf", "isposinf", "isneginf"}) set(name, false);
    set("isfinite", true);
    for (auto name : {"logical_and", "logical_or", "logical_xor", "logical_not"}) mark(name, &OpLoops::takes_bools);
}

LoopVisitor visitor_of(Loops& loops) {
    return {[](void* context, LoopTable table) { add_table(*static_cast<Loops*>(context), table, false); },
            [](void* context, ConvertTable table) {
                for (int i = 0; i < table.count; ++i) {
                    const ConvertEntry& e = table.entries[i];
                    static_cast<Loops*>(context)->conversions[index_of(e.from)][index_of(e.to)] = e.loop;
                }
            },
            &loops};
}

// Half floats are computed in f32 and selections as integers of the same width. Integers for which the operator has no
// loop (isnan) are computed as floats.
void fill_gaps(Loops& loops) {
    for (OpLoops& op : loops.ops) {
        auto& row = op.by_dtype;
        bool selects = row[index_of(DType::i32)].mask >= 0;
        auto share = [&](DType to, DType from) {
            if (!row[index_of(to)].loop) row[index_of(to)] = row[index_of(from)];
        };
        if (selects) {
            for (DType t : {DType::boolean, DType::u8}) share(t, DType::i8);
            for (DType t : {DType::u16, DType::f16, DType::bf16}) share(t, DType::i16);
            for (DType t : {DType::u32, DType::f32}) share(t, DType::i32);
            for (DType t : {DType::u64, DType::f64, DType::c64}) share(t, DType::i64);
        }
    }
}

Loops build_fast_loops(Isa isa) {
    Loops loops;
    loops.ops.resize(registry().all().size());
    loops.halves.resize(loops.ops.size());
    auto visit = isa == Isa::avx512 ? avx512::visit_loops : isa == Isa::avx2 ? avx2::visit_loops : v2::visit_loops;
    visit(visitor_of(loops));
    LoopVisitor rest = visitor_of(loops);
    // Operations on integers and complex numbers that have no loop over packs.
    rest.elements = [](void* context, LoopTable table) {
        if (!table.count || is_float(table.entries[0].dtype)) return;
        if (table.entries[0].dtype != DType::boolean) add_table(*static_cast<Loops*>(context), table, true);
    };
    visit_plain_loops(rest);
    fill_gaps(loops);
    mark_special(loops);
    return loops;
}

Loops build_plain_loops() {
    Loops loops;
    loops.ops.resize(registry().all().size());
    loops.halves.resize(loops.ops.size());
    visit_plain_loops(visitor_of(loops));
    mark_special(loops);
    return loops;
}

const Loops& plain_loops() {
    static const Loops loops = build_plain_loops();
    return loops;
}

Isa best_isa() {
    if (const char* wish = std::getenv("LUNARIA_ISA"))
        for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512})
            if (name_of(isa) == wish && isa_available(isa)) return isa;
    for (Isa isa : {Isa::avx512, Isa::avx2})
        if (isa_available(isa)) return isa;
    return Isa::v2;
}

// The current table, which every call reads: with a constant initial value it needs no guard.
std::atomic<const Loops*>& current_loops() {
    static constinit std::atomic<const Loops*> loops{nullptr};
    return loops;
}

// The tables of all instruction sets used so far.
struct Selection {
    std::mutex mutex;
    std::array<std::unique_ptr<const Loops>, 3> built;
    std::atomic<Isa> isa{Isa::v2};

    Selection() { choose(best_isa()); }
    void choose(Isa wanted) {
        std::lock_guard lock(mutex);
        auto& slot = built[static_cast<size_t>(wanted)];
        if (!slot) slot = std::make_unique<const Loops>(build_fast_loops(wanted));
        isa.store(wanted);
        current_loops().store(slot.get(), std::memory_order_release);
    }
};
Selection& selection() {
    static Selection s;
    return s;
}
const Loops& fast_loops() {
    const Loops* loops = current_loops().load(std::memory_order_acquire);
    if (!loops) [[unlikely]] {
        selection();
        loops = current_loops().load(std::memory_order_acquire);
    }
    return *loops;
}

// Writes a number as an element of `t`.
void store_number(const Value& v, DType t, void* out) {
    visit_dtype(t, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, bool>)
            *static_cast<uint8_t*>(out) = v.number() != 0;
        else if constexpr (std::is_same_v<T, uint64_t>)
            *static_cast<T*>(out) = v.kind() == Value::Kind::number && v.number() > 0 ? static_cast<T>(v.number())
                                                                                      : static_cast<T>(v.integer());
        else if constexpr (std::is_integral_v<T>)
            *static_cast<T*>(out) = static_cast<T>(v.integer());
        else if constexpr (kIsComplex<T>)
            *static_cast<T*>(out) = T(static_cast<typename T::value_type>(v.number()));
        else
            *static_cast<T*>(out) = T(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(v.number()));
    });
}

// The value of a limit of clamp that was left out.
Value no_limit(DType t, bool upper) {
    if (t == DType::boolean) return Value(upper ? 1 : 0);
    if (!is_integer(t)) return Value(upper ? HUGE_VAL : -HUGE_VAL);
    return visit_dtype(t, [&](auto tag) -> Value {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>)
            return Value(static_cast<int64_t>(upper ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min()));
        return Value();
    });
}

// The value of an operand that was left out: no limit for clamp; 0 and the largest finite numbers for nan_to_num.
Value missing_operand(const OpLoops& loops, DType t, int i) {
    if (loops.has_limits) return no_limit(t, i == 2);
    if (i == 1) return Value(0.0);
    double largest = t == DType::f64    ? std::numeric_limits<double>::max()
                     : t == DType::f16  ? 65504.0
                     : t == DType::bf16 ? 0x1.fep127
                                        : static_cast<double>(std::numeric_limits<float>::max());
    return Value(i == 2 ? largest : -largest);
}

// Whether an element of an integer operand is `bad` in the dtype of the computation, which the loop reads. If only the
// converted value is bad, `was` describes the operand.
template <class Bad>
bool any_element(const Value& v, DType dtype, Bad bad, std::string& was) {
    return visit_dtype(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (!std::is_integral_v<T>) {
            return false;
        } else if (!v.is_tensor()) {
            const int64_t number = v.integer(), x = static_cast<int64_t>(static_cast<T>(number));
            if (bad(number)) return true;
            was = str(" (", number, " is ", x, " as ", name_of(dtype), ")");
            return bad(x);
        } else {
            const Tensor dense = v.tensor().cast(dtype).contiguous();
            const T* p = dense.data<T>();
            return std::any_of(p, p + dense.size(), [&](T x) {
                return std::is_same_v<T, uint64_t> ? x == 0 && bad(0) : bad(static_cast<int64_t>(x));
            });
        }
    });
}

void check_integer_operand(const KernelCall& call, const OpLoops& loops) {
    std::string was;
    if (loops.divides && any_element(
                             call.args[1], call.dtype, [](int64_t x) { return x == 0; }, was))
        throw Error(ErrorKind::arithmetic, call.op.name(), str("integer division by zero", was))
            .hint("divide floats (x:float()) to get inf and nan instead");
    if (loops.raises && any_element(
                            call.args[1], call.dtype, [](int64_t x) { return x < 0; }, was))
        throw Error(ErrorKind::arithmetic, call.op.name(), str("integers cannot be raised to negative powers", was))
            .hint("make the base a float: x:float()");
}

// The element type in which the loop computes for operands of type `t`: f32 for halves, floats for tests of integers
// that only floats need (isnan). If the table has no loop for that type, the operator is not defined.
DType loop_dtype(const OpLoops& loops, DType t) {
    if (loops.takes_bools) return DType::boolean;
    if (loops.by_dtype[index_of(t)].loop || t == DType::f64) return t;
    const OpLoops::Entry& wide = loops.by_dtype[index_of(DType::f64)];
    bool is_test = wide.loop && wide.boolean;
    return is_half(t) || (is_test && !is_complex(t)) ? DType::f32 : t;
}

// The loop reads an element of `from` as it is if the bits are the same, or by a conversion of blocks; otherwise the
// whole operand is converted first.
bool same_bits(DType from, DType to, bool selects) { return from == to || (selects && size_of(from) == size_of(to)); }

// Attributes behind the operands (div's rounding_mode) must not be set: other kernels handle those.
bool fits(const OpLoops::Entry& entry, const KernelCall& call) {
    auto operands = static_cast<size_t>(entry.operands);
    if (call.args.size() < operands) return false;
    for (size_t i = operands; i < call.args.size(); ++i)
        if (call.has(i)) return false;
    return true;
}

// Whether the number is one of the type T.
template <class T>
bool is_one_of(double x) {
    return static_cast<double>(static_cast<float>(T(static_cast<float>(x)))) == x;
}

// The loop that reads and writes floats of 16 bits; nullptr: there is none, or not for these numbers.
const OpLoops::Entry* half_loop(const Loops& tables, const KernelCall& call) {
    if (!is_half(call.dtype)) return nullptr;
    const Loops::Halves& halves = tables.halves[static_cast<size_t>(call.op.id)];
    const OpLoops::Entry& entry = call.dtype == DType::f16 ? halves.f16 : halves.bf16;
    if (!entry.loop || !fits(entry, call)) return nullptr;
    for (size_t i = 0; i < static_cast<size_t>(entry.operands); ++i) {
        const Value& v = call.args[i];
        if (v.is_nil()) return nullptr;
        if (v.is_tensor() ? v.tensor().dtype() != call.dtype
                          : !(call.dtype == DType::f16 ? is_one_of<Half>(v.number()) : is_one_of<BFloat16>(v.number())))
            return nullptr;
    }
    return &entry;
}

// The loop that writes a result past the caches; nullptr: the result is to be written through them.
ElementLoop loop_around_cache(const OpLoops::Entry& entry, const KernelCall& call) {
    if (!entry.around) return nullptr;
    const auto result = static_cast<int64_t>(call.out[0].nbytes());
    int64_t traffic = result;
    for (const Value& v : call.args)
        if (v.is_tensor()) traffic += static_cast<int64_t>(v.tensor().nbytes());
    return goes_around_cache(result, traffic) ? entry.around : nullptr;
}

// The operand as the walk takes it. A large one may lie across the result, as the transpose of a matrix beside a
// row-major one: every element of a row is then in another cache line, and a copy by tiles takes less time than the
// walk.
Tensor laid_along(const Tensor& t, const Shape& shape) {
    constexpr int64_t kLarge = 4096, kFar = 8;
    if (t.is_contiguous() || t.size() < kLarge || !(t.shape() == shape)) return t;
    int64_t least = std::numeric_limits<int64_t>::max(), last = 0;
    for (int axis = 0; axis < t.rank(); ++axis) {
        if (t.dim(axis) == 1) continue;
        last = std::abs(t.strides()[axis]);
        least = std::min(least, last);
    }
    return least == 1 && last >= kFar ? t.contiguous() : t;
}

// A small operand that changes several times within each of the result's rows and repeats along its first axes, as
// numbers of channels do in the middle, laid out for one repetition: what repeats is then a row.
Tensor laid_in_rows(const Tensor& t, const Shape& shape) {
    constexpr size_t kMostBytes = 128 * 1024;
    const int shift = shape.rank() - t.rank();
    auto spread = [&](int axis) { return axis < shift || t.dim(axis - shift) == 1; };
    Shape row;
    Strides strides;
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (row.rank() == 0 && spread(axis)) continue;
        row.push_back(shape[axis]);
        strides.push_back(spread(axis) ? 0 : t.strides()[axis - shift]);
    }
    int64_t run = 1;
    for (int axis = shape.rank(); axis-- > 0 && (shape[axis] == 1 || spread(axis) == spread(shape.rank() - 1));)
        run *= shape[axis];
    const int64_t size = row.size();
    if (size == t.size() || run >= kLongRow || shape.size() < 4 * size ||
        static_cast<size_t>(size) * size_of(t.dtype()) > kMostBytes)
        return t;
    return t.view(row, strides).contiguous();
}

// The loop for a call, and the dtype in which it takes operands.
OpLoops::Entry loop_of(const Loops& tables, const KernelCall& call, bool plain, DType& dtype) {
    const OpLoops& loops = tables.ops[static_cast<size_t>(call.op.id)];
    dtype = loop_dtype(loops, call.dtype);
    if (plain && is_float(dtype)) dtype = DType::f64;
    const OpLoops::Entry* const half = plain ? nullptr : half_loop(tables, call);
    if (half) dtype = call.dtype;
    return half ? *half : loops.by_dtype[index_of(dtype)];
}

// Operands of any layout, halves, operands that were left out, and mixed types.
bool run_walk(const KernelCall& call, const Loops& tables, bool plain) {
    const OpLoops& loops = tables.ops[static_cast<size_t>(call.op.id)];
    const Conversions& conversions = tables.conversions;
    DType dtype = DType::f32;
    const OpLoops::Entry entry = loop_of(tables, call, plain, dtype);
    if (!entry.loop || !fits(entry, call)) return false;
    bool selects = entry.mask >= 0 && !plain;
    if (is_integer(dtype) && (loops.divides || loops.raises)) check_integer_operand(call, loops);

    const Tensor& out = call.out[0];
    Walk walk;
    walk.loop = entry.loop;
    walk.operands = entry.operands;
    walk.out = static_cast<char*>(out.raw());
    walk.out_size = static_cast<int>(size_of(out.dtype()));
    std::array<Tensor, kMostOperands> converted;  // keeps the converted operands alive
    alignas(16) char numbers[kMostOperands][16];
    for (int i = 0; i < entry.operands; ++i) {
        auto k = static_cast<size_t>(i);
        WalkOperand& o = walk.operand[k];
        Value v = call.args[k];
        bool mask = i == entry.mask;
        DType wanted = mask ? DType::boolean : dtype;
        if (v.is_nil()) {
            if (!loops.has_limits && !loops.has_replacements) return false;
            v = missing_operand(loops, call.dtype, i);
        } else if (loops.has_limits && i > 0) {
            v = limit_within(dtype, v);
        }
        if (!v.is_tensor()) {
            store_number(v, selects && !mask ? call.dtype : wanted, numbers[k]);
            o.data = numbers[k];
            o.constant = true;
            continue;
        }
        Tensor t = converted[k] = laid_in_rows(laid_along(v.tensor(), out.shape()), out.shape());
        bool alike = same_bits(t.dtype(), wanted, selects && !mask);
        ConvertLoop widen = alike ? nullptr : conversions[index_of(t.dtype())][index_of(wanted)];
        bool whole = t.size() == 1 && out.size() != 1;
        if (!alike && (!widen || whole || size_of(wanted) > 4)) {
            t = t.cast(wanted);
            converted[k] = t;
            widen = nullptr;
        }
        walk.set_strides(i, t, out.shape());
        o.widen = widen;
        o.constant = whole;
    }
    if (!entry.boolean && !same_bits(out.dtype(), dtype, selects)) {
        walk.narrow = conversions[index_of(dtype)][index_of(out.dtype())];
        if (!walk.narrow || size_of(dtype) > 4) {
            // The whole result is computed in the wide type and then converted.
            Tensor wide = Tensor::empty(dtype, out.shape());
            walk.out = static_cast<char*>(wide.raw());
            walk.out_size = static_cast<int>(size_of(dtype));
            walk.narrow = nullptr;
            walk.merge_axes(out.shape());
            walk.run(0, out.size());
            copy_elements(wide, out);
            return true;
        }
    }
    walk.merge_axes(out.shape());
    if (plain) {
        walk.run(0, out.size());
        return true;
    }
    const ElementLoop around = walk.narrow ? nullptr : loop_around_cache(entry, call);
    if (around) walk.loop = around;
    parallel_for(out.size(), kThreadWork / entry.cost, 64, [&](int64_t begin, int64_t end) {
        walk.run(begin, end);
        if (around) finish_around_cache();
    });
    return true;
}

}  // namespace

std::string_view name_of(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "v2"; }

bool isa_available(Isa isa) {
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (isa == Isa::avx2) return avx2;
    if (isa == Isa::avx512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return true;
}

Isa current_isa() { return selection().isa.load(); }

void set_isa(Isa isa) {
    if (!isa_available(isa))
        throw value_error("set_isa", str("this processor does not have the instruction set ", name_of(isa)));
    selection().choose(isa);
}

const OpLoops& loops_of(const Op& op) { return fast_loops().ops[static_cast<size_t>(op.id)]; }

ConvertLoop find_conversion(DType from, DType to) { return fast_loops().conversions[index_of(from)][index_of(to)]; }

// Powers that are one or two multiplications (has_short_power in simd/math_more.h).
static bool is_cheap(const KernelCall& call, const OpLoops& loops) {
    if (!loops.raises || !call.args[1].is_number()) return false;
    const double exponent = call.args[1].number(), size = std::fabs(exponent);
    return size == 0.5 || size == 1 || size == 2 || exponent == 3 || exponent == 4;
}

// Calls that need work before the loop: operands to convert or check, or results of another type (the absolute values
// of complex numbers).
static bool is_special(const OpLoops& loops, const OpLoops::Entry& entry, const KernelCall& call) {
    return loops.takes_bools || loops.has_limits || (is_integer(call.dtype) && (loops.divides || loops.raises)) ||
           (!entry.boolean && call.out[0].dtype() != call.dtype);
}

bool run_elementwise(const KernelCall& call) {
    const Loops& tables = fast_loops();
    const OpLoops& loops = tables.ops[static_cast<size_t>(call.op.id)];
    const Tensor& out = call.out[0];
    int64_t count = out.size();
    const OpLoops::Entry* const half = half_loop(tables, call);
    const OpLoops::Entry& entry = half ? *half : loops.by_dtype[index_of(call.dtype)];
    auto operands = static_cast<size_t>(entry.operands);
    if (loops.of_integers && (is_integer(call.dtype) || call.dtype == DType::boolean)) {
        auto* to = static_cast<uint8_t*>(out.raw());
        parallel_for(count, kThreadWork, 64, [&](int64_t begin, int64_t end) {
            std::memset(to + begin, *loops.of_integers, static_cast<size_t>(end - begin));
        });
        return true;
    }
    if (!entry.loop || is_special(loops, entry, call) || (operands != call.args.size() && !fits(entry, call)))
        return run_walk(call, tables, false);

    // The common case: dense operands of one shape, and single values.
    const void* in[kMostOperands];
    int64_t step[kMostOperands], size[kMostOperands];
    alignas(16) char numbers[kMostOperands][16];
    for (size_t i = 0; i < operands; ++i) {
        const Value& v = call.args[i];
        DType wanted = static_cast<int>(i) == entry.mask ? DType::boolean : call.dtype;
        size[i] = static_cast<int64_t>(size_of(wanted));
        if (v.is_tensor()) {
            const Tensor& t = v.tensor();
            if (t.dtype() != wanted || (t.size() != count && t.size() != 1) || !t.is_contiguous())
                return run_walk(call, tables, false);
            in[i] = t.raw();
            step[i] = t.size() == count ? 1 : 0;
        } else if (v.is_nil()) {
            return run_walk(call, tables, false);
        } else {
            store_number(v, wanted, numbers[i]);
            in[i] = numbers[i];
            step[i] = 0;
        }
    }
    int64_t part = is_cheap(call, loops) ? kThreadWork : kThreadWork / entry.cost;
    if (count <= part) {
        entry.loop(in, step, out.raw(), count);
        return true;
    }
    auto out_size = static_cast<int64_t>(size_of(out.dtype()));
    const ElementLoop around = loop_around_cache(entry, call), loop = around ? around : entry.loop;
    parallel_for(count, part, 64, [&](int64_t begin, int64_t end) {
        const void* from[kMostOperands];
        for (size_t i = 0; i < operands; ++i) from[i] = static_cast<const char*>(in[i]) + begin * step[i] * size[i];
        loop(from, step, static_cast<char*>(out.raw()) + begin * out_size, end - begin);
        if (around) finish_around_cache();
    });
    return true;
}

bool run_elementwise_plain(const KernelCall& call) { return run_walk(call, plain_loops(), true); }

// The loop of an operator, for generated code.
static const void* loop_by_name(std::string_view name, std::string_view dtype) {
    const Op* op = registry().find(name);
    const auto t = parse_dtype(dtype);
    return op && t ? reinterpret_cast<const void*>(loops_of(*op).by_dtype[index_of(*t)].loop) : nullptr;
}

void add_elementwise_kernels(KernelTable& table) {
    set_loops_of_operators(loop_by_name);
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        table.fast(op->name(), run_elementwise);
        table.plain(op->name(), run_elementwise_plain);
    }
}

}  // namespace lunaria::cpu
