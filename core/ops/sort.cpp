// Operators: sorting, order statistics and search.
// Sorts are stable and put NaN last; everything else here that depends on an order follows from that. Gradients go back
// to the places of the values, by their indices.
#include <cmath>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {

// A 0-d tensor counts as a line of one element.
void check_axis(const Call& call, size_t i) {
    expect_real(call, 0);
    if (call.rank(0) > 0 || call.integer(i) < -1 || call.integer(i) > 0) (void)call.axis(i, 0);
}

int64_t line_length(const Call& call, size_t i) { return call.rank(0) ? call.shape(0)[call.axis(i, 0)] : 1; }

Types infer_sort(const Call& call) {
    check_axis(call, 1);
    return {call.type(0), {DType::i64, call.shape(0)}};
}

Types infer_argsort(const Call& call) {
    check_axis(call, 1);
    return {{DType::i64, call.shape(0)}};
}

// Puts cotangents back at the places of a line's chosen values, all of them or a part: indices have the rank of
// argument 0.
Expr scatter_back(const GradRule& g, int axis, const Expr& indices, const Expr& dout) {
    if (g.rank(0) == 0) return dout.reshape({});
    return call("scatter", {g.builder.zeros_like(g.in(0)), axis, indices, dout});
}

Grads grad_sort(const GradRule& g) { return {scatter_back(g, g.rank(0) ? g.axis(1, 0) : 0, g.outs[1], g.dout)}; }

// topk(input, k, dim, largest, sorted)
int topk_axis(const Call& call) { return call.has(2) ? call.axis(2, 0) : call.rank(0) - 1; }

Types infer_topk(const Call& call) {
    expect_real(call, 0);
    Shape shape = call.shape(0);
    int64_t k = call.integer(1), n = 1;
    if (shape.rank() > 0) {
        int axis = topk_axis(call);
        n = shape[axis];
        shape[axis] = k;
    }
    if (k < 0 || (n != kUnknownDim && k > n) || (shape.rank() == 0 && k != 1))
        throw index_error(call.name(), str("k = ", k, " is out of range: ",
                                           n == 0 ? "the axis is empty"
                                                  : str("the axis has ", n, n == 1 ? " element" : " elements")));
    return {{call.type(0).dtype, shape}, {DType::i64, shape}};
}

Grads grad_topk(const GradRule& g) { return {scatter_back(g, g.rank(0) ? topk_axis(g) : 0, g.outs[1], g.dout)}; }

// One element of each line: (input, axis, keepdims) with the axis at position `at`.
Types select_types(const Call& call, size_t at) {
    check_axis(call, at);
    Shape axes = call.rank(0) ? Shape{call.axis(at, 0)} : Shape{};
    expect_not_empty(call, axes);
    Shape shape = reduced_shape(call.shape(0), axes, call.boolean(at + 1));
    return {{call.type(0).dtype, shape}, {DType::i64, shape}};
}

Grads select_grads(const GradRule& g, size_t at) {
    if (g.rank(0) == 0) return {g.dout};
    int axis = g.axis(at, 0);
    return {scatter_back(g, axis, keep_axes(g.outs[1], g.shape(0), {axis}), keep_axes(g.dout, g.shape(0), {axis}))};
}

Types infer_median(const Call& call) { return select_types(call, 1); }
Grads grad_median(const GradRule& g) { return select_grads(g, 1); }

Types infer_kthvalue(const Call& call) {
    Types types = select_types(call, 2);
    int64_t n = line_length(call, 2), k = call.integer(1);
    if (k < 1 || (n != kUnknownDim && k > n))
        throw index_error(call.name(),
                          str("k = ", k, " is out of range: the axis has ", n, " elements, counted from 1"));
    return types;
}
Grads grad_kthvalue(const GradRule& g) { return select_grads(g, 2); }

