#include "core/ops/families.h"

#include "core/operator/op.h"

namespace lunaria {

Registry& registry() {
    // Never destroyed: Lua handles and graphs may outlive static objects.
    static Registry* instance = [] {
        auto* made = new Registry;
        Registry& ops = *made;
        add_math_ops(ops);
        add_activation_ops(ops);
        add_activation_grad_ops(ops);
        add_compare_ops(ops);
        add_reduce_ops(ops);
        add_sort_ops(ops);
        add_softmax_ops(ops);
        add_norm_ops(ops);
        add_loss_ops(ops);
        add_shape_ops(ops);
        add_slice_ops(ops);
        add_array_ops(ops);
        add_index_ops(ops);
        add_scatter_ops(ops);
        add_create_ops(ops);
        add_random_ops(ops);
        add_linalg_ops(ops);
        add_conv_ops(ops);
        add_pool_ops(ops);
        add_attention_ops(ops);
        add_routing_ops(ops);
        add_arrangement_ops(ops);
        add_box_ops(ops);
        add_state_ops(ops);
        add_communication_ops(ops);
        add_optimizer_ops(ops);
        add_quantise_ops(ops);
        return made;
    }();
    return *instance;
}

}  // namespace lunaria
