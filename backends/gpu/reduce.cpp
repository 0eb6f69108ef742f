// GPU kernels: reductions along any axes. A few results of many elements are computed in parts, one for each block, and
// the parts are then reduced. If neighbours in memory belong to different results, the threads of a warp take
// neighbours. Many results of few elements each take one thread each.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "backends/gpu/arithmetic.h"
#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/loops/thread_loop.h"
#include "core/operator/op.h"
#include "core/ops/reduce.h"

namespace lunaria::gpu {

namespace {

constexpr int kThreads = 256, kColumns = graph::kWarp, kLanes = kThreads / kColumns;
constexpr int64_t kEnoughBlocks = 1024, kPart = 4096, kFewElements = 64, kManyResults = 16384;
constexpr int64_t kFewestRows = 128;  // rows in a part of columns

enum class Kind : uint8_t { sum, mean, prod, amax, amin, all, any };

// The combination of two elements; `identity` is its neutral element.
struct Rule {
    Number (*combine)(Number a, Number b);
    double identity;
};

Rule rule_of(Kind kind) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    static constexpr Rule kSum = {[](Number a, Number b) { return a + b; }, 0};
    // By kind.
    static constexpr Rule kRules[] = {kSum,
                                      kSum,
                                      {[](Number a, Number b) { return a * b; }, 1},
                                      {[](Number a, Number b) { return formula("maximum", a, b); }, -kNone},
                                      {[](Number a, Number b) { return formula("minimum", a, b); }, kNone},
                                      {[](Number a, Number b) { return a & b; }, 1},
                                      {[](Number a, Number b) { return a | b; }, 0}};
    return kRules[static_cast<size_t>(kind)];
}

constexpr bool is_extremum(Kind kind) { return kind == Kind::amax || kind == Kind::amin; }

// The axes of the operand, the kept and the reduced ones, each in their order.
struct Axes {
    Shape sizes;
    Strides steps;
    int64_t count = 1;
};
void split(const Tensor& x, const Shape& gone, Axes& kept, Axes& reduced) {
    for (int i = 0; i < x.rank(); ++i) {
        if (x.dim(i) == 1) continue;
        Axes& to = std::find(gone.begin(), gone.end(), i) == gone.end() ? kept : reduced;
        to.count *= x.dim(i);
        const int last = to.sizes.rank() - 1;
        // Axes that follow each other in memory are merged.
        if (last >= 0 && to.steps[last] == x.strides()[i] * x.dim(i)) {
            to.sizes[last] *= x.dim(i);
            to.steps[last] = x.strides()[i];
            continue;
        }
        to.sizes.push_back(x.dim(i));
        to.steps.push_back(x.strides()[i]);
    }
}

// Addresses from the number of an element along the axes.
struct Places {
    std::vector<Number> sizes, steps;
    static void pass(Words& words, const Axes& axes) {
        for (int i = 0; i < axes.sizes.rank(); ++i) words.size(axes.sizes[i]).size(axes.steps[i]);
    }
    Places(Writer& w, const Axes& axes) {
        for (int i = 0; i < axes.sizes.rank(); ++i) {
            sizes.push_back(w.size());
            steps.push_back(w.size());
        }
    }
    Number at(Writer& w, Number i) const {
        Number place = w.index(0);
        for (size_t axis = sizes.size(); axis-- > 0;) {
            const Number here = axis ? remainder(i, sizes[axis]) : i;
            if (axis) i = quotient(i, sizes[axis]);
            place += here * steps[axis];
        }
        return place;
    }
};

Number block_total(const Rule& rule, Number v, const Near& memory) {
    Writer& w = Writer::current();
    memory.set(w.thread(), v);
    fold_block(kThreads, [&](Number a, Number b) { memory.set(a, rule.combine(memory.get(a), memory.get(b))); });
    const Number total = memory.get(w.index(0));
    w.barrier();
    return total;
}

class Reducer {
  public:
    Reducer(Launcher& launcher, const KernelCall& c, Kind kind, DType computed)
        : launcher_(launcher), c_(c), kind_(kind), computed_(computed), rule_(rule_of(kind)) {}

