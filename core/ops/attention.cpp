// Operators: embedding, attention, position embedding and other parts of sequence models. Composites, but for the
// attention itself (fused_attention.cpp).
#include <cmath>

#include "core/base/interrupt.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

// The number of times each index of `input` occurs in it, in the shape of `input`.
Expr occurrences(const ExpandCall& c, const Expr& input) {
    Shape flat{input.shape().size()};
    Expr list = input.reshape(flat);
    Expr same = c.call("equal", {list.reshape({flat[0], 1}), list.reshape({1, flat[0]})});
    return same.cast(c.type(1).dtype).sum({1}).reshape(input.shape());
}

Expr expand_embedding(const ExpandCall& c) {
    expect_rank(c, 1, 2);
    int64_t rows = c.shape(1)[0];
    Expr input = c.in(0), weight = c.in(1);
    if (c.has(3)) {
        // Rows that are longer than max_norm are used as if scaled down to it.
        double most = c.number(3);
        Expr length = c.call("vector_norm", {weight, {"ord", c.args[4]}, {"dim", int64_t{1}}, {"keepdim", true}});
        Expr factor = c.call("minimum", {most / (length + 1e-7), 1.0});
        weight = weight * c.call("stop_gradient", {factor});
    }
    Expr found = c.call("gather", {weight, input, 0});
    Shape column = input.shape();
    column.push_back(1);
    if (c.boolean(5)) {
        // The value stays; the gradient of each occurrence is divided by their number.
        Expr share = 1.0 / occurrences(c, input).reshape(column);
        found = found * share + c.call("stop_gradient", {found}) * (1.0 - share);
    }
    if (!c.has(2)) return found;
    int64_t padding = c.integer(2);
    if (padding < -rows || padding >= rows)
        throw index_error(c.name(), str("padding_idx ", padding, " is out of range for ", rows, " rows: valid are ",
                                        -rows, " to ", rows - 1));
    if (padding < 0) padding += rows;
    Expr is_padding = c.call("equal", {input, padding}).reshape(column);
    return c.call("where", {is_padding, c.call("stop_gradient", {found}), found});
}

enum FlashParam : size_t {
    kQuery,
    kKey,
    kValue,
    kHeads,
    kRealShift,
    kDropMask,
    kPaddingMask,
    kAttnMask,
    kPrefix,
    kQueryLengths,
    kKeyLengths,
    kKeepProb,
    kScale,
    kPreTokens,
    kNextTokens,
    kInnerPrecise,
    kLayout,
    kSparseMode
};

// To (batch, heads, sequence, head size) from the layout that the caller uses.
Expr to_bnsd(const Call& c, const Expr& x, const std::string& layout, int64_t heads) {
    Shape s = x.shape();
    int rank = layout == "BSH" || layout == "SBH" ? 3 : 4;
    if (s.rank() != rank)
        throw shape_error(c.name(),
                          str("an operand has shape ", s, ", but the layout ", layout, " has ", rank, " axes"));
    if (layout == "BNSD") return x;
    if (layout == "BSND") return x.transpose({0, 2, 1, 3});
    if (heads <= 0 || s[2] % heads)
        throw shape_error(c.name(), str("an operand has shape ", s, ": its last axis (", s[2],
                                        ") must be divisible by the number of heads (", heads, ")"));
    Expr split = x.reshape({s[0], s[1], heads, s[2] / heads});
    return layout == "BSH" ? split.transpose({0, 2, 1, 3}) : split.transpose({1, 2, 0, 3});
}

Expr from_bnsd(const Expr& x, const std::string& layout) {
    if (layout == "BNSD") return x;
    Expr moved = layout == "SBH" ? x.transpose({2, 0, 1, 3}) : x.transpose({0, 2, 1, 3});
    if (layout == "BSND") return moved;
    Shape s = moved.shape();
    return moved.reshape({s[0], s[1], s[2] * s[3]});
}

// The number of keys from which on a window counts as without end.
constexpr int64_t kFarAway = 2147483647;

