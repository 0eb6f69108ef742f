#include "backends/cpu/kernel_table.h"

#include "backends/cpu/language.h"

namespace lunaria::cpu {

std::vector<Kernel> KernelTable::kernels(std::string_view op, bool plain_only) const {
    auto found = entries_.find(op);
    if (found == entries_.end()) return {};
    std::vector<Kernel> list;
    if (!plain_only) list = found->second.fast;
    if (found->second.plain) list.push_back(found->second.plain);
    return list;
}

const KernelTable& kernel_table() {
    static const KernelTable table = [] {
        KernelTable t;
        add_math_kernels(t);
        add_activation_kernels(t);
        add_compare_kernels(t);
        add_reduce_kernels(t);
        add_sort_kernels(t);
        add_softmax_kernels(t);
        add_norm_kernels(t);
        add_loss_kernels(t);
        add_shape_kernels(t);
        add_slice_kernels(t);
        add_array_kernels(t);
        add_index_kernels(t);
        add_scatter_kernels(t);
        add_create_kernels(t);
        add_random_kernels(t);
        add_linalg_kernels(t);
        add_solve_kernels(t);
        add_special_kernels(t);
        add_distance_kernels(t);
        add_fourier_kernels(t);
        add_conv_kernels(t);
        add_pool_kernels(t);
        add_channel_pool_kernels(t);
        add_attention_kernels(t);
        add_language_kernels(t);
        add_state_kernels(t);
        add_communication_kernels(t);
        add_optimizer_kernels(t);
        return t;
    }();
    return table;
}

}  // namespace lunaria::cpu
