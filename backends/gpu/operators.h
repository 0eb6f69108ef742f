// Operators by themselves: those that are loops run as such, others by kernels of their own.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "backends/gpu/queue.h"
#include "core/tensor/device.h"

namespace lunaria::gpu {

// A kernel of an operator that is no loop. False where it does not handle the case, or where a kernel refuses the
// values of operands: the host then says what is wrong with them.
class Launcher;
using OperatorKernel = bool (*)(Launcher& launcher, const KernelCall& call);

// Which there are, by the operators' names. Every family has one file backends/gpu/<family>.cpp.
class KernelTable {
  public:
    void add(std::string_view op, OperatorKernel kernel) { kernels_[op].kernel = kernel; }
    // Asked for calls that no loop does.
    void add_last(std::string_view op, OperatorKernel kernel) { kernels_[op] = {kernel, true}; }
    // Computes on float16 and bfloat16 although the operator's other kernels do not.
    void add_for_halves(std::string_view op, OperatorKernel kernel) { kernels_[op] = {kernel, false, true}; }

    struct Entry {
        OperatorKernel kernel = nullptr;
        bool is_last = false;
        bool takes_halves = false;
    };
    Entry find(const Op& op) const;  // without a kernel: there is none

  private:
    std::unordered_map<std::string_view, Entry> kernels_;
};
const KernelTable& kernel_table();

void add_linalg_kernels(KernelTable& table);
void add_index_kernels(KernelTable& table);
void add_shape_kernels(KernelTable& table);
void add_conv_kernels(KernelTable& table);
void add_pool_kernels(KernelTable& table);
void add_reduce_kernels(KernelTable& table);
void add_norm_kernels(KernelTable& table);
void add_optimizer_kernels(KernelTable& table);
void add_random_kernels(KernelTable& table);
void add_array_kernels(KernelTable& table);
void add_checked_kernels(KernelTable& table);
void add_sort_kernels(KernelTable& table);
void add_scan_kernels(KernelTable& table);
void add_softmax_kernels(KernelTable& table);
void add_attention_kernels(KernelTable& table);

// A call of another operator in the place of one; false where it is no loop.
bool run_loop_of(const KernelCall& call, const Launcher& launcher);

// Elements of one tensor to those of another of its shape, at any strides; false where there is no such conversion.
bool copy_strided(Launcher& launcher, const Tensor& source, const Tensor& destination);

// As a loop, or by its kernel; false where it is neither.
bool run_operator(Queue& queue, const std::string& target, const KernelCall& call);

}  // namespace lunaria::gpu