// True where query i must not see key j: outside i + shift - before <= j <= i + shift + after.
Tensor band_mask(int64_t queries, int64_t keys, int64_t shift, int64_t before, int64_t after) {
    Tensor mask = Tensor::empty(DType::boolean, {queries, keys});
    bool* at = mask.data<bool>();
    constexpr int64_t kFar = int64_t{1} << 31;
    before = std::clamp(before, -kFar, kFar);
    after = std::clamp(after, -kFar, kFar);
    for_elements(queries * keys, [&](int64_t n) {
        const int64_t i = n / keys, j = n % keys;
        at[n] = j < i + shift - before || j > i + shift + after;
    });
    return mask;
}

// The mask of hidden keys, or nothing.
Expr hidden_keys(const ExpandCall& c, int64_t queries, int64_t keys) {
    int64_t mode = c.integer(kSparseMode), before = c.integer(kPreTokens), after = c.integer(kNextTokens);
    auto band = [&](int64_t shift, int64_t b, int64_t a) {
        return c.builder.constant(band_mask(queries, keys, shift, b, a));
    };
    if (mode == 2) return band(0, kFarAway, 0);
    if (mode == 3) return band(keys - queries, kFarAway, 0);
    if (mode == 4) return band(keys - queries, before, after);
    if (mode != 0 && mode != 1)
        throw value_error(c.name(), str("sparse_mode is ", mode, ": it must be between 0 and 4"));
    Expr mask;
    if (c.has(kAttnMask)) {
        mask = c.in(kAttnMask);
        if (mask.dtype() != DType::boolean) mask = c.call("not_equal", {mask, 0});
    }
    if (mode == 0 && (before < kFarAway || after < kFarAway)) {
        Expr window = band(0, before, after);
        mask = mask ? c.call("logical_or", {mask, window}) : window;
    }
    return mask;
}

Expr expand_flash_attention(const ExpandCall& c) {
    for (size_t i : {kPaddingMask, kPrefix, kQueryLengths, kKeyLengths})
        if (c.has(i))
            throw argument_error(c.name(), str(param_name(c, i), " is not supported"))
                .hint("say the same with attn_mask, where true hides a key");
    double keep = c.number(kKeepProb);
    if (!(keep > 0 && keep <= 1)) throw value_error(c.name(), str("keep_prob must be in (0, 1], not ", keep));
    if (keep < 1 && !c.has(kDropMask))
        throw argument_error(c.name(), str("keep_prob is ", keep, ", but there is no drop_mask to say what is kept"));
    int64_t heads = c.integer(kHeads);
    expect_positive(c, kHeads, heads);
    const std::string& layout = c.string(kLayout);
    Expr q = to_bnsd(c, c.in(kQuery), layout, heads);
    Shape qs = q.shape();
    if (qs[1] != heads)
        throw shape_error(c.name(), str("query is ", c.shape(kQuery), " in the layout ", layout, ": it has ", qs[1],
                                        " heads, but head_num is ", heads));
    // Keys and values may have fewer heads, each for a group of the query's.
    int64_t size = qs[3];
    expect_rank_at_least(c, kKey, 3);
    int64_t key_heads = layout == "BSH" || layout == "SBH" ? c.shape(kKey).back() / std::max<int64_t>(size, 1) : 0;
    Expr k = to_bnsd(c, c.in(kKey), layout, key_heads), v = to_bnsd(c, c.in(kValue), layout, key_heads);
    Shape ks = k.shape(), vs = v.shape();
    if (ks[0] != qs[0] || ks[3] != size || vs[0] != ks[0] || vs[1] != ks[1] || vs[2] != ks[2] || ks[1] == 0 ||
        heads % ks[1])
        throw shape_error(
            c.name(), str("query is ", c.shape(kQuery), ", key is ", c.shape(kKey), " and value is ", c.shape(kValue),
                          ": they do not fit together in the layout ", layout, " with ", heads, " heads"));
    int64_t group = heads / ks[1];
    if (group > 1) {
        q = q.reshape({qs[0], ks[1], group, qs[2], size});
        k = k.reshape({ks[0], ks[1], 1, ks[2], size});
        v = v.reshape({vs[0], vs[1], 1, vs[2], vs[3]});
    }
    int64_t mode = c.integer(kSparseMode), shift = mode == 3 ? ks[2] - qs[2] : 0;
    bool whole =
        mode == 0 && !c.has(kAttnMask) && c.integer(kPreTokens) >= kFarAway && c.integer(kNextTokens) >= kFarAway;
    if (group == 1 && !c.has(kRealShift) && !c.has(kDropMask) && (whole || mode == 2 || mode == 3))
        return from_bnsd(c.call("attention", {q, k, v, c.number(kScale), !whole, shift}), layout);
    Shape score_shape{qs[0], heads, qs[2], ks[2]};
    Expr scores = (matmul(q, matrix_transpose(k)) * c.number(kScale)).reshape(score_shape);
    if (c.has(kRealShift)) scores = scores + c.in(kRealShift);
    Expr hidden = hidden_keys(c, qs[2], ks[2]);
    if (hidden) {
        // A finite number rather than -inf, so that a query which sees no key at all gets 0 and not NaN.
        double lowest = scores.dtype() == DType::f16 ? -65504.0 : -3.0e38;
        scores = c.call("where", {hidden, lowest, scores});
    }
    Expr weights = c.call("softmax", {scores, -1});
    if (hidden) weights = c.call("where", {hidden, 0.0, weights});
    if (c.has(kDropMask)) weights = weights * c.in(kDropMask).cast(weights.dtype()) / keep;
    if (group > 1) weights = weights.reshape({qs[0], ks[1], group, qs[2], ks[2]});
    Expr out = matmul(weights, v);
    return from_bnsd(out.reshape({qs[0], heads, qs[2], vs[3]}), layout);
}