std::vector<double> probabilities(const Call& call) {
    const Value& q = call.args[1];
    std::vector<double> list;
    if (q.is_number()) list = {q.number()};
    if (q.is_list())
        for (const Value& item : q.items()) {
            if (!item.is_number())
                throw argument_error(call.name(), str("q holds ", to_string(item), ", not a number"));
            list.push_back(item.number());
        }
    constexpr int64_t kMost = 1 << 24;
    if (q.is_tensor() && q.tensor().size() > kMost)
        throw value_error(call.name(), str("q holds ", q.tensor().size(), " numbers: at most ", kMost, " can be"));
    if (q.is_tensor()) {
        const Tensor numbers = q.tensor().to_host();
        for (int64_t i = 0; i < numbers.size(); ++i) list.push_back(numbers.at(i));
    }
    if (!q.is_number() && !q.is_list() && !(q.is_tensor() && q.tensor().rank() <= 1))
        throw argument_error(call.name(), str("q must be a number or a list of numbers, not ", to_string(q)));
    for (double p : list)
        if (!(p >= 0 && p <= 1)) throw value_error(call.name(), str("q is ", p, ": it must be in 0 .. 1"));
    return list;
}

// Between two neighbours in the order, at the fraction w of the distance.
Expr between(const Expr& low, const Expr& high, const Expr& w) {
    Expr same = call("equal", {w, 0.0});
    return call("where", {same, low, low + (high - low) * w});
}

// (input, q, axis, keepdims, interpolation). The rank of a quantile is q (n - 1), where n leaves out NaN or not.
Expr quantiles(const ExpandCall& c, bool skip_nan) {
    Expr x = c.in(0);
    bool flat = !c.has(2);
    int axis = flat ? 0 : c.rank(0) ? c.axis(2, 0) : 0;
    Shape given = c.shape(0);
    if (flat || c.rank(0) == 0) x = x.reshape({given.size()});
    int64_t n = x.shape()[axis];
    if (n == 0) throw value_error(c.name(), str("the input is empty along the axis (shape ", given, ")"));
    Expr sorted = call("msort", {x, axis});
    Expr present = call("logical_not", {call("isnan", {sorted})});
    // Ranks are counted in f64, whatever the elements are: an f32 holds none above 2^24.
    Expr valid = call("sum", {present, axis, true}).cast(DType::f64);
    Expr last = valid - 1.0;
    if (skip_nan) last = call("maximum", {last, 0.0});
    Expr whole = call("equal", {valid, static_cast<double>(n)});
    const std::string& how = c.string(4);
    // All probabilities at once, side by side along the axis.
    const std::vector<double> wanted = probabilities(c);
    const auto count = static_cast<int64_t>(wanted.size());
    Shape beside;
    beside.resize(x.shape().rank(), 1);
    beside[axis] = count;
    Tensor p = Tensor::empty(DType::f64, beside);
    for (int64_t i = 0; i < count; ++i) p.set_at(i, wanted[static_cast<size_t>(i)]);
    // A line with NaN has it last, and its quantiles are NaN, unless NaN are skipped.
    Expr rank = call("mul", {last, c.builder.constant(p)});
    if (!skip_nan) rank = call("where", {whole, rank, static_cast<double>(n - 1)});
    Expr low = call("floor", {rank}), w = (rank - low).cast(x.dtype());
    Expr high = call("ceil", {rank});
    if (how == "lower") high = low;
    if (how == "higher") low = high;
    if (how == "nearest") low = high = call("round", {rank});
    auto at = [&](const Expr& position) { return call("gather_elements", {sorted, axis, position.cast(DType::i64)}); };
    Expr value = how == "linear"     ? between(at(low), at(high), w)
                 : how == "midpoint" ? (at(low) + at(high)) * 0.5
                                     : at(low);
    // The remaining shape; several probabilities become the first axis.
    const bool keep = c.boolean(3);
    Shape shape = value.shape();
    shape[axis] = 1;
    if (flat || c.rank(0) == 0) {
        shape = {};
        if (keep) shape.resize(given.rank(), 1);
    } else if (!keep) {
        shape.erase(axis);
    }
    bool single = c.args[1].is_number() || (c.args[1].is_tensor() && c.args[1].tensor().rank() == 0);
    if (single) return value.reshape(shape);
    Shape several{count};
    for (int i = 0; i < shape.rank(); ++i) several.push_back(shape[i]);
    return (axis == 0 ? value : call("movedim", {value, axis, 0})).reshape(several);
}