    bool run(const Tensor& x, const Shape& gone) {
        Axes kept, reduced;
        split(x, gone, kept, reduced);
        const Tensor& out = c_.out[0];
        mean_ = kind_ == Kind::mean ? reduced.count : 0;
        const Source source{reinterpret_cast<Address>(x.raw()), x.dtype(), reach_of(x)};
        return run(source, kept, reduced, {reinterpret_cast<Address>(out.raw()), out.dtype(), true});
    }

  private:
    struct Source {
        Address address;
        DType dtype;
        int64_t reach;  // the distance of the first and last element
    };
    struct Target {
        Address address;
        DType dtype;
        bool is_result;  // else parts of results follow
    };

    static int64_t last_step(const Axes& axes) { return axes.sizes.rank() ? axes.steps[axes.sizes.rank() - 1] : 0; }

    bool run(const Source& x, const Axes& kept, const Axes& reduced, const Target& to) {
        const bool columns = last_step(kept) == 1 && reduced.count >= kFewestRows / kLanes;
        if (!columns && (kept.count >= kManyResults || reduced.count <= kFewElements))
            return by_threads(x, kept, reduced, to);
        const int64_t tiles = columns ? (kept.count + kColumns - 1) / kColumns : kept.count;
        const int64_t parts = std::clamp<int64_t>(
            std::min(kEnoughBlocks / tiles, reduced.count / (columns ? kFewestRows : kPart)), 1, kEnoughBlocks);
        auto reduce = [&](const Target& target) {
            return columns ? by_columns(x, kept, reduced, parts, target) : by_blocks(x, kept, reduced, parts, target);
        };
        if (parts == 1) return reduce(to);
        // The parts form a tensor: parts of columns lie in front of the columns, others behind the kept axes.
        const Address sums = launcher_.take(kept.count * parts * static_cast<int64_t>(size_of(computed_)));
        if (!reduce({sums, computed_, false})) return false;
        const Axes whole{{kept.count}, {columns ? 1 : parts}, kept.count};
        const Axes part{{parts}, {columns ? kept.count : 1}, parts};
        const Source source{sums, computed_, kept.count * parts};
        return columns ? run(source, whole, part, to) : by_blocks(source, whole, part, 1, to);
    }

    std::string name(std::string_view how, DType from, DType to, const Axes& kept, const Axes& reduced) const {
        return str(c_.op.name(), ' ', how, ' ', name_of(from), ' ', name_of(computed_), ' ', name_of(to), ' ',
                   kept.sizes.rank(), ' ', reduced.sizes.rank(), mean_ ? " divided" : "");
    }
    // Numbers become booleans where the computation is boolean; other elements are converted to its type.
    Number element(Number v) const {
        if (computed_ == DType::boolean && v.dtype != DType::boolean) return v != like(v, 0);
        return cast(v, computed_);
    }
    Number first(Writer& w) const {
        if (!is_integer(computed_)) return w.constant(computed_, rule_.identity, 0);
        constexpr auto kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
        const double i = rule_.identity;
        return w.constant(computed_, 0, i > 1 ? kMost : i < 0 ? kLeast : static_cast<int64_t>(i));
    }
    Number finished(Number v, Number divisor, DType to) const { return cast(mean_ ? v / divisor : v, to); }