Expr expand_bias_add(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    expect_rank(c, 1, 1);
    Shape x = c.shape(0), b = c.shape(1);
    if (x[1] != b[0])
        throw shape_error(c.name(), str("input is ", x, " and bias is ", b,
                                        ": bias must have one number for each of the ", x[1], " channels (axis 1)"));
    Shape channel{b[0]};
    for (int i = 2; i < x.rank(); ++i) channel.push_back(1);
    return c.in(0) + c.in(1).reshape(channel);
}

// Part of the last axis.
Expr last_axis_part(const ExpandCall& c, const Expr& x, int64_t begin, int64_t size) {
    Shape first, sizes = x.shape();
    first.resize(x.rank(), 0);
    for (int i = 0; i < x.rank(); ++i) first[i] = 0;
    first[x.rank() - 1] = begin;
    sizes[x.rank() - 1] = size;
    return c.call("slice", {x, first, sizes});
}

Expr expand_rotary(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 1);
    Expr x = c.in(0);
    Shape s = x.shape();
    int64_t n = s.back(), mode = c.integer(3);
    if (mode != 0 && mode != 1) throw value_error(c.name(), str("mode is ", mode, ": 0 is half, 1 is interleaved"));
    if (n % 2) throw shape_error(c.name(), str("x is ", s, ": its last axis (", n, ") must be even"));
    Expr turned;
    if (mode == 0) {
        Expr halves[] = {-last_axis_part(c, x, n / 2, n / 2), last_axis_part(c, x, 0, n / 2)};
        turned = c.call("concat", {c.builder.list(halves), -1});
    } else {
        Shape pairs = s;
        pairs[s.rank() - 1] = n / 2;
        pairs.push_back(2);
        Expr p = x.reshape(pairs);
        Expr both[] = {-last_axis_part(c, p, 1, 1), last_axis_part(c, p, 0, 1)};
        turned = c.call("concat", {c.builder.list(both), -1}).reshape(s);
    }
    Expr out = x * c.in(1) + turned * c.in(2);
    if (!(out.shape() == s))
        throw shape_error(c.name(), str("x is ", s, ", cos is ", c.shape(1), " and sin is ", c.shape(2),
                                        ": cos and sin must broadcast to the shape of x"));
    return out;
}

}  // namespace