// cov(input, correction, fweights, aweights): variables in rows, observations in columns.
Expr expand_cov(const ExpandCall& c) {
    if (c.rank(0) > 2) throw shape_error(c.name(), str("input must have at most two axes, not shape ", c.shape(0)));
    Shape given = c.shape(0);
    int64_t n = given.rank() == 0 ? 1 : given.back();
    Expr x = c.in(0).reshape({given.rank() == 2 ? given[0] : 1, n});
    Expr w;
    for (size_t i : {size_t{2}, size_t{3}}) {
        if (!c.has(i)) continue;
        if (!(c.shape(i) == Shape{n}) && c.shape(i).known())
            throw shape_error(c.name(), str(param_name(c, i), " has shape ", c.shape(i), ": it must be (", n,
                                            "), one per observation"));
        Expr weight = c.in(i).cast(x.dtype());
        w = w ? w * weight : weight;
    }
    double correction = static_cast<double>(c.integer(1));
    if (!w) {
        Expr centred = x - call("mean", {x, 1, true});
        Expr product =
            call("matmul", {centred, centred.transpose({1, 0})}) / std::max(0.0, static_cast<double>(n) - correction);
        return given.rank() == 2 ? product : product.reshape({});
    }
    Expr total = call("sum", {w});
    Expr centred = x - (x * w).sum({1}, true) / total;
    Expr lost = c.has(3) ? call("sum", {w * c.in(3).cast(x.dtype())}) / total * correction
                         : c.builder.ones_like(total) * correction;
    Expr freedom = call("maximum", {total - lost, 0.0});
    Expr product = call("matmul", {centred * w, centred.transpose({1, 0})}) / freedom;
    return given.rank() == 2 ? product : product.reshape({});
}

Types infer_unique(const Call& call) {
    expect_real(call, 0);
    return {{call.type(0).dtype, {kUnknownDim}}, {DType::i64, call.shape(0)}};
}

// unique_consecutive(input, return_inverse, return_counts, axis)
Types infer_unique_consecutive(const Call& call) {
    expect_real(call, 0);
    Shape values{kUnknownDim}, inverse = call.shape(0);
    if (call.has(3)) {
        values = call.shape(0);
        int axis = call.axis(3, 0);
        values[axis] = kUnknownDim;
        inverse = {call.shape(0)[axis]};
    }
    Types types{{call.type(0).dtype, values}};
    if (call.boolean(1)) types.push_back({DType::i64, inverse});
    if (call.boolean(2)) types.push_back({DType::i64, {kUnknownDim}});
    return types;
}

Types infer_searchsorted(const Call& call) {
    expect_real(call, 0);
    expect_rank_at_least(call, 0, 1);
    Shape sequence = call.shape(0), values = call.shape(1);
    if (sequence.rank() > 1) {
        bool fits = sequence.rank() == values.rank();
        for (int i = 0; fits && i + 1 < values.rank(); ++i)
            fits = sequence[i] == values[i] || sequence[i] < 0 || values[i] < 0;
        if (!fits)
            throw shape_error(call.name(),
                              str("sorted_sequence has shape ", sequence, " and values has shape ", values,
                                  ": all axes but the last must be equal, or sorted_sequence be a vector"));
    }
    return {{call.boolean(2) ? DType::i32 : DType::i64, values}};
}

Types infer_histc(const Call& call) {
    expect_positive(call, 1, call.integer(1));
    if (call.integer(1) > (int64_t{1} << 28))
        throw value_error(call.name(), str("bins is ", call.integer(1), ": too many"));
    if (call.number(2) > call.number(3) || !std::isfinite(call.number(2)) || !std::isfinite(call.number(3)))
        throw value_error(call.name(), str("the range min .. max is ", call.number(2), " .. ", call.number(3),
                                           ": max must not be below min, and both finite"));
    return {{call.dtype, {call.integer(1)}}};
}

