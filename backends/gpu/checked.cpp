// GPU kernels of operators that refuse values of their operands, and of operators whose result size depends on values.
// A kernel sets a flag where a value is wrong, and the host finds it for the message.
#include <cmath>

#include "backends/gpu/arithmetic.h"
#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

// An operand as a dense tensor of the result's shape.
Tensor spread(const Value& v, DType t, const Tensor& out) {
    Tensor x;
    if (v.is_tensor())
        x = v.tensor().cast(t);
    else if (v.kind() == Value::Kind::integer)
        x = Tensor::scalar(v.integer()).cast(t).to(out.device());
    else
        x = Tensor::scalar(t, v.number()).to(out.device());
    Strides strides;
    strides.resize(out.rank(), 0);
    const int missing = out.rank() - x.rank();
    for (int i = 0; i < x.rank(); ++i)
        if (x.dim(i) != 1) strides[i + missing] = x.strides()[i];
    return x.view(out.shape(), strides).contiguous();
}

void refuse(Writer& w, Number wrong, const Elements& flag) {
    w.when(wrong, [&] { flag.set(w.index(0), w.constant(DType::i64, 0, 1)); });
}

// One kernel for dense operands of one type: `element(writer, numbers, flag)` gives the result's elements.
template <class F>
bool run_checked(Launcher& launcher, const KernelCall& c, const std::string& name, std::span<const Tensor> operands,
                 F element) {
    const Tensor& out = c.out[0];
    const Address flag = launcher.make_flag();
    Words words;
    words.address(flag, 1).tensor(out);
    std::string types;
    for (const Tensor& x : operands) {
        words.tensor(x);
        types += str(' ', name_of(x.dtype()));
    }
    words.size(out.size());
    const bool done = launcher.run_for(str(name, ' ', name_of(out.dtype()), types), out.size(), words, [&](Writer& w) {
        const Elements wrong = w.tensor(DType::i64), to = w.tensor(out.dtype());
        std::vector<Elements> from;
        for (const Tensor& x : operands) from.push_back(w.tensor(x.dtype()));
        const Number all = w.size();
        w.for_each(all, [&](Number i) {
            std::vector<Number> numbers;
            for (const Elements& x : from) numbers.push_back(x.get(i));
            to.set(i, cast(element(w, numbers, wrong), out.dtype()));
        });
    });
    return done && !launcher.is_set(flag);
}

// Integers of up to 64 bits are computed in 64 and truncated, floats of 16 bits in f32.
DType wide_dtype(DType t) {
    if (is_half(t)) return DType::f32;
    return is_integer(t) && t != DType::u64 ? DType::i64 : t;
}

// `element(a, b)`; integers for which `wrong(b)` holds are refused.
template <class Wrong, class F>
bool two_numbers(Launcher& launcher, const KernelCall& c, Wrong wrong, F element) {
    const DType t = c.dtype, wide = wide_dtype(t);
    if (!is_integer(t) && !is_float(t)) return false;
    for (size_t i = 2; i < c.args.size(); ++i)
        if (c.has(i)) return false;
    const Tensor operands[] = {spread(c.args[0], t, c.out[0]), spread(c.args[1], t, c.out[0])};
    const std::string name(c.op.name());
    return run_checked(launcher, c, name, operands, [&](Writer& w, std::span<const Number> x, const Elements& flag) {
        const Number a = cast(x[0], wide), b = cast(x[1], wide);
        if (is_integer(t)) refuse(w, wrong(b), flag);
        return element(a, b);
    });
}

Number is_zero(Number b) { return b == 0; }
Number is_negative(Number b) { return b < 0; }

