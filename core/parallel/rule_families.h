// The rules of families of operators. Each function makes the rule of a call; null where it does not cover the call.
#pragma once

#include "core/parallel/rule.h"

namespace lunaria::parallel {

using RulePtr = std::unique_ptr<Rule>;

// From the text of an entry (Op::cut). Either one group for each tensor parameter and each result, `-` for one that
// stays whole: `...` are leading axes that broadcast, letters are axes. `!x` cannot be cut, `&x` is reduced and used
// afterwards; after the groups `x:max` tells how incomplete results are merged (sums where nothing is said), and `+`
// that incomplete sums pass if all operands are such. Or "@family words", where axes depend on attributes: one of the
// functions below, which reads the words.
RulePtr text_rule(const Call& call, const Types& types, std::string_view text);

using RuleFn = RulePtr (*)(const Call&, const Types&, std::string_view words);

// Axes (rules_axes.cpp): all of them pass; some are reduced ("sum", "mean", "max" …, "&"); one or some are worked
// along, the last ones are whole.
RulePtr broadcast_rule(const Call& call, const Types& types, std::string_view words);
RulePtr reduction_rule(const Call& call, const Types& types, std::string_view words);
RulePtr along_rule(const Call& call, const Types& types, std::string_view words);
RulePtr last_axes_rule(const Call& call, const Types& types, int whole);
RulePtr items_rule(const Call& call, const Types& types, std::string_view words);
RulePtr lookup_rule(const Call& call, const Types& types, std::string_view words);
RulePtr reversal_rule(const Call& call, const Types& types, std::string_view words);
RulePtr histogram_rule(const Call& call, const Types& types, std::string_view words);
RulePtr triangle_rule(const Call& call, const Types& types, std::string_view words);

// Shapes and places (rules_views.cpp, rules_parts.cpp). A replaced part is named by the view that it is.
RulePtr view_rule(const Call& call, const Types& types, std::string_view words);
RulePtr slice_rule(const Call& call, const Types& types, std::string_view words);
RulePtr flip_rule(const Call& call, const Types& types, std::string_view words);
RulePtr reshape_rule(const Call& call, const Types& types, std::string_view words);
RulePtr concat_rule(const Call& call, const Types& types, std::string_view words);
RulePtr replaced_part_rule(const Call& call, const Types& types, std::string_view words);

// Products and windows (rules_products.cpp, rules_attention.cpp, rules_windows.cpp).
RulePtr product_rule(const Call& call, const Types& types, std::string_view words);
RulePtr dense_rule(const Call& call, const Types& types, std::string_view words);  // "affine"
RulePtr solved_rule(const Call& call, const Types& types, std::string_view words);
RulePtr attention_rule(const Call& call, const Types& types, std::string_view words);  // "grad"
RulePtr cache_attention_rule(const Call& call, const Types& types, std::string_view words);
RulePtr convolution_rule(const Call& call, const Types& types, std::string_view words);  // "last", "relu"
RulePtr conv_input_grad_rule(const Call& call, const Types& types, std::string_view words);
RulePtr conv_weight_grad_rule(const Call& call, const Types& types, std::string_view words);
RulePtr window_rule(const Call& call, const Types& types, std::string_view words);  // "last"
// The last axes, which one result is made of, are whole: a number of them, or "list" and a parameter with one entry for
// each.
RulePtr planes_rule(const Call& call, const Types& types, std::string_view words);
RulePtr plane_gather_rule(const Call& call, const Types& types, std::string_view words);

// Elements by index (rules_index.cpp).
RulePtr gather_rule(const Call& call, const Types& types, std::string_view words);
RulePtr gather_elements_rule(const Call& call, const Types& types, std::string_view words);
RulePtr gather_nd_rule(const Call& call, const Types& types, std::string_view words);
RulePtr index_add_rule(const Call& call, const Types& types, std::string_view words);
RulePtr scatter_elements_rule(const Call& call, const Types& types, std::string_view words);
RulePtr scatter_nd_rule(const Call& call, const Types& types, std::string_view words);
RulePtr segments_rule(const Call& call, const Types& types, std::string_view words);  // "sum", "max" …
RulePtr one_hot_rule(const Call& call, const Types& types, std::string_view words);

// Results made from attributes and random numbers (rules_made.cpp). "sized": of one value, in the size of the piece.
RulePtr made_rule(const Call& call, const Types& types, std::string_view words);
RulePtr dropout_rule(const Call& call, const Types& types, std::string_view words);

// Normalisations (rules_norms.cpp).
RulePtr layer_norm_rule(const Call& call, const Types& types, std::string_view words);  // "rms"
RulePtr layer_norm_grad_rule(const Call& call, const Types& types, std::string_view words);
RulePtr batch_norm_rule(const Call& call, const Types& types, std::string_view words);
RulePtr group_norm_rule(const Call& call, const Types& types, std::string_view words);  // "grad"

// Whole calls made of operators that each have a rule (spread.cpp).
Value spread_expansion(const Rule& rule, Builder& b, std::span<const Value> global);
bool has_spread_expansion(const Op& op);

// Axes of operands and results that go together: the factors of result axes, aligned from the right, for an operand
// that broadcasts.
void align(Operand& operand, const std::vector<AxisFactors>& axes, const Shape& shape);
bool has_no_elements(const Region& region);

}  // namespace lunaria::parallel
