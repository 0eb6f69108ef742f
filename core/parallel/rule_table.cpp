// The source of an operator's rule: the text in its entry, the family that the text names, or a rule derived from how
// vmap treats the operator.
#include <algorithm>
#include <array>

#include "core/batching/rules.h"
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

struct Family {
    std::string_view name;
    RuleFn make;
};
constexpr std::array kFamilies = {
    Family{"reduce", reduction_rule},
    Family{"items", items_rule},
    Family{"lookup", lookup_rule},
    Family{"reversal", reversal_rule},
    Family{"histogram", histogram_rule},
    Family{"triangle", triangle_rule},
    Family{"slice", slice_rule},
    Family{"flip", flip_rule},
    Family{"part", replaced_part_rule},
    Family{"dense", dense_rule},
    Family{"solve", solved_rule},
    Family{"attention", attention_rule},
    Family{"cache_attention", cache_attention_rule},
    Family{"conv", convolution_rule},
    Family{"conv_input_grad", conv_input_grad_rule},
    Family{"conv_weight_grad", conv_weight_grad_rule},
    Family{"window", window_rule},
    Family{"planes", planes_rule},
    Family{"plane_gather", plane_gather_rule},
    Family{"gather_elements", gather_elements_rule},
    Family{"gather_nd", gather_nd_rule},
    Family{"scatter_elements", scatter_elements_rule},
    Family{"scatter_nd", scatter_nd_rule},
    Family{"segments", segments_rule},
    Family{"made", made_rule},
    Family{"dropout", dropout_rule},
    Family{"layer_norm", layer_norm_rule},
    Family{"layer_norm_grad", layer_norm_grad_rule},
    Family{"batch_norm", batch_norm_rule},
    Family{"group_norm", group_norm_rule},
};

RulePtr of_text(const Call& call, const Types& types, std::string_view text) {
    if (text.front() != '@') return text_rule(call, types, text);
    text.remove_prefix(1);
    const size_t end = std::min(text.find(' '), text.size());
    const auto* family = std::ranges::find(kFamilies, text.substr(0, end), &Family::name);
    if (family == kFamilies.end()) throw state_error(call.name(), str("there is no family of cuts named ", text));
    return family->make(call, types, text.substr(std::min(end + 1, text.size())));
}

RulePtr last_two(const Call& call, const Types& types, std::string_view) { return last_axes_rule(call, types, 2); }

struct Batched {
    BatchFn rule;
    RuleFn make;
};
const std::array kBatched = {
    Batched{batch::elementwise, broadcast_rule},  Batched{batch::last_axes<0>, broadcast_rule},
    Batched{batch::last_axes<2>, last_two},       Batched{batch::reduction<1>, reduction_rule},
    Batched{batch::along<1>, along_rule},         Batched{batch::along<2>, along_rule},
    Batched{batch::reshaped, reshape_rule},       Batched{batch::joined, concat_rule},
    Batched{batch::matrix_product, product_rule}, Batched{batch::dense, dense_rule},
    Batched{batch::solved, solved_rule},          Batched{batch::gather, gather_rule},
    Batched{batch::index_add, index_add_rule},    Batched{batch::one_hot, one_hot_rule},
    Batched{batch::layer_norm, layer_norm_rule},
};

RulePtr derived(const Call& call, const Types& types) {
    const Op& op = call.op;
    if (op.cut_text) return of_text(call, types, op.cut_text);
    if (op.is_itemwise) return items_rule(call, types, {});
    if (op.is_elementwise) return broadcast_rule(call, types, {});
    if (op.view_fn && op.batch_fn != batch::reshaped)
        return op.declared_effect() == Effect::none ? view_rule(call, types, {}) : nullptr;
    const auto* batched = std::ranges::find(kBatched, op.batch_fn, &Batched::rule);
    if (op.batch_fn && batched != kBatched.end()) return batched->make(call, types, {});
    return op.draws() || Rule(call, types).operands.empty() ? made_rule(call, types, {}) : nullptr;
}

}  // namespace

std::unique_ptr<const Rule> rule_of(const Call& call) {
    const Op& op = call.op;
    if (!op.infer_fn) {
        auto rule = std::make_unique<Rule>(call, Types());
        rule->is_composite = op.expand_fn != nullptr;
        return rule;
    }
    const Types types = op.infer_fn(call);
    RulePtr rule;
    if (std::ranges::all_of(types, [](const TensorType& t) { return t.shape.known(); })) rule = derived(call, types);
    if (!rule) rule = std::make_unique<Rule>(call, types);
    // A number beside incomplete tensors is complete.
    for (size_t i = 0; i < call.args.size(); ++i)
        if (call.args[i].is_number() && is_tensor_type(op.signature.params[i].type)) rule->is_jointly_linear = false;
    for (Operand& o : rule->operands) o.is_linear = o.is_linear || (op.linear_operands >> o.argument & 1);
    return rule;
}

}  // namespace lunaria::parallel