bool truncate_div(Launcher& launcher, const KernelCall& c) {
    return two_numbers(launcher, c, is_zero, [](Number a, Number b) {
        return is_integer(a.dtype) ? IntegerDivision(a, b).quotient_cut_off() : formula("trunc", a / b);
    });
}
bool fmod(Launcher& launcher, const KernelCall& c) {
    return two_numbers(launcher, c, is_zero, [](Number a, Number b) {
        return is_integer(a.dtype) ? IntegerDivision(a, b).remainder_of_cut_off() : float_remainder(a, b);
    });
}
// Whether the remainder of the truncated quotient has another sign than the divisor.
Number crosses(Number r, Number b) { return (r != like(r, 0)) & ((r < 0) ^ (b < 0)); }
bool remainder_floored(Launcher& launcher, const KernelCall& c) {
    return two_numbers(launcher, c, is_zero, [](Number a, Number b) {
        if (is_integer(a.dtype)) return IntegerDivision(a, b).remainder_of_floored();
        const Number r = float_remainder(a, b);
        return select(crosses(r, b), r + b, r);
    });
}
// By the formula in core/ops/formulas_math.h.
bool floor_divide(Launcher& launcher, const KernelCall& c) {
    return two_numbers(launcher, c, is_zero, [](Number a, Number b) {
        if (is_integer(a.dtype)) return IntegerDivision(a, b).quotient_floored();
        const Number r = float_remainder(a, b), q = (a - r) / b, plain = a / b;
        const Number lowered = select(crosses(r, b), q - 1, q);
        const Number whole =
            select(lowered == 0, formula("copysign", like(a, 0), plain), formula("round_to_even", lowered));
        return select(b == 0, plain, whole);
    });
}
bool raise(Launcher& launcher, const KernelCall& c) {
    return two_numbers(launcher, c, is_negative, [](Number a, Number b) { return power(a, b); });
}

bool cast_any(Launcher& launcher, const KernelCall& c) { return copy_strided(launcher, c.tensor(0), c.out[0]); }

// Losses of probabilities and of logits, element by element; halves are computed in f32.
DType loss_dtype(DType t) { return is_half(t) ? DType::f32 : t; }

bool bernoulli_cross_entropy(Launcher& launcher, const KernelCall& c) {
    const DType t = loss_dtype(c.out[0].dtype());
    const Tensor operands[] = {spread(c.args[0], t, c.out[0]), spread(c.args[1], t, c.out[0])};
    return run_checked(launcher, c, "bernoulli", operands,
                       [](Writer& w, std::span<const Number> x, const Elements& flag) {
                           refuse(w, (x[0] < 0) | (x[0] > 1), flag);
                           const Number yes = maximum(formula("log", x[0]), like(x[0], -100));
                           const Number no = maximum(formula("log1p", 0 - x[0]), like(x[0], -100));
                           return 0 - (x[1] * yes + (1 - x[1]) * no);
                       });
}

// weight * x, where an infinite x with weight 0 counts as 0.
Number counted(Number weight, Number x) {
    const Number infinite = formula("abs", x) == Writer::current().constant(x.dtype, HUGE_VAL, 0);
    return select((weight == 0) & infinite, like(x, 0), weight * x);
}

bool sigmoid_cross_entropy(Launcher& launcher, const KernelCall& c) {
    const DType t = loss_dtype(c.out[0].dtype());
    std::vector<Tensor> operands{spread(c.args[0], t, c.out[0]), spread(c.args[1], t, c.out[0])};
    if (c.has(2)) operands.push_back(spread(c.args[2], t, c.out[0]));
    return run_checked(launcher, c, "sigmoid", operands, [](Writer&, std::span<const Number> x, const Elements&) {
        const Number weight = x.size() > 2 ? (x[2] - 1) * x[1] + 1 : like(x[0], 1);
        const Number tail = formula("log1p", exp(0 - formula("abs", x[0])));
        const Number rest = 1 - x[1];
        return select(x[0] < 0, counted(rest - weight, x[0]), counted(rest, x[0])) + weight * tail;
    });
}

bool valid_parameter(Launcher& launcher, const KernelCall& c) {
    const DType t = c.out[0].dtype();
    if (!is_lane(t) || t == DType::boolean) return false;
    const std::string& range = c.args[1].string();
    const Tensor operands[] = {c.tensor(0).contiguous()};
    return run_checked(launcher, c, "valid " + range, operands,
                       [&](Writer& w, std::span<const Number> x, const Elements& flag) {
                           const Number v = is_half(t) ? cast(x[0], DType::f32) : x[0];
                           Number good = range == "positive" ? v > 0 : (v > 0) | (v == 0);
                           if (range == "a probability") good = good & ((v < 1) | (v == 1));
                           refuse(w, !good, flag);
                           return x[0];
                       });
}