void add_attention_ops(Registry& ops) {
    ops.add(
           "embedding(input/indices: index, weight: float, padding_idx: int? = nil, max_norm: number? = nil, "
           "norm_type: number = 2.0, scale_grad_by_freq: bool = false)")
        .doc(
            "Rows of weight for the indices in input. The row padding_idx gets no gradient; rows whose norm is above "
            "max_norm count as scaled down to it.")
        .example("embedding(tensor{2, 0}, tensor{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}})",
                 "tensor{{5.0, 6.0}, {1.0, 2.0}}")
        .expand(expand_embedding)
        .sample("i64[2,3]:(0,7), f32[7,4]")
        .sample("i64[5]:(0,3), f32[3,2]");
    ops.add(
           "flash_attention_score(query: float, key: float, value: float, head_num: int, real_shift: float? = nil, "
           "drop_mask: tensor? = nil, padding_mask: tensor? = nil, attn_mask: tensor? = nil, prefix: any = nil, "
           "actual_seq_qlen: any = nil, actual_seq_kvlen: any = nil, keep_prob: number = 1.0, "
           "scalar_value: number = 1.0, pre_tokens: int = 2147483647, next_tokens: int = 2147483647, "
           "inner_precise: int = 0, input_layout: \"BSH\"|\"BNSD\"|\"SBH\"|\"BSND\" = \"BSH\", sparse_mode: int = 0)")
        .doc(
            "Scaled dot-product attention: softmax(query key^T scalar_value + real_shift) value per head. attn_mask is "
            "true where a key is hidden; sparse_mode 2 and 3 hide the keys after the query, 4 those outside a band. "
            "Key and value may have fewer heads than query.")
        .example(
            "flash_attention_score(zeros({1, 1, 2, 2}), zeros({1, 1, 2, 2}), tensor{{{{1.0, 2.0}, {3.0, 4.0}}}}, 1, "
            "{input_layout = \"BNSD\"})",
            "tensor{{{{2.0, 3.0}, {2.0, 3.0}}}}")
        .expand(expand_flash_attention)
        .sample("f32[2,2,3,4], f32[2,2,5,4], f32[2,2,5,4], 2, scalar_value=0.5, input_layout=\"BNSD\"")
        .sample("f32[1,3,8], f32[1,3,4], f32[1,3,4], 4, sparse_mode=3")
        .sample("f32[3,2,4], f32[3,2,4], f32[3,2,4], 2, attn_mask=bool[3,3], input_layout=\"SBH\"");
    ops.add("bias_add(input_x/input/x: float, bias/b: float)")
        .doc("Adds one number per channel (axis 1).")
        .example("bias_add(tensor{{1.0, 2.0}}, tensor{10.0, 20.0})", "tensor{{11.0, 22.0}}")
        .expand(expand_bias_add)
        .sample("f32[2,3], f32[3]")
        .sample("f32[2,3,5,1], f32[3]");
    ops.add("rotary_position_embedding(x/input: float, cos: float, sin: float, mode: int = 0)")
        .doc(
            "Rotates pairs of the last axis: x cos + turned sin, where turned is (-second half, first half) in mode 0 "
            "and pairs of neighbours are turned in mode 1.")
        .example("rotary_position_embedding(tensor{1.0, 2.0}, zeros({2}), ones({2}))", "tensor{-2.0, 1.0}")
        .expand(expand_rotary)
        .sample("f32[2,2,4,6], f32[1,1,4,6], f32[1,1,4,6]")
        .sample("f32[3,2], f32[3,2], f32[2], mode=1");
    add_image_ops(ops);
    add_placed_ops(ops);
    add_fused_attention_ops(ops);
    add_language_ops(ops);
}

}  // namespace lunaria
