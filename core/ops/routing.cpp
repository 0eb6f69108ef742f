// Operators: rows to experts and back, for mixtures of experts, and attention for programs that only predict.
#include <algorithm>

#include "core/operator/infer.h"
#include "core/ops/families.h"

namespace lunaria {

namespace {

void refuse_padded(const Call& c, size_t i) {
    if (c.boolean(i)) throw argument_error(c.name(), "padded_mode is not supported: rows are sent without padding");
}

// moe_token_permute(tokens, indices, num_out_tokens, padded_mode)
Expr expand_permute(const ExpandCall& c) {
    refuse_padded(c, 3);
    expect_rank(c, 0, 2);
    const Shape tokens = c.shape(0), indices = c.shape(1);
    if (indices.rank() < 1 || indices.rank() > 2 || indices[0] != tokens[0])
        throw shape_error(c.name(), str("indices has shape ", indices, ": it must be (", tokens[0], ") or (", tokens[0],
                                        ", experts of a token), as tokens is ", tokens));
    const int64_t each = indices.rank() == 2 ? indices[1] : 1, count = tokens[0] * each;
    int64_t kept = c.has(2) ? c.integer(2) : count;
    if (kept <= 0) kept += count;
    kept = std::clamp<int64_t>(kept, 0, count);
    const Expr order = c.call("argsort", {c.in(1).reshape({count}), 0, false, {"stable", true}});
    const Expr place = c.call("argsort", {order, 0}).cast(DType::i32);
    const Expr rows = c.call("floor_divide", {c.call("narrow", {order, 0, 0, kept}), std::max<int64_t>(each, 1)});
    const Value both[] = {c.call("gather", {c.in(0), rows, 0}).value(), place.value()};
    return {c.builder, c.builder.tuple({both[0], both[1]})};
}

// moe_token_unpermute(permuted_tokens, sorted_indices, probs, padded_mode, restore_shape)
Expr expand_unpermute(const ExpandCall& c) {
    refuse_padded(c, 3);
    expect_rank(c, 0, 2);
    expect_rank(c, 1, 1);
    const Shape permuted = c.shape(0);
    const int64_t count = c.shape(1)[0], width = permuted[1];
    int64_t tokens = count;
    if (c.has(2)) {
        expect_rank(c, 2, 2);
        tokens = c.shape(2)[0];
        if (tokens * c.shape(2)[1] != count)
            throw shape_error(c.name(), str("probs has shape ", c.shape(2), " for ", count, " sorted_indices"));
    }
    if (permuted[0] == 0) return c.call("zeros", {Shape{tokens, width}, {"dtype", c.in(0).dtype()}});
    // Rows that were not kept count as zeros.
    const Expr index = c.in(1), is_there = c.call("less", {index, permuted[0]}).reshape({count, 1});
    Expr rows = c.call("gather", {c.in(0), c.call("minimum", {index, permuted[0] - 1}), 0});
    rows = c.call("where", {is_there, rows, 0});
    if (!c.has(2)) return rows;
    const int64_t each = c.shape(2)[1];
    return (rows.reshape({tokens, each, width}) * c.in(2).cast(rows.dtype()).reshape({tokens, each, 1})).sum({1});
}

// The keys after the end of their sequence: (batch, 1, 1, keys), true where hidden.
Expr behind_end(const ExpandCall& c, size_t i, int64_t batch, int64_t keys) {
    const std::vector<int64_t> lengths = c.ints(i);
    const auto given = static_cast<int64_t>(lengths.size());
    if (batch < 0 || keys < 0)
        throw shape_error(c.name(), str(param_name(c, i), " needs operands whose sizes are known"));
    if (given != 1 && given != batch)
        throw value_error(c.name(), str(param_name(c, i), " has ", lengths.size(), " lengths for a batch of ", batch));
    Tensor hidden = Tensor::empty(DType::boolean, {batch, 1, 1, keys});
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t k = 0; k < keys; ++k)
            hidden.data<bool>()[b * keys + k] = k >= lengths[given == 1 ? 0 : static_cast<size_t>(b)];
    return c.builder.constant(hidden);
}

// The places of the parameters of prompt_flash_attention and incre_flash_attention.
struct Places {
    size_t mask, lengths, shift, first_unsupported, last_unsupported, heads, scale, layout, key_heads;
};

// `sparse`: sparse_mode and the parameters that go with it, or nothing.
Expr predict(const ExpandCall& c, const Places& at, std::optional<std::array<size_t, 3>> sparse) {
    for (size_t i = at.first_unsupported; i <= at.last_unsupported; ++i)
        if (c.has(i)) throw argument_error(c.name(), str(param_name(c, i), " is not supported: leave it out"));
    const std::string layout = c.string(at.layout);
    const bool is_flat = layout == "BSH";
    for (size_t i = 0; i < 3; ++i) expect_rank(c, i, is_flat ? 3 : 4);
    const int64_t heads = c.integer(at.heads), key_heads = c.integer(at.key_heads);
    expect_positive(c, at.heads, heads);
    const Shape query = c.shape(0), key = c.shape(1);
    const int64_t found = is_flat ? key[2] / std::max<int64_t>(query[2] / heads, 1) : key[layout == "BNSD" ? 1 : 2];
    if (key_heads != 0 && key_heads != found)
        throw value_error(c.name(), str("num_key_value_heads is ", key_heads, ", but key has ", found, " heads"));
    const int64_t keys = layout == "BNSD" ? key[2] : key[1];
    Expr mask;
    if (c.has(at.mask)) {
        mask = c.in(at.mask);
        if (mask.dtype() != DType::boolean) mask = c.call("not_equal", {mask, 0});
        const Shape m = mask.shape();
        if (!sparse && m.rank() == 2) mask = mask.reshape({m[0], 1, 1, m[1]});
        if (m.rank() == 3) mask = mask.reshape({m[0], 1, m[1], m[2]});
    }
    const bool is_masked = static_cast<bool>(mask);
    if (c.has(at.lengths)) {
        const Expr hidden = behind_end(c, at.lengths, query[0], keys);
        mask = mask ? c.call("logical_or", {mask, hidden}) : hidden;
    }
    constexpr int64_t kFarAway = 2147483647;
    const int64_t mode = sparse ? c.integer((*sparse)[0]) : 0;
    // Without a mask the window of mode 0 does not count.
    const bool has_window = sparse && (mode == 4 || (mode == 0 && is_masked));
    return c.call("flash_attention_score", {c.in(0),
                                            c.in(1),
                                            c.in(2),
                                            heads,
                                            {"real_shift", c.has(at.shift) ? c.in(at.shift) : Expr()},
                                            {"attn_mask", mask},
                                            {"scalar_value", c.number(at.scale)},
                                            {"pre_tokens", has_window ? c.integer((*sparse)[1]) : kFarAway},
                                            {"next_tokens", has_window ? c.integer((*sparse)[2]) : kFarAway},
                                            {"input_layout", Value(layout)},
                                            {"sparse_mode", mode}});
}

Expr expand_prompt(const ExpandCall& c) {
    if (c.has(4)) throw argument_error(c.name(), "actual_seq_lengths is not supported: hide queries with attn_mask");
    return predict(c, {3, 5, 6, 7, 11, 12, 13, 16, 17}, std::array<size_t, 3>{18, 14, 15});
}

Expr expand_incremental(const ExpandCall& c) {
    if (c.integer(18) != 0) throw argument_error(c.name(), "block_size must be 0: keys lie in one piece");
    return predict(c, {3, 4, 5, 6, 13, 14, 16, 15, 17}, {});
}

}  // namespace

