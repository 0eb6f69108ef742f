// Single operators: some run as loops, others by kernels of their own.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "backends/gpu/queue.h"
#include "core/tensor/device.h"

namespace lunaria::gpu {

// The kernel of an operator that is not a loop. False where it does not handle the case, or where a kernel refuses the
// values of operands: the host then reports what is wrong with them.
class Launcher;
using OperatorKernel = bool (*)(Launcher& launcher, const KernelCall& call);

// The kernels by the operators' names. Every family has one file backends/gpu/<family>.cpp.
class KernelTable {
  public:
    void add(std::string_view op, OperatorKernel kernel) { kernels_[op].kernel = kernel; }
    // For calls that no loop handles.
    void add_last(std::string_view op, OperatorKernel kernel) { kernels_[op] = {kernel, true}; }
    // A kernel that computes in float16 and bfloat16, unlike the operator's other kernels.
    void add_for_halves(std::string_view op, OperatorKernel kernel) { kernels_[op] = {kernel, false, true}; }

    // A request to other ranks.
    void add_request(std::string_view op, OperatorKernel kernel) { kernels_[op] = {kernel, false, true, true}; }

    struct Entry {
        OperatorKernel kernel = nullptr;
        bool is_last = false;
        bool takes_halves = false;
        bool asks_ranks = false;  // also where this rank has nothing: the others count on its part
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
void add_communication_kernels(KernelTable& table);

// Calls another operator instead; false where that is not a loop.
bool run_loop_of(const KernelCall& call, const Launcher& launcher);

// Copies the elements of one tensor to another of the same shape, with any strides; false where there is no such
// conversion.
bool copy_strided(Launcher& launcher, const Tensor& source, const Tensor& destination);

// Runs an operator as a loop, or by its kernel; false where there is neither.
bool run_operator(Queue& queue, const std::string& target, const KernelCall& call);

}  // namespace lunaria::gpu