    bool by_threads(const Source& from, const Axes& kept, const Axes& reduced, const Target& target) {
        const DType t = from.dtype, to = target.dtype;
        Words words;
        words.address(from.address, from.reach).address(target.address, kept.count);
        words.size(kept.count).size(reduced.count).real(static_cast<double>(mean_));
        Places::pass(words, kept);
        Places::pass(words, reduced);
        return launcher_.run_for(name("by threads", t, to, kept, reduced), kept.count, words, [&](Writer& w) {
            const Elements x = w.tensor(t), y = w.tensor(to);
            const Number results = w.size(), count = w.size();
            const Number divisor = w.real(mean_ ? computed_ : DType::f64);
            const Places rows(w, kept), columns(w, reduced);
            w.for_each(results, [&](Number i) {
                const Number start = rows.at(w, i);
                const Variable total = w.variable(first(w));
                add_up(w, total, x, start, columns, w.index(0), count, w.index(1));
                y.set(i, finished(total.get(), divisor, to));
            });
        });
    }
    void add_up(Writer& w, const Variable& total, const Elements& x, Number start, const Places& columns, Number from,
                Number to, Number step) const {
        w.loop(
            from, to, step,
            [&](Number k) { total.set(rule_.combine(total.get(), element(x.get(start + columns.at(w, k))))); },
            kTogether);
    }
    // A block computes each result, or each of `parts` parts of it.
    bool by_blocks(const Source& from, const Axes& kept, const Axes& reduced, int64_t parts, const Target& target) {
        const bool finishes = target.is_result;
        const std::string kernel = name(finishes ? "by blocks" : "parts", from.dtype, target.dtype, kept, reduced);
        const Words words = words_of_parts(from, kept, reduced, parts, target);
        return launcher_.run(kernel, kept.count * parts, kThreads, words, [&](Writer& w) {
            const Elements x = w.tensor(from.dtype), y = w.tensor(target.dtype);
            w.size();  // the number of results, and of blocks
            const Number all = w.size(), pieces = w.size(), size = w.size();
            const Number divisor = w.real(mean_ ? computed_ : DType::f64);
            const Places rows(w, kept), columns(w, reduced);
            const Near memory = w.near(computed_, kThreads);
            const Number start = rows.at(w, quotient(w.block(), pieces));
            const Number begin = remainder(w.block(), pieces) * size, end = begin + size;
            const Variable total = w.variable(first(w));
            add_up(w, total, x, start, columns, begin + w.thread(), select(end < all, end, all), w.threads());
            const Number v = block_total(rule_, total.get(), memory);
            w.when(w.thread() == 0,
                   [&] { y.set(w.block(), finishes ? finished(v, divisor, target.dtype) : cast(v, target.dtype)); });
        });
    }
    // A block computes neighbouring results, or parts of them, with several threads each.
    bool by_columns(const Source& from, const Axes& kept, const Axes& reduced, int64_t parts, const Target& target) {
        const bool finishes = target.is_result;
        const std::string kernel =
            name(finishes ? "by columns" : "parts of columns", from.dtype, target.dtype, kept, reduced);
        const Words words = words_of_parts(from, kept, reduced, parts, target);
        const int64_t tiles = (kept.count + kColumns - 1) / kColumns;
        return launcher_.run(kernel, tiles * parts, kThreads, words, [&](Writer& w) {
            const Elements x = w.tensor(from.dtype), y = w.tensor(target.dtype);
            const Number results = w.size(), all = w.size(), pieces = w.size(), size = w.size();
            const Number divisor = w.real(mean_ ? computed_ : DType::f64);
            const Places rows(w, kept), columns(w, reduced);
            const Near memory = w.near(computed_, kThreads);
            const Number piece = remainder(w.block(), pieces);
            const Number column = quotient(w.block(), pieces) * kColumns + remainder(w.thread(), kColumns);
            const Number lane = quotient(w.thread(), kColumns);
            const Number begin = piece * size, end = begin + size;
            const Variable total = w.variable(first(w));
            w.when(column < results, [&] {
                add_up(w, total, x, rows.at(w, column), columns, begin + lane, select(end < all, end, all),
                       w.index(kLanes));
            });
            memory.set(w.thread(), total.get());
            w.barrier();
            w.when((lane == 0) & (column < results), [&] {
                Number v = memory.get(w.thread());
                for (int i = 1; i < kLanes; ++i) v = rule_.combine(v, memory.get(w.thread() + i * kColumns));
                y.set(piece * results + column, finishes ? finished(v, divisor, target.dtype) : cast(v, target.dtype));
            });
        });
    }
    Words words_of_parts(const Source& from, const Axes& kept, const Axes& reduced, int64_t parts,
                         const Target& target) const {
        Words words;
        words.address(from.address, from.reach).address(target.address, kept.count * parts);
        words.size(kept.count).size(reduced.count).size(parts).size((reduced.count + parts - 1) / parts);
        words.real(static_cast<double>(mean_));
        Places::pass(words, kept);
        Places::pass(words, reduced);
        return words;
    }

