// What every back end implements: memory, copies and kernels for primitive operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"
#include "core/value.h"

namespace lunaria {

class Op;

// What a kernel is given. Tensor parameters arrive as tensors of the dtype `dtype` where the signature says so
// (see ArgType), dense unless the operator accepts strides; elementwise operators may also get plain numbers.
// Outputs are allocated dense by the caller, except where inference left a size unknown: then the kernel assigns them.
struct KernelCall {
    const Op& op;
    std::span<const Value> args;
    std::span<Tensor> out;
    DType dtype = DType::f32;  // of the promoted operands
    uint64_t seed = 0;         // random operators: key and first counter of the Philox stream that belongs to this call
    uint64_t counter = 0;

    const Tensor& tensor(size_t i) const { return args[i].tensor(); }
    bool has(size_t i) const { return !args[i].is_nil(); }
};

// False: this kernel does not handle the case (layout, dtype, size) and the next one is asked; the last may not
// decline.
using Kernel = bool (*)(const KernelCall&);

class Device {
  public:
    virtual ~Device() = default;
    virtual std::string_view name() const = 0;  // "CPU", "GPU", "Ascend"
    virtual void* allocate(size_t bytes) = 0;
    virtual void release(void* block, size_t bytes) noexcept = 0;
    virtual void copy_from_host(void* device, const void* host, size_t bytes) = 0;
    virtual void copy_to_host(void* host, const void* device, size_t bytes) = 0;
    // Kernels of the operator in the order in which they are to be asked; empty when there is none.
    virtual std::span<const Kernel> kernels(const Op& op) const = 0;
};

// The device that operators run on. Set once by the program before the first operator; tests may switch.
void set_current_device(Device* device);
Device* current_device();  // throws state_error when none is set

}  // namespace lunaria
