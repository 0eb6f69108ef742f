// The CPU kernels of operators, by name. Every family has one file backends/cpu/<family>.cpp; fast kernels that are
// built per instruction set are in backends/cpu/simd/.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor/device.h"

namespace lunaria::cpu {

class KernelTable {
  public:
    // The plain kernel is the reference for all others: straightforward loops; it never declines a dtype that inference
    // admits.
    void plain(std::string_view op, Kernel k) { entries_[op].plain = k; }
    // Fast kernels are tried before the plain one, in the order in which they were added; they return false to decline.
    void fast(std::string_view op, Kernel k) { entries_[op].fast.push_back(k); }

    // All kernels of the operator in the order in which they are tried.
    std::vector<Kernel> kernels(std::string_view op, bool plain_only) const;

  private:
    struct Entry {
        Kernel plain = nullptr;
        std::vector<Kernel> fast;
    };
    std::unordered_map<std::string_view, Entry> entries_;
};

// The kernels of all families; listed in backends/cpu/kernel_table.cpp.
const KernelTable& kernel_table();

void add_math_kernels(KernelTable& table);
void add_activation_kernels(KernelTable& table);
void add_compare_kernels(KernelTable& table);
void add_reduce_kernels(KernelTable& table);
void add_sort_kernels(KernelTable& table);
void add_softmax_kernels(KernelTable& table);
void add_norm_kernels(KernelTable& table);
void add_loss_kernels(KernelTable& table);
void add_shape_kernels(KernelTable& table);
void add_slice_kernels(KernelTable& table);
void add_array_kernels(KernelTable& table);
void add_index_kernels(KernelTable& table);
void add_scatter_kernels(KernelTable& table);
void add_create_kernels(KernelTable& table);
void add_random_kernels(KernelTable& table);
void add_linalg_kernels(KernelTable& table);
void add_solve_kernels(KernelTable& table);
void add_special_kernels(KernelTable& table);
void add_distance_kernels(KernelTable& table);
void add_fourier_kernels(KernelTable& table);
void add_conv_kernels(KernelTable& table);
void add_pool_kernels(KernelTable& table);
void add_channel_pool_kernels(KernelTable& table);
void add_attention_kernels(KernelTable& table);
void add_state_kernels(KernelTable& table);
void add_communication_kernels(KernelTable& table);
void add_optimizer_kernels(KernelTable& table);

}  // namespace lunaria::cpu