    Launcher& launcher_;
    const KernelCall& c_;
    const Kind kind_;
    const DType computed_;
    const Rule rule_;
    int64_t mean_ = 0;  // the divisor of a sum; 0: the reduction is no mean
};

// The type of the computation; none if there is no kernel.
std::optional<DType> computed_of(const KernelCall& c, Kind kind, DType from) {
    const DType to = c.out[0].dtype();
    if (is_complex(from) || is_complex(to)) return {};
    if (kind == Kind::all || kind == Kind::any) return DType::boolean;
    if (is_half(from) || is_half(to)) return DType::f32;
    if (is_extremum(kind)) {
        const bool known = from == DType::f32 || from == DType::f64 || from == DType::i64;
        return known ? std::optional(from) : std::nullopt;
    }
    if (is_float(to)) return to;
    return DType::i64;
}

template <Kind kind>
bool reduce(Launcher& launcher, const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    const std::optional<DType> computed = computed_of(c, kind, x.dtype());
    if (!computed) return false;
    // An empty tensor has a sum, but no mean and no extremum.
    if (x.size() == 0 && (kind == Kind::mean || is_extremum(kind))) return false;
    return Reducer(launcher, c, kind, *computed).run(x, Call(c.op, c.args, c.dtype).axes(1, 0));
}

// Results that need several sums over the same elements, one block each. `result(fold, count, extra)` writes the
// result, where fold(kind, element) is the reduction of that kind over the values of `element`.
template <class Result>
bool reduce_often(Launcher& launcher, const KernelCall& c, const std::string& name, const Tensor& x, size_t axes,
                  double extra, Result result) {
    constexpr int64_t kMostBlocks = 8192;
    const Tensor& out = c.out[0];
    const DType t = x.dtype();
    if ((t != DType::f32 && t != DType::f64) || x.size() == 0) return false;
    Axes kept, reduced;
    split(x, Call(c.op, c.args, c.dtype).axes(axes, 0), kept, reduced);
    Words words;
    words.tensor(x).tensor(out).size(kept.count).size(reduced.count).real(extra);
    Places::pass(words, kept);
    Places::pass(words, reduced);
    const std::string kernel =
        str(name, ' ', name_of(t), ' ', name_of(out.dtype()), ' ', kept.sizes.rank(), ' ', reduced.sizes.rank());
    return launcher.run(kernel, std::min(kept.count, kMostBlocks), kThreads, words, [&](Writer& w) {
        const Elements from = w.tensor(t), to = w.tensor(out.dtype());
        const Number results = w.size(), count = w.size(), number = w.real(t);
        const Places rows(w, kept), columns(w, reduced);
        const Near memory = w.near(t, kThreads);
        w.loop(w.block(), results, w.blocks(), [&](Number i) {
            const Number start = rows.at(w, i);
            auto fold = [&](Kind kind, auto element) {
                const Rule rule = rule_of(kind);
                const Variable total = w.variable(w.constant(t, rule.identity, 0));
                w.for_each_here(
                    count,
                    [&](Number k) {
                        total.set(rule.combine(total.get(), element(from.get(start + columns.at(w, k)))));
                    },
                    kTogether);
                return block_total(rule, total.get(), memory);
            };
            const Number v = result(fold, cast(count, t), number);
            w.when(w.thread() == 0, [&] { to.set(i, cast(v, to.dtype)); });
        });
    });
}

template <bool kRoot>
bool variance(Launcher& launcher, const KernelCall& c) {
    if (c.out[0].dtype() != c.tensor(0).dtype()) return false;
    return reduce_often(launcher, c, kRoot ? "deviation" : "variance", c.tensor(0), 1, c.args[2].number(),
                        [](auto fold, Number count, Number missing) {
                            const Number mean = fold(Kind::sum, [](Number v) { return v; }) / count;
                            const Number squares = fold(Kind::sum, [&](Number v) { return (v - mean) * (v - mean); });
                            const Number freedom = count - missing;
                            const Number var = squares / select(freedom < 0, like(freedom, 0), freedom);
                            return kRoot ? sqrt(var) : var;
                        });
}

bool logsumexp(Launcher& launcher, const KernelCall& c) {
    if (c.out[0].dtype() != c.tensor(0).dtype()) return false;
    return reduce_often(launcher, c, "logsumexp", c.tensor(0), 1, 0, [](auto fold, Number, Number) {
        const Number largest = fold(Kind::amax, [](Number v) { return v; });
        const Number sum = fold(Kind::sum, [&](Number v) { return exp(v - largest); });
        // Infinite maxima and NaN are the result themselves.
        const Number finite = (largest - largest) == 0;
        return select(finite, largest + formula("log", sum), largest);
    });
}

Number size_of_number(Number v) { return formula("abs", v); }

// The ord-th root of the sum of |x|^ord. Scaled by the largest |x| it does not overflow.
bool vector_norm(Launcher& launcher, const KernelCall& c) {
    const double order = norm_order(c.args[1]);
    const DType to = c.out[0].dtype(), t = is_half(to) ? DType::f32 : to;
    const Tensor x = c.tensor(0).cast(t);
    auto largest = [](auto fold) { return fold(Kind::amax, size_of_number); };
    auto run = [&](const char* name, auto result) {
        return reduce_often(launcher, c, name, x, 2, order,
                            [&](auto fold, Number, Number p) { return result(fold, p); });
    };
    if (std::isinf(order) && order > 0) return run("norm inf", [&](auto fold, Number) { return largest(fold); });
    if (std::isinf(order)) return run("norm -inf", [&](auto fold, Number) { return fold(Kind::amin, size_of_number); });
    if (order == 0)
        return run("norm 0", [&](auto fold, Number) {
            return fold(Kind::sum, [](Number v) { return select(v == 0, like(v, 0), like(v, 1)); });
        });
    if (order == 1) return run("norm 1", [&](auto fold, Number) { return fold(Kind::sum, size_of_number); });
    return run(order == 2 ? "norm 2" : "norm", [&](auto fold, Number p) {
        const Number scale = largest(fold);
        // If the largest is zero, infinite or NaN, it is the norm.
        const Number ordinary = (scale > 0) & ((scale - scale) == 0);
        const Number by = select(ordinary, scale, like(scale, 1));
        const Number sum = fold(Kind::sum, [&](Number v) {
            const Number part = size_of_number(v) / by;
            return order == 2 ? part * part : power(part, p);
        });
        const Number root = order == 2 ? sqrt(sum) : power(sum, 1 / p);
        return select(ordinary, scale * root, scale);
    });
}

}  // namespace

void add_reduce_kernels(KernelTable& table) {
    table.add_last("sum", reduce<Kind::sum>);
    table.add_last("mean", reduce<Kind::mean>);
    table.add_last("prod", reduce<Kind::prod>);
    table.add_last("amax", reduce<Kind::amax>);
    table.add_last("amin", reduce<Kind::amin>);
    table.add_last("all", reduce<Kind::all>);
    table.add_last("any", reduce<Kind::any>);
    table.add_last("var", variance<false>);
    table.add_last("std", variance<true>);
    table.add_last("logsumexp", logsumexp);
    table.add_last("vector_norm", vector_norm);
}

}  // namespace lunaria::gpu