Types infer_bincount(const Call& call) {
    expect_rank(call, 0, 1);
    expect_not_negative(call, 2, call.integer(2));
    if (call.integer(2) > (int64_t{1} << 28))
        throw value_error(call.name(), str("minlength is ", call.integer(2), ": too large"));
    if (call.has(1)) expect_same_shape(call, 0, 1);
    return {{call.has(1) ? call.dtype : DType::i64, {kUnknownDim}}};
}

void add_sorts(Registry& ops) {
    ops.add(
           "sort(input_x/input/x: tensor, axis/dim: int = -1, descending: bool = false, *, stable: bool = true) -> "
           "(values, indices)")
        .doc(
            "Sorts along an axis and gives the sorted values and where they were. Equal elements keep their order; NaN "
            "is the largest.")
        .example("sort(tensor{3.0, 1.0, 2.0})", "tensor{1.0, 2.0, 3.0}")
        .infer(infer_sort)
        .grad(grad_sort)
        .batched(batch::along<1>)
        .sample("f32[3,5]")
        .sample("f32[4,2,3], 0, true")
        .sample("i32[7]:(0,4)");
    ops.add("argsort(input/x: tensor, axis/dim: int = -1, descending: bool = false, *, stable: bool = true)")
        .doc("Indices that sort a tensor along an axis. Equal elements keep their order; NaN is the largest.")
        .example("argsort(tensor{3.0, 1.0, 2.0})", "tensor{1, 2, 0}")
        .infer(infer_argsort)
        .no_grad("indices are piecewise constant")
        .batched(batch::along<1>)
        .sample("f32[3,5]")
        .sample("f32[4,2,3], 0, true");
    ops.add("msort(input/x: tensor, axis/dim: int = 0, descending: bool = false)")
        .doc(
            "The sorted values along an axis, the first one if none is given, without their indices, which take more "
            "time than the values. NaN is the largest.")
        .example("msort(tensor{3.0, 1.0, 2.0})", "tensor{1.0, 2.0, 3.0}")
        .infer([](const Call& call) -> Types {
            check_axis(call, 1);
            return {call.type(0)};
        })
        .expand([](const ExpandCall& c) {
            return call("sort", {c.in(0), c.integer(1), c.boolean(2)})[0];
        })
        .batched(batch::along<1>)
        .sample("f32[3,5]")
        .sample("f32[4]")
        .sample("f32[4,2,3], -1, true")
        .sample("i32[7]:(0,4)");
    ops.add(
           "topk(input/x/input_x: tensor, k: int, dim/axis: int? = nil, largest: bool = true, sorted: bool = true) -> "
           "(values, indices)")
        .alias("top_k")
        .doc("The k largest (or smallest) elements along an axis, best first, and their indices. NaN is the largest.")
        .example("topk(tensor{3.0, 1.0, 2.0}, 2)", "tensor{3.0, 2.0}")
        .infer(infer_topk)
        .grad(grad_topk)
        .batched(batch::along<2>)
        .sample("f32[3,5], 2")
        .sample("f32[4,2,3], 3, 0, false")
        .sample("i32[7]:(0,4), 7");
    ops.add(
           "median(input/x: tensor, axis/dim: int = -1, keepdims/keepdim/keep_dims: bool = false) -> (values, indices)")
        .doc("Median along an axis and its index: the lower one of the two middle elements; NaN if there is one.")
        .example("median(tensor{3.0, 1.0, 2.0, 4.0})", "tensor(2.0)")
        .infer(infer_median)
        .grad(grad_median)
        .batched(batch::along<1>)
        .sample("f32[3,5]")
        .sample("f32[4,2,3], 0, true");
    ops.add(
           "nanmedian(input/x: tensor, axis/dim: int = -1, keepdims/keepdim/keep_dims: bool = false) -> (values, "
           "indices)")
        .doc("Median along an axis and its index, among the elements that are not NaN.")
        .example("nanmedian(tensor{3.0, 0/0, 2.0, 4.0})", "tensor(3.0)")
        .infer(infer_median)
        .grad(grad_median)
        .batched(batch::along<1>)
        .sample("f32[3,5]")
        .sample("f32[4,2,3], 0, true");
    ops.add(
           "kthvalue(input/x: tensor, k: int, dim/axis: int = -1, keepdim/keepdims/keep_dims: bool = false) -> "
           "(values, indices)")
        .doc("The k-th smallest element along an axis, counted from 1, and its index.")
        .example("kthvalue(tensor{3.0, 1.0, 2.0}, 2)", "tensor(2.0)")
        .infer(infer_kthvalue)
        .grad(grad_kthvalue)
        .batched(batch::along<2>)
        .sample("f32[3,5], 2")
        .sample("f32[4,2,3], 4, 0, true");
    ops.add(
           "quantile(input/x: float, q: any, axis/dim: int? = nil, keepdims/keepdim/keep_dims: bool = false, *, "
           "interpolation: \"linear\"|\"lower\"|\"higher\"|\"midpoint\"|\"nearest\" = \"linear\")")
        .doc(
            "Quantiles along an axis, or of all elements: q is a probability or a list of them. NaN where a line holds "
            "one.")
        .example("quantile(tensor{0.0, 1.0, 2.0, 3.0}, 0.5)", "tensor(1.5)")
        .expand([](const ExpandCall& c) { return quantiles(c, false); })
        .wide()
        .sample("f32[3,5], 0.3, 1")
        .sample("f32[7], {0.1, 0.5, 1.0}");
    ops.add(
           "nanquantile(input/x: float, q: any, axis/dim: int? = nil, keepdims/keepdim/keep_dims: bool = false, *, "
           "interpolation: \"linear\"|\"lower\"|\"higher\"|\"midpoint\"|\"nearest\" = \"linear\")")
        .doc("Quantiles along an axis, or of all elements, without those that are NaN.")
        .example("nanquantile(tensor{0.0, 1.0, 2.0, 0/0}, 0.5)", "tensor(1.0)")
        .expand([](const ExpandCall& c) { return quantiles(c, true); })
        .wide()
        .sample("f32[3,5], 0.3, 1")
        .sample("f32[7], {0.1, 0.5, 1.0}");
}