void add_routing_ops(Registry& ops) {
    ops.add(
           "moe_token_permute(tokens: float, indices: index, num_out_tokens: int? = nil, padded_mode: bool = false) -> "
           "(permuted_tokens, sorted_indices)")
        .doc(
            "The rows of tokens in the order of their experts, indices[token, k], each as often as it has experts, and "
            "the place that each has got. num_out_tokens keeps only so many rows; 0 or less leaves out so many.")
        .example("moe_token_permute(tensor{{1.0}, {2.0}, {3.0}}, tensor{1, 0, 1})", "tensor{{2.0}, {1.0}, {3.0}}")
        .expand(expand_permute)
        .sample("f32[4,3], i64[4,2]:(0,5)")
        .sample("f32[5,2], i64[5]:(0,3), 3");
    ops.add(
           "moe_token_unpermute(permuted_tokens: float, sorted_indices: index, probs: float? = nil, padded_mode: bool "
           "= false, restore_shape: ints? = nil)")
        .doc(
            "Brings rows of moe_token_permute back into the order of their tokens; with probs (token, experts of a "
            "token) those of one token are added up, weighted by it.")
        .example("moe_token_unpermute(tensor{{2.0}, {1.0}, {3.0}}, tensor{1, 0, 2})", "tensor{{1.0}, {2.0}, {3.0}}")
        .expand(expand_unpermute)
        .wide()
        .sample("f32[8,3], i64[8]:(0,7), f32[4,2]")
        .sample("f32[3,2], i64[5]:(0,4)");
    ops.add(
           "prompt_flash_attention(query: float, key: float, value: float, attn_mask: tensor? = nil, "
           "actual_seq_lengths: ints? = nil, actual_seq_lengths_kv: ints? = nil, pse_shift: float? = nil, "
           "deq_scale1: tensor? = nil, quant_scale1: tensor? = nil, deq_scale2: tensor? = nil, quant_scale2: tensor? = "
           "nil, quant_offset2: tensor? = nil, num_heads: int = 1, scale_value: number = 1.0, pre_tokens: int = "
           "2147483547, next_tokens: int = 0, input_layout: \"BSH\"|\"BNSD\"|\"BSND\" = \"BSH\", num_key_value_heads: "
           "int = 0, sparse_mode: int = 0, inner_precise: int = 1)")
        .doc(
            "Scaled dot-product attention over a whole prompt, as flash_attention_score: softmax(query key^T "
            "scale_value + pse_shift) value per head. attn_mask is true where a key is hidden; without one, "
            "sparse_mode "
            "0 hides none.")
        .example(
            "prompt_flash_attention(zeros({1, 1, 2, 2}), zeros({1, 1, 2, 2}), tensor{{{{1.0, 2.0}, {3.0, 4.0}}}}, "
            "{input_layout = \"BNSD\"})",
            "tensor{{{{2.0, 3.0}, {2.0, 3.0}}}}")
        .expand(expand_prompt)
        .sample("f32[2,3,8], f32[2,5,8], f32[2,5,8], num_heads=2, scale_value=0.5")
        .sample("f32[1,3,8], f32[1,3,4], f32[1,3,4], attn_mask=bool[1,3,3], num_heads=4, num_key_value_heads=2");
    ops.add(
           "incre_flash_attention(query: float, key: float, value: float, attn_mask: tensor? = nil, "
           "actual_seq_lengths: "
           "ints? = nil, pse_shift: float? = nil, dequant_scale1: tensor? = nil, quant_scale1: tensor? = nil, "
           "dequant_scale2: tensor? = nil, quant_scale2: tensor? = nil, quant_offset2: tensor? = nil, antiquant_scale: "
           "tensor? = nil, antiquant_offset: tensor? = nil, block_table: tensor? = nil, num_heads: int = 1, "
           "input_layout: \"BSH\"|\"BNSD\"|\"BSND\" = \"BSH\", scale_value: number = 1.0, num_key_value_heads: int = "
           "0, "
           "block_size: int = 0, inner_precise: int = 1)")
        .doc(
            "Scaled dot-product attention of one more query over all keys so far: softmax(query key^T scale_value + "
            "pse_shift) value per head. actual_seq_lengths has the number of keys of each sample.")
        .example(
            "incre_flash_attention(zeros({1, 1, 1, 2}), zeros({1, 1, 2, 2}), tensor{{{{1.0, 2.0}, {3.0, 4.0}}}}, "
            "{input_layout = \"BNSD\"})",
            "tensor{{{{2.0, 3.0}}}}")
        .expand(expand_incremental)
        .sample("f32[2,1,8], f32[2,5,8], f32[2,5,8], num_heads=2, actual_seq_lengths={3,5}")
        .sample("f32[2,1,8], f32[2,5,4], f32[2,5,4], attn_mask=bool[2,5], num_heads=4");
}

}  // namespace lunaria