// The next number of the type on the way to another one: plus or minus one as an integer of the same bits.
bool nextafter(Launcher& launcher, const KernelCall& c) {
    const DType t = c.out[0].dtype(), as = moved_dtype(t);
    if (!is_float(t)) return false;
    const Tensor operands[] = {spread(c.args[0], t, c.out[0]), spread(c.args[1], t, c.out[0])};
    return run_checked(launcher, c, "next", operands, [&](Writer&, std::span<const Number> given, const Elements&) {
        const Number from = given[0], to = given[1];
        const Number x = is_half(t) ? cast(from, DType::f32) : from, y = is_half(t) ? cast(to, DType::f32) : to;
        const Number pattern = bits(from, as), one = like(pattern, 1);
        const Number sign = like(pattern, static_cast<int64_t>(~uint64_t{0} << (8 * size_of(t) - 1)));
        const Number away = !((x < y) ^ (x > 0));
        const Number next = bits(select(away, pattern + one, pattern - one), t);
        const Number least = bits(select(y < 0, sign | one, one), t);
        const Number moved = select(x == 0, least, next);
        return select(x != x, from, select((x == y) | (y != y), to, moved));
    });
}

// The number of elements up to each one that are not 0 gives the row of its position.
bool argwhere(Launcher& launcher, const KernelCall& c) {
    const Tensor x = c.tensor(0).contiguous();
    const DType t = x.dtype();
    const int rank = x.rank();
    if (!is_lane(t)) return false;
    if (x.size() == 0) {
        c.out[0] = Tensor::empty(DType::i64, {0, rank}, x.device());
        return true;
    }
    Tensor marks = Tensor::empty(DType::i64, {x.size()}, x.device()),
           counts = Tensor::empty(DType::i64, {x.size()}, x.device());
    Words words;
    words.tensor(x).tensor(marks).size(x.size());
    auto differs = [&](Number v) {
        return is_half(t) ? cast(v, DType::f32) != cast(like(v, 0), DType::f32) : v != like(v, 0);
    };
    if (!launcher.run_for(str("marks ", name_of(t)), x.size(), words, [&](Writer& w) {
            const Elements from = w.tensor(t), to = w.tensor(DType::i64);
            const Number all = w.size();
            w.for_each(all, [&](Number i) { to.set(i, cast(differs(from.get(i)), DType::i64)); });
        }))
        return false;
    static const Op& cumsum = registry().get("cumsum");
    const Value args[] = {Value(marks), Value(0), Value(), Value(false), Value(false)};
    if (!kernel_table().find(cumsum).kernel(launcher, {cumsum, args, {&counts, 1}, DType::i64})) return false;
    const int64_t rows = counts.view({}, {}, x.size() - 1).to_host().integer_at(0);
    const Tensor out = c.out[0] = Tensor::empty(DType::i64, {rows, rank}, x.device());
    if (out.size() == 0) return true;
    Words second;
    second.tensor(x).tensor(counts).tensor(out).size(x.size());
    for (int axis = 0; axis < rank; ++axis) second.size(x.dim(axis));
    return launcher.run_for(str("positions ", name_of(t), ' ', rank), x.size(), second, [&](Writer& w) {
        const Elements from = w.tensor(t), row = w.tensor(DType::i64), to = w.tensor(DType::i64);
        const Number all = w.size();
        std::vector<Number> sizes;
        for (int axis = 0; axis < rank; ++axis) sizes.push_back(w.size());
        w.for_each(all, [&](Number i) {
            w.when(differs(from.get(i)), [&] {
                const Number start = (cast(row.get(i), w.index_type()) - 1) * rank;
                Number rest = i;
                for (int axis = rank - 1; axis >= 0; --axis) {
                    const Number size = sizes[static_cast<size_t>(axis)];
                    to.set(start + axis, cast(axis ? remainder(rest, size) : rest, DType::i64));
                    if (axis) rest = quotient(rest, size);
                }
            });
        });
    });
}

}  // namespace

void add_checked_kernels(KernelTable& table) {
    table.add_last("cast", cast_any);
    table.add_last("floor_divide", floor_divide);
    table.add_last("remainder", remainder_floored);
    table.add_last("fmod", fmod);
    table.add_last("truncate_div", truncate_div);
    table.add_last("pow", raise);
    table.add("bernoulli_cross_entropy", bernoulli_cross_entropy);
    table.add("sigmoid_cross_entropy", sigmoid_cross_entropy);
    table.add("valid_parameter", valid_parameter);
    table.add("nextafter", nextafter);
    table.add("argwhere", argwhere);
}

}  // namespace lunaria::gpu