void add_searches(Registry& ops) {
    ops.add("unique(input/x: tensor) -> (values, inverse)")
        .doc("The different elements in ascending order, and for each element of the tensor the index of its value.")
        .example("unique(tensor{2, 5, 2, 1})", "tensor{1, 2, 5}")
        .infer(infer_unique)
        .refuse_grad("which elements are kept depends on all of them")
        .sample("i64[7]:(0,4)")
        .sample("f32[2,3]");
    ops.add(
           "unique_consecutive(input/x: tensor, return_inverse/return_idx: bool = false, return_counts: bool = false, "
           "axis/dim: int? = nil)")
        .doc(
            "Keeps the first of each run of equal neighbours, in the flattened tensor or along an axis; can give the "
            "index of each element's run and the lengths of the runs.")
        .example("unique_consecutive(tensor{1, 1, 2, 1})", "tensor{1, 2, 1}")
        .infer(infer_unique_consecutive)
        .refuse_grad("which elements are kept depends on all of them")
        .sample("i64[9]:(0,2), true, true")
        .sample("i32[4,3]:(0,2), true, axis=0");
    ops.add("unique_with_pad(x/input: tensor, pad_num: number) -> (values, inverse)")
        .doc("As unique, but the values are padded with pad_num to the number of elements of the tensor.")
        .example("unique_with_pad(tensor{2, 5, 2, 1}, 0)", "tensor{1, 2, 5, 0}")
        .infer([](const Call& call) -> Types {
            expect_real(call, 0);
            return {{call.type(0).dtype, {call.shape(0).size()}}, {DType::i64, call.shape(0)}};
        })
        .refuse_grad("which elements are kept depends on all of them")
        .sample("i64[7]:(0,4), 9")
        .sample("f32[2,3], 0.5");
    ops.add("bincount(input/x: index, weights: float? = nil, minlength: int = 0)")
        .doc(
            "How often each number from 0 to the largest (at least minlength of them) occurs, or the sum of its "
            "weights.")
        .example("bincount(tensor{0, 2, 2})", "tensor{1, 0, 2}")
        .infer(infer_bincount)
        .grad([](const GradRule& g) -> Grads {
            return {{}, cotangent(g, 1, [&] { return g.call("gather", {g.dout, g.args[0], 0}); }), {}};
        })
        .raises()
        .sample("i64[7]:(0,4)")
        .sample("i64[7]:(0,4), f32[7], 9");
    ops.add("histc(input/x: float, bins: int = 100, min: number = 0.0, max: number = 0.0)")
        .doc(
            "Histogram with equal bins between min and max (of the elements if both are equal); what lies outside is "
            "not counted.")
        .example("histc(tensor{0.0, 1.0, 1.5, 4.0}, 2, 0.0, 2.0)", "tensor{1.0, 2.0}")
        .infer(infer_histc)
        .no_grad("counts are piecewise constant")
        .raises()
        .cut("@histogram")
        .sample("f32[3,5], 5, -2.0, 2.0")
        .sample("f32[7], 3");
    ops.add(
           "searchsorted(sorted_sequence/boundaries: same, values/input: same, *, out_int32: bool = false, right: bool "
           "= false)")
        .doc(
            "Where values would be inserted into an ascending sequence (along the last axis) to keep it sorted: before "
            "equal elements, or after with `right`.")
        .example("searchsorted(tensor{1.0, 2.0, 3.0}, tensor{2.0, 9.0})", "tensor{1, 3}")
        .infer(infer_searchsorted)
        .no_grad("indices are piecewise constant")
        .cut("@lookup")
        .sample("i64[5]:(3,4), f32[2,3]")
        .sample("f32[2,4]:(0,0.001), f32[2,3], right=true");
    ops.add("bucketize(input/x: tensor, boundaries: any, *, out_int32: bool = false, right: bool = false)")
        .doc(
            "Index of the bucket that each element falls into, given ascending boundaries: before equal boundaries, or "
            "after with `right`.")
        .example("bucketize(tensor{0.5, 3.0}, {1.0, 2.0})", "tensor{0, 2}")
        .expand([](const ExpandCall& c) {
            Expr bounds = c.in(1);
            if (c.args[1].is_list()) {
                std::vector<double> numbers;
                for (const Value& v : c.args[1].items()) {
                    if (!v.is_number())
                        throw argument_error(c.name(), str("boundaries holds ", to_string(v), ", not a number"));
                    numbers.push_back(v.number());
                }
                DType t = is_float(c.type(0).dtype) ? c.type(0).dtype : DType::f64;
                bounds = c.builder.constant(
                    Tensor::from(std::span<const double>(numbers), {static_cast<int64_t>(numbers.size())}).cast(t));
            } else if (!c.args[1].is_tensor() && !c.args[1].is_node()) {
                throw argument_error(
                    c.name(), str("boundaries must be a list of numbers or a tensor, not ", to_string(c.args[1])));
            }
            return call("searchsorted", {bounds, c.in(0), {"out_int32", c.args[2]}, {"right", c.args[3]}});
        })
        .sample("f32[3,5], {-1.0, 0.0, 2.0}")
        .sample("i32[7], {1, 5}, right=true");
    ops.add("cov(input/x: float, *, correction/ddof: int = 1, fweights: tensor? = nil, aweights: tensor? = nil)")
        .doc(
            "Covariance matrix of the variables in the rows, over the observations in the columns; fweights count "
            "observations, aweights weigh them.")
        .example("cov(tensor{{1.0, 2.0, 3.0}, {3.0, 2.0, 1.0}})", "tensor{{1.0, -1.0}, {-1.0, 1.0}}")
        .expand(expand_cov)
        .wide()
        .sample("f32[3,5]")
        .sample("f32[2,4], fweights=i64[4]:(1,4), aweights=f32[4]:(0.5,2)");
}

}  // namespace

void add_sort_ops(Registry& ops) {
    add_sorts(ops);
    add_searches(ops);
}

}  // namespace lunaria
